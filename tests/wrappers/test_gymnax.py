import copy
import importlib
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import spaces
from gymnax.experimental import RolloutWrapper
from gymnax.wrappers import LogWrapper

import lifedrift_jax
from lifedrift_jax.wrappers import AutoReset, EpisodeStats
from lifedrift_jax.wrappers.gymnax import GymnaxEnv, GymnaxLegacyEnv, GymnaxParams


@pytest.fixture(scope="module")
def made():
    return lifedrift_jax.make("life_drift/drift_correction-v0")


def test_six_values_are_those_of_auto_reset(made):
    env, params = made
    view, auto = GymnaxEnv(env, params), AutoReset(env)
    obs, state = view.reset(jax.random.key(0))
    chex.assert_trees_all_equal((obs, state), auto.reset(jax.random.key(0), params), strict=True)
    for t in range(12):
        key, action = jax.random.key(t), jnp.int32(t % 6)
        expected = auto.step(key, state, action, params)
        obs, state, reward, terminated, truncated, info = view.step(
            key, state, action, view.default_params
        )
        chex.assert_trees_all_equal(
            (obs, state, reward, terminated, truncated), tuple(expected[:5]), strict=True
        )
        flags = {"terminated": terminated, "truncated": truncated}
        chex.assert_trees_all_equal(info, expected.info | flags, strict=True)
        assert bool(terminated) == (t == 9)


def test_five_values_join_the_flags(made):
    env, params = made
    view, legacy = GymnaxEnv(env, params), GymnaxLegacyEnv(env, params)
    _, state = legacy.reset(jax.random.key(0))
    for t in range(10):
        key = jax.random.key(t)
        obs, after, reward, terminated, truncated, info = view.step(key, state, jnp.int32(1))
        joined = obs, after, reward, terminated | truncated, info
        five = legacy.step(key, state, jnp.int32(1), legacy.default_params)
        chex.assert_trees_all_equal(five, joined, strict=True)
        state = after
    assert bool(five[3]) and not (obs == info["final_observation"]).all()


def test_attributes_that_gymnaxs_users_read(made):
    env, params = made
    view = GymnaxEnv(env, params)
    assert view.name == "LifeDrift" and view.num_actions == 6
    assert view.default_params.max_steps_in_episode == 10
    for given in ((), (view.default_params,)):
        actions, observations = view.action_space(*given), view.observation_space(*given)
        assert isinstance(actions, spaces.Discrete) and actions.n == 6
        assert isinstance(observations, spaces.Box) and observations.shape == (10,)
        assert (observations.low, observations.high) == (0.0, 1.0)
        assert observations.dtype == np.float32
        assert bool(observations.contains(view.reset(jax.random.key(0))[0]))
        assert bool(actions.contains(actions.sample(jax.random.key(0))))
    obs, _ = copy.deepcopy(view).reset(jax.random.key(0))
    chex.assert_trees_all_equal(obs, view.reset(jax.random.key(0))[0], strict=True)


def test_params_of_the_task_can_be_replaced_and_stacked(made):
    env, params = made
    view = GymnaxEnv(env, params)
    short = view.default_params.replace(max_steps=3)
    assert isinstance(short, GymnaxParams) and short.max_steps_in_episode == 3
    with pytest.raises(ValueError, match="did you mean 'max_steps'"):
        view.default_params.replace(max_step=3)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), short, view.default_params)

    def lengths(params):
        _, state = view.reset(jax.random.key(0), params)

        def step(state, t):
            _, state, _, terminated, _, _ = view.step(
                jax.random.key(t), state, jnp.int32(5), params
            )
            return state, terminated

        return jax.lax.scan(step, state, jnp.arange(10))[1]

    ends = jax.jit(jax.vmap(lengths))(stacked)
    np.testing.assert_array_equal(ends.sum(axis=1), [3, 1])


def test_an_env_that_resets_by_itself_is_refused(made):
    env, params = made
    with pytest.raises(ValueError, match="resets by itself"):
        GymnaxEnv(AutoReset(env), params)


@pytest.mark.relaxed
def test_gymnaxs_log_wrapper_counts_as_ours_does(walk, inputs):
    env, params = walk
    logged = LogWrapper(GymnaxEnv(EpisodeStats(env), params))
    reset_keys, step_keys, actions = inputs(60, 1)
    _, state = logged.reset(reset_keys[0], logged.default_params)

    def step(state, given):
        key, action = given
        _, state, _, _, _, info = logged.step(key, state, action, logged.default_params)
        return state, info

    _, info = jax.lax.scan(step, state, (step_keys[:, 0], actions[:, 0]))
    ended = np.asarray(info["returned_episode"])
    assert ended.sum() > 3
    np.testing.assert_array_equal(info["final_valid"], ended)
    for theirs, ours in (
        ("returned_episode_returns", "episode_return"),
        ("returned_episode_lengths", "episode_length"),
    ):
        np.testing.assert_array_equal(info[theirs][ended], info[ours][ended])


@pytest.mark.relaxed
def test_gymnaxs_rollout_plays_our_env(made):
    env, params = made
    roller = RolloutWrapper(env=GymnaxEnv(env, params))
    obs, action, reward, next_obs, done, total = roller.batch_rollout(
        jax.random.split(jax.random.key(0), 4), None
    )
    assert obs.shape == next_obs.shape == (4, 10, 10) and action.shape == (4, 10)
    np.testing.assert_array_equal(done, np.broadcast_to(np.arange(10) == 9, (4, 10)))
    np.testing.assert_allclose(total[:, 0], reward.sum(axis=1), rtol=1e-6)


def test_a_missing_gymnax_gives_one_line_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnax.environments", None)
    monkeypatch.delitem(sys.modules, "lifedrift_jax.wrappers.gymnax")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'lifedrift_jax\[gymnax\]'$"):
        importlib.import_module("lifedrift_jax.wrappers.gymnax")
