"""Whole episodes of TaskFlow: rollouts, automatic resets, grades from the record."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import task_flow as reference

from lifedrift_jax import rollout
from lifedrift_jax.baselines import simple
from lifedrift_jax.rng import episode_key, reset_key, root_key, step_key
from lifedrift_jax.task_flow import tables
from lifedrift_jax.task_flow.env import make
from lifedrift_jax.wrappers import AutoReset, EpisodeStats

ENV, EASY = make("task_flow/easy-v0")
EPISODES, STEPS = 64, 33
RANDOM = simple.random()


@pytest.fixture(scope="module")
def episodes():
    """`episodes(params)`: (outcomes, transitions) of 64 random episodes over 33 steps."""

    @jax.jit
    def play(params):
        keys = jax.vmap(episode_key, (None, 0))(root_key(0), jnp.arange(EPISODES))
        return jax.vmap(lambda key: rollout.episode(key, ENV, RANDOM, params, STEPS))(keys)

    return lambda params: jax.device_get(play(params))


@pytest.mark.parametrize("num_steps", [7, STEPS])
def test_a_rollout_has_the_number_of_steps_asked_for(num_steps):
    key = episode_key(root_key(0), 0)
    steps = jax.eval_shape(lambda: rollout.episode(key, ENV, RANDOM, EASY, num_steps)[1])
    assert {x.shape[0] for x in jax.tree.leaves(steps)} == {num_steps}


@pytest.mark.parametrize("tier", tables.TASKS)
def test_returns_and_grades_follow_from_the_record_of_the_episode(episodes, rules_of, tier):
    params = jax.device_get(make(f"task_flow/{tier}-v0")[1])
    outcome, steps = episodes(params)
    assert outcome.finished.all()
    assert steps.valid.sum(axis=1).tolist() == outcome.length.tolist()
    for i, length in enumerate(outcome.length):
        total = np.float32(0)
        for reward in steps.reward[i]:
            total += reward
        assert total == outcome.episode_return[i] == steps.state.reward_sum[i, -1]
        record = [tables.OUTCOMES[code] for code in steps.state.last_outcome[i, :length]]
        left = (getattr(steps.state, name)[i, -1] for name in ("energy", "budget", "health"))
        grade = reference.grade_of_record(rules_of(params), record, *map(float, left))
        assert outcome.score[i] == pytest.approx(grade, rel=0, abs=1e-6)


@pytest.fixture(scope="module")
def eight_envs():
    """60 steps of eight easy envs that reset: leaves [8, 60, ...]."""
    auto, generator = AutoReset(EpisodeStats(ENV)), np.random.default_rng(0)
    # Executions and delegations of the five items, so that some episodes end early.
    kinds = generator.choice([tables.EXECUTE, tables.DELEGATE], (8, 60))
    actions = (kinds * tables.SLOTS + generator.integers(0, 5, (8, 60))).astype(np.int32)

    def play(key, actions):
        def step(state, given):
            after = auto.step(step_key(key, given[0]), state, given[1], EASY)
            return after.state, after

        _, state = auto.reset(reset_key(key), EASY)
        return jax.lax.scan(step, state, (jnp.arange(60, dtype=jnp.int32), actions))[1]

    keys = jax.vmap(episode_key, (None, 0))(root_key(0), jnp.arange(8))
    return jax.device_get(jax.jit(jax.vmap(play))(keys, actions))


def test_of_envs_that_reset_only_finished_episodes_count(eight_envs, rules_of):
    steps, rules, lengths = eight_envs, rules_of(jax.device_get(EASY)), set()
    assert (steps.info["final_valid"] == steps.terminated).all() and not steps.truncated.any()
    final = steps.info["final_observation"][:, :, 0]
    seen = {name: final[..., i] for i, name in enumerate(ENV.observation_names)}
    for i in range(8):
        ends = np.flatnonzero(steps.terminated[i])
        for begin, end in zip([0, *(ends[:-1] + 1)], ends, strict=True):
            length = int(end + 1 - begin)
            lengths.add(length)
            assert steps.info["episode_length"][i, end] == length
            total = steps.reward[i, begin : end + 1].sum()
            assert steps.info["episode_return"][i, end] == pytest.approx(total, abs=1e-6)
            # Easy takes nothing off for failed items, so what was delegated does not matter.
            completed = float(seen["completed"][i, end]) * rules.items
            energy = float(seen["energy"][i, end]) * rules.energy
            budget = float(seen["budget"][i, end]) * rules.budget
            health = float(seen["health"][i, end])
            grade = reference.grade(rules, completed, 0, length, energy, budget, health)
            assert steps.info["score"][i, end] == pytest.approx(grade, abs=1e-6)
    assert len(lengths) > 2
