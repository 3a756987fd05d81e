import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lifedrift_jax
from lifedrift_jax import rollout
from lifedrift_jax.baselines import simple
from lifedrift_jax.wrappers import AutoReset, EpisodeStats, TimeLimit


def flags(env, params, num_steps, action=5):
    """(terminated, truncated) of each step of one episode, and the last step."""
    _, state = env.reset(jax.random.key(0), params)
    seen = []
    for t in range(num_steps):
        step = env.step(jax.random.key(t), state, jnp.int32(action), params)
        state = step.state
        seen.append((bool(step.terminated), bool(step.truncated)))
    return seen, step


OPEN, ENDED, CUT = (False, False), (True, False), (False, True)


def test_an_outside_limit_sets_truncated_alone():
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0")
    seen, _ = flags(TimeLimit(env, 6), params, 6)
    assert seen == [OPEN] * 5 + [CUT]


def test_the_tasks_own_deadline_sets_terminated_alone():
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0")
    for limited in (env, TimeLimit(env, 11)):
        seen, _ = flags(limited, params, 12)
        assert seen == [OPEN] * 9 + [ENDED] * 3


def test_terminated_wins_when_both_ends_fall_on_one_step():
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0")
    seen, _ = flags(TimeLimit(env, 10), params, 12)
    assert seen == [OPEN] * 9 + [ENDED] * 3


@pytest.mark.parametrize("limit", [1, 10, 15, 20])
def test_a_limit_of_n_allows_exactly_n_steps(limit):
    env, params = lifedrift_jax.make("life_drift/long_term_stability-v0", max_steps=50)
    outcome, transitions = rollout.episode(
        jax.random.key(0), TimeLimit(env, limit), simple.random(), params, num_steps=25
    )
    assert int(outcome.length) == int(transitions.valid.sum()) == limit
    assert bool(outcome.finished) and not transitions.terminated.any()


def test_the_limit_and_the_env_each_count_a_step_once(play, inputs):
    env, params = lifedrift_jax.make("life_drift/long_term_stability-v0")
    reset_keys, step_keys, actions = inputs(20, 1, num_actions=6)
    _, steps = play(TimeLimit(env, 20), params, reset_keys[0], step_keys[:, 0], actions[:, 0])
    np.testing.assert_array_equal(steps.state.time, np.arange(1, 21))
    np.testing.assert_array_equal(steps.state.env_state.step, np.arange(1, 21))
    np.testing.assert_array_equal(steps.terminated, np.arange(1, 21) == 20)


def test_a_cut_episode_stays_as_it_is_and_pays_nothing(walk):
    for env, params in (walk, lifedrift_jax.make("life_drift/drift_correction-v0")):
        limited = TimeLimit(env, 3)
        _, at_limit = flags(limited, params, 3, action=1)
        seen, later = flags(limited, params, 6, action=1)
        assert seen[2:] == [CUT] * 4
        chex.assert_trees_all_equal(later.state, at_limit.state, strict=True)
        chex.assert_trees_all_equal(later.obs, at_limit.obs, strict=True)
        assert later.reward == 0 and bool(limited.is_terminal(later.state, params))
        chex.assert_trees_all_equal(later.info, limited.empty_info(params), strict=True)


def test_an_invalid_action_past_the_limit_is_not_reported(walk):
    env, params = walk
    _, step = flags(TimeLimit(env, 2), params, 2, action=99)
    assert bool(step.info["invalid_action"])
    _, step = flags(TimeLimit(env, 2), params, 3, action=99)
    assert not step.info["invalid_action"]


def test_the_tighter_of_two_limits_cuts(walk):
    env, params = walk
    for nested in (TimeLimit(TimeLimit(env, 3), 5), TimeLimit(TimeLimit(env, 5), 3)):
        seen, _ = flags(nested, params, 7, action=0)
        assert seen == [OPEN, OPEN, *[CUT] * 5]


def test_steps_before_the_limit_are_those_of_the_plain_env(play, inputs):
    env, params = lifedrift_jax.make("life_drift/energy_balance-v0")
    reset_keys, step_keys, actions = inputs(9, 1, num_actions=6)
    given = reset_keys[0], step_keys[:, 0], actions[:, 0]
    _, plain = play(env, params, *given)
    _, limited = play(TimeLimit(env, 9), params, *given)
    chex.assert_trees_all_equal(
        limited._replace(state=limited.state.env_state, truncated=plain.truncated),
        plain,
        strict=True,
    )


def test_episodes_cut_in_a_row_are_all_of_the_limits_length(walk, play_batch, inputs):
    env, params = walk
    env = AutoReset(EpisodeStats(TimeLimit(env, 4)))
    _, steps = play_batch(env, params, *inputs(24, 16))
    cut = np.asarray(steps.truncated)
    assert cut.any() and not (cut & np.asarray(steps.terminated)).any()
    np.testing.assert_array_equal(steps.info["episode_length"][cut], 4)


@pytest.mark.parametrize("limit", [0, -3, 2.5, "6", True, None])
def test_a_limit_below_one_or_not_whole_is_an_error(walk, limit):
    with pytest.raises(ValueError, match=r"limit is .*: it must be an integer in "):
        TimeLimit(walk[0], limit)


def test_equal_limits_make_equal_envs(walk):
    assert TimeLimit(walk[0], np.int64(5)) == TimeLimit(walk[0], 5)
    assert hash(TimeLimit(walk[0], np.int64(5))) == hash(TimeLimit(walk[0], 5))
    assert TimeLimit(walk[0], 5) != TimeLimit(walk[0], 6)
