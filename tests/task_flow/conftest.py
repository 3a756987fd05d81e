"""Play many random episodes of TaskFlow in one compiled program, and keep every step."""

from dataclasses import fields
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax.rng import episode_key, reset_key, root_key, step_key
from lifedrift_jax.task_flow.env import TaskFlow

ENV = TaskFlow()
OUT_OF_RANGE = (-1, 48, 99, -(2**31))


class Seen(NamedTuple):
    """Steps of episodes, each with leading axes [episodes, steps]; numpy leaves.

    Attributes:
        key: [..., 2] uint32, data of the step's key.
        before: the state before the action.
        mask: [..., 48] of that state.
        action: 1 in 8 out of range, else any; in every second episode always legal.
        noise: in the dtype of the params.
        step: what the step returned.
        grade: of the state after the step.
    """

    key: Any
    before: Any
    mask: Any
    action: Any
    noise: Any
    step: Any
    grade: Any


@jax.jit
@jax.vmap
def _play(params, key, actions, scores, legal_only):
    def step(state, given):
        t, action, scores = given
        mask = ENV.action_mask(state, params)
        best = jnp.argmax(jnp.where(mask, scores, -1)).astype(jnp.int32)
        action = jnp.where(legal_only, best, action)
        key = step_key(episode, t)
        noise = jax.tree.map(lambda x: x.astype(params.energy.dtype), ENV.draw(key))
        moved = ENV.advance(state, action, noise, params)
        grade, data = ENV.grade(moved.state, params), jax.random.key_data(key)
        return moved.state, Seen(data, state, mask, action, noise, moved, grade)

    episode = jax.random.wrap_key_data(key, impl="threefry2x32")
    _, start = ENV.reset(reset_key(episode), params)
    times = jnp.arange(actions.shape[0], dtype=jnp.int32)
    return jax.lax.scan(step, start, (times, actions, scores))[1]


def play_episodes(params: list, seed: int, num_steps: int = 12) -> Seen:
    """Play one episode with each of the params."""
    generator, shape = np.random.default_rng(seed), (len(params), num_steps)
    keys = jax.vmap(episode_key, (None, 0))(root_key(seed), jnp.arange(len(params)))
    actions = generator.integers(0, ENV.num_actions, shape)
    wild = generator.choice(OUT_OF_RANGE, shape)
    actions = np.where(generator.random(shape) < 1 / 8, wild, actions).astype(np.int32)
    scores = generator.random((*shape, ENV.num_actions), np.float32)
    stacked = jax.tree.map(lambda *x: np.stack(x), *params)
    legal_only = np.arange(len(params)) % 2 == 0
    seen = _play(stacked, jax.random.key_data(keys), actions, scores, legal_only)
    return jax.tree.map(np.asarray, seen)


@pytest.fixture(scope="session")
def play():
    """`play(params, seed, num_steps)`: see `play_episodes`."""
    return play_episodes


@pytest.fixture(scope="session")
def rules_of():
    """`rules_of(params)`: params of numpy leaves as the plain numbers of the restatement."""

    def plain(record):
        names = (f.name for f in fields(record) if f.name != "domains")
        return {name: getattr(record, name).tolist() for name in names}

    def rules_of(params):
        columns = plain(params.domains)
        rows = zip(*columns.values(), strict=True)
        domains = [SimpleNamespace(**dict(zip(columns, row, strict=True))) for row in rows]
        return SimpleNamespace(**plain(params), domains=domains)

    return rules_of
