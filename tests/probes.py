"""Small environments with known answers, for training in a second or two."""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax import Env, rng
from lifedrift_jax.core import integer_action
from lifedrift_jax.spaces import Box
from train import Hyper, PPOConfig

SMALL = PPOConfig(
    num_envs=8,
    num_steps=6,
    minibatches=2,
    epochs=2,
    hidden_sizes=(8,),
    total_updates=6,
    eval_every=2,
    eval_episodes=16,
)
FAST = Hyper(learning_rate=0.02, gamma=0.9)


class MatchParams(NamedTuple):
    """Params of `Match` and `Pick`."""

    max_steps: jax.Array  # () int32, length of an episode
    prize: jax.Array  # () float32, what a right answer pays


class MatchState(NamedTuple):
    """State of `Match`."""

    bit: jax.Array  # () int32, the bit shown
    hits: jax.Array  # () int32, right answers so far
    step: jax.Array  # () int32


@dataclass(frozen=True)
class Match(Env):
    """Say the bit that is shown. Perfect play pays `prize` a step, and scores 1.

    `masked` adds a third action that is never legal.
    """

    masked: bool = False
    observation_names: ClassVar[tuple[str, ...]] = ("bit", "one")
    event_names: ClassVar[tuple[str, ...]] = ("perfect",)

    @property
    def num_actions(self) -> int:
        return 3 if self.masked else 2

    def start(self, key, params):
        return MatchState(rng.uniform_index(key, 2), jnp.int32(0), jnp.int32(0))

    def draw(self, key):
        return rng.uniform_index(key, 2)

    def transition(self, state, action, noise, params):
        right = integer_action(action) == state.bit
        after = MatchState(noise, state.hits + right.astype(jnp.int32), state.step + 1)
        return after, jnp.where(right, params.prize, 0)

    def is_terminal(self, state, params):
        return state.step >= params.max_steps

    def observe(self, state, params):
        return jnp.stack([state.bit.astype(jnp.float32), jnp.float32(1)])

    def observation_space(self, params):
        return Box(0.0, 1.0, (2,))

    def events(self, state, params):
        return (state.hits == state.step,)

    def score(self, state, params):
        return state.hits.astype(jnp.float32) / params.max_steps.astype(jnp.float32)

    def action_mask(self, state, params):
        return jnp.arange(self.num_actions) < 2

    def is_legal(self, state, action, params):
        return (action >= 0) & (action < 2)


@cache
def match(max_steps: int = 5, prize: float = 1.0) -> MatchParams:
    """Params of `Match`."""
    return MatchParams(jnp.int32(max_steps), jnp.float32(prize))


class PickState(NamedTuple):
    """State of `Pick`."""

    sizes: jax.Array  # [5] float32 in (0, 1), one an item
    kind: jax.Array  # () int32, the type shown
    hits: jax.Array  # () int32, right answers so far
    step: jax.Array  # () int32


@dataclass(frozen=True)
class Pick(Env):
    """Answer the type that is shown with the largest item; params are those of `Match`.

    Observations are [5, 2]: an item's size, and the type in every row. Actions are
    `type * 5 + item`, of 2 types.
    """

    observation_names: ClassVar[tuple[str, ...]] = ("size", "kind")
    event_names: ClassVar[tuple[str, ...]] = ("perfect",)

    @property
    def num_actions(self) -> int:
        return 10

    def start(self, key, params):
        return PickState(*self.draw(key), jnp.int32(0), jnp.int32(0))

    def draw(self, key):
        return rng.uniform_pairs(key, 1, 5)[0], rng.uniform_index(key, 2)

    def transition(self, state, action, noise, params):
        right = integer_action(action) == state.kind * 5 + jnp.argmax(state.sizes).astype(jnp.int32)
        after = PickState(*noise, state.hits + right.astype(jnp.int32), state.step + 1)
        return after, jnp.where(right, params.prize, 0)

    def is_terminal(self, state, params):
        return state.step >= params.max_steps

    def observe(self, state, params):
        kind = jnp.full_like(state.sizes, state.kind.astype(jnp.float32))
        return jnp.stack([state.sizes, kind], -1)

    def observation_space(self, params):
        return Box(0.0, 1.0, (5, 2))

    def events(self, state, params):
        return (state.hits == state.step,)

    def score(self, state, params):
        return state.hits.astype(jnp.float32) / params.max_steps.astype(jnp.float32)

    def action_mask(self, state, params):
        return jnp.ones(10, bool)

    def is_legal(self, state, action, params):
        return (action >= 0) & (action < 10)


def make(env_id: str) -> tuple[Match, MatchParams]:
    """Entry point of the registry."""
    return Match(), match()


def same(x: Any, y: Any) -> bool:
    """Two pytrees are equal to the bit, keys by their words."""

    def data(leaf: Any) -> np.ndarray:
        return np.asarray(jax.random.key_data(leaf) if rng.is_key(leaf) else leaf)

    pairs = zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True)
    return all(np.array_equal(data(a), data(b), equal_nan=True) for a, b in pairs)
