"""Wrappers around wrappers: which orders are legal, and that those agree."""

import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lifedrift_jax
from lifedrift_jax import wrappers
from lifedrift_jax.wrappers import (
    AutoReset,
    BatchAutoReset,
    Checked,
    EpisodeStats,
    TimeLimit,
    Wrapper,
)


@pytest.mark.parametrize("auto", [AutoReset, BatchAutoReset])
@pytest.mark.parametrize(
    "outer", [AutoReset, BatchAutoReset, EpisodeStats, lambda env: TimeLimit(env, 5)]
)
def test_nothing_that_follows_an_episode_goes_around_an_automatic_reset(walk, auto, outer):
    with pytest.raises(ValueError, match="around an env that resets by itself"):
        outer(auto(EpisodeStats(walk[0])))


@pytest.mark.parametrize(
    "outer", [AutoReset, BatchAutoReset, EpisodeStats, Checked, lambda env: TimeLimit(env, 5)]
)
def test_nothing_goes_around_checked(walk, outer):
    with pytest.raises(ValueError, match="around Checked: build Checked last"):
        outer(Checked(walk[0]))


@pytest.mark.parametrize(
    "wrapper", [AutoReset, BatchAutoReset, EpisodeStats, Checked, lambda env: TimeLimit(env, 5)]
)
def test_the_pair_of_make_is_no_env(walk, wrapper):
    with pytest.raises(TypeError, match="it must be an Env"):
        wrapper(walk)


def test_legal_orders_agree_in_returns_lengths_scores_and_flags(walk, play_batch, inputs):
    env, params = walk
    given = inputs(40, 64)
    _, a = play_batch(AutoReset(EpisodeStats(TimeLimit(env, 5))), params, *given)
    _, b = play_batch(AutoReset(TimeLimit(EpisodeStats(env), 5)), params, *given)
    _, c = play_batch(AutoReset(TimeLimit(env, 5)), params, *given)
    chex.assert_trees_all_equal(a._replace(state=()), b._replace(state=()), strict=True)
    info = {name: a.info[name] for name in c.info}
    chex.assert_trees_all_equal(c._replace(state=()), a._replace(state=(), info=info), strict=True)
    assert a.truncated.any() and a.terminated.any()


def test_a_wrapper_forwards_names_spaces_and_methods():
    env, params = lifedrift_jax.make("life_drift/energy_balance-v0")
    wrapped = AutoReset(EpisodeStats(TimeLimit(env, 5)))
    for name in (
        "observation_names",
        "action_names",
        "variable_names",
        "event_names",
        "reward_range",
        "num_actions",
    ):
        assert getattr(wrapped, name) == getattr(env, name)
    assert wrapped.observation_space(params) == env.observation_space(params)
    assert wrapped.action_space(params) == env.action_space(params)
    _, state = wrapped.reset(jax.random.key(0), params)
    _, plain = env.reset(jax.random.key(0), params)
    methods = ("observe", "score", "grade", "action_mask", "is_terminal", "variables", "events")
    for method in methods:
        got, want = getattr(wrapped, method)(state, params), getattr(env, method)(plain, params)
        chex.assert_trees_all_equal(got, want, strict=True)
    assert bool(wrapped.is_legal(state, jnp.int32(5), params))
    assert not wrapped.is_legal(state, jnp.int32(6), params)


def test_given_noise_replays_a_step(walk):
    env, params = walk
    wrapped, key = AutoReset(EpisodeStats(TimeLimit(env, 1))), jax.random.key(4)
    _, state = wrapped.reset(jax.random.key(0), params)
    step = wrapped.step(key, state, jnp.int32(1), params)
    noise = wrapped.draw(key)
    chex.assert_trees_all_equal(wrapped.advance(state, jnp.int32(1), noise, params), step)
    moved, reward = wrapped.transition(state, jnp.int32(1), noise, params)
    chex.assert_trees_all_equal((moved, reward), (step.state, step.reward))


class TrialState(NamedTuple):
    env_state: Any
    episodes: jax.Array


@dataclass(frozen=True)
class Trial(Wrapper):
    """Three episodes of an env that resets by itself, joined into one."""

    @property
    def auto_resets(self):
        return False

    def inner_state(self, state):
        return state.env_state

    def start(self, key, params):
        return TrialState(self.env.start(key, params), jnp.int32(0))

    def is_terminal(self, state, params):
        return state.episodes >= 3

    @partial(jax.jit, static_argnames="self")
    def advance(self, state, action, noise, params):
        step = self.env.advance(state.env_state, action, noise, params)
        episodes = state.episodes + step.info["final_valid"].astype(jnp.int32)
        info = {**step.info, "episode_end": step.info["final_valid"]}
        return step._replace(
            state=TrialState(step.state, episodes),
            terminated=episodes >= 3,
            truncated=jnp.bool_(False),
            info=info,
        )

    def empty_info(self, params):
        return {**self.env.empty_info(params), "episode_end": jnp.bool_(False)}


def test_a_trial_of_three_episodes_sees_three_ends_and_ends_once(walk, play_batch, inputs):
    env, params = walk
    trial = AutoReset(EpisodeStats(Trial(AutoReset(TimeLimit(env, 4)))))
    _, steps = play_batch(trial, params, *inputs(36, 8))
    for i in range(8):
        ends = np.flatnonzero(steps.terminated[:, i])
        begins = [0, *(ends[:-1] + 1)]
        assert len(ends) >= 3
        for begin, end in zip(begins, ends, strict=True):
            assert steps.info["episode_end"][begin : end + 1, i].sum() == 3
            assert steps.info["episode_length"][end, i] == end + 1 - begin
    assert not steps.truncated.any()


def test_all_names_exist_and_the_import_loads_no_other_library(clean_environ):
    assert all(hasattr(wrappers, name) for name in wrappers.__all__)
    code = "import sys, lifedrift_jax.wrappers; print({'gymnax', 'gymnasium'} & set(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", code], env=clean_environ, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "set()"
