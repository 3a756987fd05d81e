"""Start the next episode in the step that ends one.

The returned obs and state are then the new episode's first; reward, terminated, truncated
and the rest of info are the old one's last. Two entries of info are added, with the same
structure on every step:

* `final_observation`: the observation of the state that the action led to, which is the
  true last one at an episode's end (bootstrap from it); between ends it equals the
  returned obs, in `empty_info` it is 0;
* `final_valid`: () bool, an episode ended in this step. Only then do `final_observation`
  and the numbers of `EpisodeStats` belong to a finished episode.

The new episode is reset with `rng.reset_key(key)` of the step's key, so it differs from
episode to episode, and the step itself draws what the inner env's would.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Step, select
from lifedrift_jax.rng import reset_key
from lifedrift_jax.wrappers.base import Wrapper, refuse_auto_reset, step_shapes


class ResetNoise(NamedTuple):
    """The randomness of a step that may begin an episode.

    Attributes:
        step: the inner env's noise.
        reset: key of the next episode's reset.
    """

    step: Any
    reset: jax.Array


@dataclass(frozen=True)
class AutoReset(Wrapper):
    """One env that never stays finished; batch with `jax.vmap`. States are the inner env's.

    In the step that ends an episode, obs and state are the next episode's first, and info
    has `final_observation` and `final_valid` (see the module's text).

    Under `vmap` the reset is computed in every step; `BatchAutoReset` avoids that.

    Raises:
        ValueError: the env inside resets by itself already.
    """

    def __post_init__(self) -> None:
        refuse_auto_reset(self, "one automatic reset is enough")
        super().__post_init__()

    @property
    def auto_resets(self) -> bool:
        """True."""
        return True

    def draw(self, key: jax.Array) -> ResetNoise:
        """The inner env's draws, and the key of a reset."""
        return ResetNoise(self.env.draw(key), reset_key(key))

    @partial(jax.jit, static_argnames="self")
    def advance(self, state: Any, action: jax.Array, noise: ResetNoise, params: Any) -> Step:
        """See the module's text."""
        last = self.env.advance(state, action, noise.step, params)
        first = self.env.reset(noise.reset, params)
        done = last.terminated | last.truncated
        return _continue(last, done, *select(done, first, (last.obs, last.state)))

    def empty_info(self, params: Any) -> dict[str, jax.Array]:
        """The inner env's, `final_observation` 0 and `final_valid` False."""
        obs = step_shapes(self.env, params).obs
        return {
            **self.env.empty_info(params),
            "final_observation": jnp.zeros(obs.shape, obs.dtype),
            "final_valid": jnp.bool_(False),
        }


@dataclass(frozen=True)
class BatchAutoReset(AutoReset):
    """A batch of `AutoReset` envs: the same values, bit for bit, at less cost.

    Keys, states, actions ([B] integers) and all results have a leading axis [B]; params are
    shared. A scan that carries info begins with `empty_info(params, batch_size)`. Resets
    are computed only in steps where some episode ends, under one `lax.cond` for the whole
    batch. Do not `vmap` over it: that would turn the cond into work done on every step.
    """

    def start(self, key: jax.Array, params: Any) -> Any:
        """[B] first states, from [B] keys."""
        return jax.vmap(self.env.start, (0, None))(key, params)

    def draw(self, key: jax.Array) -> ResetNoise:
        """[B] noises, from [B] keys."""
        return jax.vmap(super().draw)(key)

    @partial(jax.jit, static_argnames="self")
    def advance(self, state: Any, action: jax.Array, noise: ResetNoise, params: Any) -> Step:
        """See the module's text; everything [B]."""
        last = jax.vmap(self.env.advance, (0, 0, 0, None))(state, action, noise.step, params)
        done = last.terminated | last.truncated

        def begin() -> tuple[jax.Array, Any]:
            first = jax.vmap(self.env.reset, (0, None))(noise.reset, params)
            return jax.vmap(select)(done, first, (last.obs, last.state))

        obs, state = jax.lax.cond(jnp.any(done), begin, lambda: (last.obs, last.state))
        return _continue(last, done, obs, state)

    def is_terminal(self, state: Any, params: Any) -> jax.Array:
        """[B] bool, all False in practice."""
        return jax.vmap(self.env.is_terminal, (0, None))(state, params)

    def observe(self, state: Any, params: Any) -> jax.Array:
        """[B, ...] observations."""
        return jax.vmap(self.env.observe, (0, None))(state, params)

    def variables(self, state: Any, params: Any) -> tuple[jax.Array, ...]:
        """Scalars worth plotting, [B] each."""
        return jax.vmap(self.env.variables, (0, None))(state, params)

    def events(self, state: Any, params: Any) -> tuple[jax.Array, ...]:
        """Facts about the episodes so far, [B] bool each."""
        return jax.vmap(self.env.events, (0, None))(state, params)

    def score(self, state: Any, params: Any) -> jax.Array:
        """[B] grades."""
        return jax.vmap(self.env.score, (0, None))(state, params)

    def action_mask(self, state: Any, params: Any) -> jax.Array:
        """[B, A] bool, True = legal."""
        return jax.vmap(self.env.action_mask, (0, None))(state, params)

    def is_legal(self, state: Any, action: jax.Array, params: Any) -> jax.Array:
        """[B] bool."""
        return jax.vmap(self.env.is_legal, (0, 0, None))(state, action, params)

    def empty_info(self, params: Any, batch_size: int = 1) -> dict[str, jax.Array]:
        """As `AutoReset.empty_info`, for a batch: leaves [batch_size, ...]."""
        info = super().empty_info(params)
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (batch_size, *x.shape)), info)


def _continue(last: Step, done: jax.Array, obs: jax.Array, state: Any) -> Step:
    """`last` with the obs and state to go on from, and its own obs kept in info."""
    info = {**last.info, "final_observation": last.obs, "final_valid": done}
    return last._replace(obs=obs, state=state, info=info)
