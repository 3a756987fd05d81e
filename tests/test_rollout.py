"""Episodes in compiled code: lengths, padding, and the same bits on every path."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lifedrift_jax
from lifedrift_jax import rollout
from lifedrift_jax.baselines.simple import constant, random, round_robin
from lifedrift_jax.rng import episode_key, reset_key, root_key, step_key
from lifedrift_jax.sweep import outcomes

IDS = lifedrift_jax.registered()
FAMILIES: dict[str, list[str]] = {}
for _id in IDS:
    FAMILIES.setdefault(_id.partition("/")[0], []).append(_id)


def episode(env_id, index=0, policy=None, **kwargs):
    env, params = lifedrift_jax.make(env_id)
    key = episode_key(root_key(3), index)
    return rollout.episode(key, env, policy or random(), params, **kwargs)


@pytest.mark.parametrize("env_id", IDS)
def test_an_episode_ends_by_its_deadline_and_counts_its_steps(env_id):
    _, params = lifedrift_jax.make(env_id)
    outcome, steps = episode(env_id)
    deadline, length = int(params.max_steps), int(outcome.length)
    assert steps.reward.shape == (deadline,) and outcome.finished
    assert length == deadline if env_id.startswith("life_drift/") else 0 < length <= deadline
    np.testing.assert_array_equal(steps.terminated, np.arange(1, deadline + 1) >= length)
    np.testing.assert_array_equal(steps.valid, np.arange(deadline) < length)


@pytest.mark.parametrize("num_steps", [1, 7, 20, 33])
def test_a_rollout_has_the_number_of_steps_asked_for(num_steps):
    env_id = "life_drift/long_term_stability-v0"
    full, reference = episode(env_id)
    outcome, steps = episode(env_id, num_steps=num_steps)
    chex.assert_tree_shape_prefix(steps, (num_steps,))
    same = min(num_steps, 20)
    for name in ("obs", "action", "reward", "valid"):
        np.testing.assert_array_equal(getattr(steps, name)[:same], getattr(reference, name)[:same])
    assert not steps.valid[same:].any()
    np.testing.assert_array_equal(steps.reward[same:], 0)
    assert outcome.finished == (num_steps >= 20)
    if num_steps >= 20:
        chex.assert_trees_all_equal(outcome, full)


@pytest.mark.parametrize("max_steps", [1, 7, 40])
def test_an_overridden_horizon_is_honoured(max_steps):
    env, params = lifedrift_jax.make("life_drift/energy_balance-v0", max_steps=max_steps)
    outcome, steps = rollout.episode(episode_key(root_key(0), 0), env, random(), params)
    assert outcome.length == max_steps and steps.reward.shape == (max_steps,)
    fraction = steps.obs[:, env.observation_names.index("step_fraction")]
    np.testing.assert_allclose(fraction, np.arange(max_steps) / max_steps, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
def test_all_paths_give_the_same_bits(env_id, full_size):
    """A loop of single jitted steps, a jitted scan, and a vmapped sweep of 1,000."""
    if not full_size and env_id not in [ids[-1] for ids in FAMILIES.values()]:
        pytest.skip("one task stands for its family: each compiles for long")
    env, params = lifedrift_jax.make(env_id)
    swept = outcomes(env, random(), params, seeds=11, num_episodes=1_000)
    keys = jax.vmap(lambda i: episode_key(root_key(11), i))(jnp.arange(1_000))
    _, batch = jax.vmap(lambda k: rollout.episode(k, env, random(), params))(keys)
    for index in (0, 1, 17, 500, 999):
        outcome, steps = rollout.episode(keys[index], env, random(), params)
        chex.assert_trees_all_equal(steps, jax.tree.map(lambda x, i=index: x[i], batch))
        assert outcome.score == swept.score[index]
        assert outcome.episode_return == swept.episode_return[index]
        _, state = env.reset(reset_key(keys[index]), params)
        total = np.float32(0)
        for t in range(int(params.max_steps)):
            step = env.step(step_key(keys[index], t), state, steps.action[t], params)
            state, total = step.state, total + np.float32(step.reward)
            chex.assert_trees_all_equal(state, jax.tree.map(lambda x, t=t: x[t], steps.state))
            assert step.reward == steps.reward[t]
        assert env.grade(state, params) == swept.score[index]
        assert total == swept.episode_return[index]


@pytest.mark.parametrize("family", FAMILIES)
def test_stacked_tasks_run_in_one_program_with_the_bits_of_separate_runs(family):
    tasks = [lifedrift_jax.make(i) for i in FAMILIES[family]]
    env = tasks[0][0]
    assert all(other == env and hash(other) == hash(env) for other, _ in tasks)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *(params for _, params in tasks))
    keys = jax.vmap(lambda i: episode_key(root_key(2), i))(jnp.arange(64))
    play = jax.vmap(lambda k, p: rollout.episode(k, env, random(), p, 20)[0], in_axes=(0, None))
    together = jax.vmap(play, in_axes=(None, 0))(keys, stacked)
    for row, (_, params) in enumerate(tasks):
        alone = play(keys, params)
        chex.assert_trees_all_equal(jax.tree.map(lambda x, r=row: x[r], together), alone)


def test_new_numbers_compile_nothing():
    env, params = lifedrift_jax.make(IDS[0])
    traced = chex.assert_max_traces(lambda k, p: rollout.episode(k, env, random(), p, 10), n=1)
    play = jax.jit(traced)
    for index, threshold in enumerate((0.85, 0.9, np.float32(0.7), np.float64(0.8))):
        env_again, params = lifedrift_jax.make(IDS[0], cascade_threshold=threshold)
        assert env_again == env
        play(episode_key(root_key(index), index), params)


def test_episodes_and_seeds_have_streams_of_their_own():
    env, params = lifedrift_jax.make(IDS[0])
    push = constant(env.action_names.index("prioritize_goal"))
    first = {}
    for seed in (0, 1):
        keys = jax.vmap(lambda i, s=seed: episode_key(root_key(s), i))(jnp.arange(64))
        _, steps = jax.vmap(lambda k: rollout.episode(k, env, push, params))(keys)
        first[seed] = np.asarray(steps.state.energy[:, 0])
        assert len(set(first[seed])) > 60
    assert len(set(first[0]) & set(first[1])) < 4


def test_round_robin_takes_the_actions_in_turn():
    env, _ = lifedrift_jax.make(IDS[0])
    _, steps = episode(IDS[0], policy=round_robin(env))
    np.testing.assert_array_equal(steps.action, np.arange(10) % 6)


def test_keys_are_never_used_twice():
    env, params = lifedrift_jax.make(IDS[0])
    with jax.debug_key_reuse(True):
        key = episode_key(root_key(0), 0)
        outcome, _ = rollout.episode(key, env, random(), params)
        _, state = env.reset(reset_key(key), params)
        step = env.step(step_key(key, 0), state, jnp.int32(1), params)
    assert outcome.finished and np.isfinite(step.reward)


def test_a_traced_horizon_is_refused_with_advice():
    env, params = lifedrift_jax.make(IDS[0])
    with pytest.raises(ValueError, match="num_steps"):
        jax.jit(lambda p: rollout.episode(root_key(0), env, random(), p)[0].score)(params)
