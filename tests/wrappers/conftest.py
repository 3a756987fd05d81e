"""A toy env with random starts and random ends, and a way to play any env."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax import Env
from lifedrift_jax.rng import uniform_pair
from lifedrift_jax.spaces import Box


class WalkState(NamedTuple):
    position: jax.Array
    time: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class WalkParams:
    max_steps: jax.Array


@dataclass(frozen=True)
class Walk(Env[WalkState, WalkParams, jax.Array]):
    """A walk on [0, 1] from a random place; a wall or the deadline ends it.

    All its numbers are multiples of 2**-20, so its arithmetic is exact in every program.
    """

    observation_names: ClassVar[tuple[str, ...]] = ("position", "time")
    action_names: ClassVar[tuple[str, ...]] = ("left", "right", "leap")
    variable_names: ClassVar[tuple[str, ...]] = ("position",)
    event_names: ClassVar[tuple[str, ...]] = ("at_wall",)

    def start(self, key, params):
        return WalkState(0.25 + 0.5 * uniform_pair(key, 0)[0], jnp.int32(0))

    def draw(self, key):
        return uniform_pair(key, 0)[0]

    def transition(self, state, action, noise, params):
        legal = self.is_legal(state, action, params)
        move = jnp.where(action == 2, 0.5, jnp.where(action == 1, 0.125, -0.125)) * noise
        position = jnp.clip(state.position + jnp.where(legal, move, 0), 0, 1)
        return WalkState(position, state.time + 1), position - state.position

    def is_terminal(self, state, params):
        return self.events(state, params)[0] | (state.time >= params.max_steps)

    def observe(self, state, params):
        return jnp.stack([state.position, state.time.astype(jnp.float32) / 64])

    def variables(self, state, params):
        return (state.position,)

    def events(self, state, params):
        return ((state.position <= 0) | (state.position >= 1),)

    def action_mask(self, state, params):
        return jnp.stack([jnp.bool_(True), jnp.bool_(True), state.position < 0.5])

    def is_legal(self, state, action, params):
        return (action >= 0) & (action < 3) & ((action != 2) | (state.position < 0.5))

    def observation_space(self, params):
        return Box(0.0, 1.0, (2,))

    def score(self, state, params):
        return state.position


@pytest.fixture
def walk():
    """(env, params) of the toy env, 12 steps at most."""
    return Walk(), WalkParams(jnp.int32(12))


@partial(jax.jit, static_argnames="env")
def _play(env, params, reset_keys, step_keys, actions):
    obs, state = env.reset(reset_keys, params)

    def step(state, inputs):
        result = env.step(inputs[0], state, inputs[1], params)
        return result.state, result

    _, steps = jax.lax.scan(step, state, (step_keys, actions))
    return (obs, state), steps


@pytest.fixture
def play():
    """`play(env, params, reset_keys, step_keys, actions)`: ((obs, state), Step [T, ...])."""
    return _play


@partial(jax.jit, static_argnames="env")
def _play_batch(env, params, reset_keys, step_keys, actions):
    one = partial(_play, env, params)
    return jax.vmap(one, (0, 1, 1), (0, 1))(reset_keys, step_keys, actions)


@pytest.fixture
def inputs():
    """`inputs(num_steps, batch)`: reset keys [B], step keys [T, B], random actions [T, B]."""

    def make(num_steps: int, batch: int, num_actions: int = 3, seed: int = 0):
        reset_keys = jax.random.split(jax.random.key(seed), batch)
        step_keys = jax.random.split(jax.random.key(seed + 1), (num_steps, batch))
        actions = np.random.default_rng(seed).integers(0, num_actions, (num_steps, batch))
        return reset_keys, step_keys, jnp.asarray(actions, jnp.int32)

    return make


@pytest.fixture
def play_batch():
    """`play` under `vmap`, one env for each column of the inputs."""

    return _play_batch
