import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lifedrift_jax
from lifedrift_jax import rollout
from lifedrift_jax.baselines import simple
from lifedrift_jax.rng import episode_key, reset_key, root_key, step_key
from lifedrift_jax.wrappers import AutoReset, EpisodeStats, TimeLimit


def test_return_length_and_score_are_those_of_the_rollout_bit_for_bit():
    env, params = lifedrift_jax.make("life_drift/energy_balance-v0")
    stats = EpisodeStats(env)
    key = episode_key(root_key(3), 5)
    outcome, transitions = rollout.episode(key, env, simple.random(), params)

    @jax.jit
    def replay(key, actions):
        def step(state, inputs):
            t, action = inputs
            result = stats.step(step_key(key, t), state, action, params)
            return result.state, result.info

        _, state = stats.reset(reset_key(key), params)
        return jax.lax.scan(step, state, (jnp.arange(15), actions))[1]

    info = replay(key, transitions.action)
    assert info["episode_return"][-1] == outcome.episode_return
    assert info["episode_length"][-1] == outcome.length == 15
    assert info["score"][-1] == outcome.score
    np.testing.assert_array_equal(info["episode_length"], np.arange(1, 16))


def test_numbers_are_those_of_the_episode_that_ended(walk, play_batch, inputs):
    env, params = walk
    _, steps = play_batch(AutoReset(EpisodeStats(env)), params, *inputs(60, 8))
    reward, final = np.asarray(steps.reward), np.asarray(steps.info["final_valid"])
    for i in range(8):
        ends = np.flatnonzero(final[:, i])
        assert len(ends) > 3
        for begin, end in zip([0, *(ends[:-1] + 1)], ends, strict=True):
            total = np.float32(0)
            for r in reward[begin : end + 1, i]:
                total += r
            assert steps.info["episode_return"][end, i] == total
            assert steps.info["episode_length"][end, i] == end + 1 - begin
            # The toy env's grade is the position, the first entry of the true last obs.
            position = steps.info["final_observation"][end, i, 0]
            assert steps.info["score"][end, i] == position != steps.obs[end, i, 0]


def test_steps_from_a_finished_state_do_not_count(walk):
    env, params = walk
    for inner in (TimeLimit(env, 2), lifedrift_jax.make("life_drift/drift_correction-v0")[0]):
        if inner != TimeLimit(env, 2):
            params = lifedrift_jax.make("life_drift/drift_correction-v0", max_steps=2)[1]
        stats = EpisodeStats(inner)
        _, state = stats.reset(jax.random.key(0), params)
        infos = []
        for t in range(5):
            step = stats.step(jax.random.key(t), state, jnp.int32(1), params)
            state = step.state
            infos.append(step.info)
        assert [int(info["episode_length"]) for info in infos] == [1, 2, 2, 2, 2]
        for name in ("episode_return", "score"):
            assert infos[1][name] == infos[4][name] != infos[0][name]


@pytest.mark.relaxed  # draws are float32, so float64 params promote
def test_the_return_has_the_rewards_dtype():
    env = lifedrift_jax.make("life_drift/drift_correction-v0")[0]
    with jax.enable_x64(True):
        params = lifedrift_jax.life_drift.task_params("drift_correction", np.float64)
        stats = EpisodeStats(env)
        _, state = stats.reset(jax.random.key(0), params)
        step = stats.step(jax.random.key(1), state, jnp.int32(0), params)
        assert state.episode_return.dtype == step.reward.dtype == jnp.float64
        empty = stats.empty_info(params)
    assert empty["episode_return"].dtype == empty["score"].dtype == jnp.float64
    assert empty["episode_length"].dtype == step.info["episode_length"].dtype == jnp.int32
