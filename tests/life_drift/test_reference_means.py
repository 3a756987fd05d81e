"""The measured table of the rules: mean grade of each policy on each task."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax import life_drift, rollout
from lifedrift_jax.baselines import make_policy
from lifedrift_jax.rng import episode_key, root_key

EPISODES = 4096
GREEDY_TOLERANCE = 0.005
TASKS = ("drift_correction", "energy_balance", "long_term_stability")
# Policy -> mean unclamped grade on each task.
GRADES = {
    "random": (0.767, 0.466, 0.560),
    "rule": (0.982, 0.613, 0.687),
    "greedy": (0.906, 0.724, 0.708),
    "constant:prioritize_goal": (1.000, 0.399, 0.602),
    "constant:insert_break": (0.000, 0.796, 0.484),
    "constant:reduce_difficulty": (0.826, 0.659, 0.692),
}
RANDOM_SDS = (0.204, 0.082, 0.050)
RANDOM_RETURNS = (0.481, -0.239, 0.489)


@functools.cache
def played(policy: str) -> tuple[np.ndarray, np.ndarray]:
    """Unclamped grades and returns of `policy`, each [3 tasks, EPISODES]."""
    env = life_drift.LifeDrift()
    params = jax.tree.map(lambda *x: jnp.stack(x), *map(life_drift.task_params, TASKS))

    def one(index, params):
        key = episode_key(root_key(0), index)
        outcome, steps = rollout.episode(key, env, make_policy(policy, env), params, 20)
        final = jax.tree.map(lambda x: x[-1], steps.state)
        return life_drift.unclamped_grade(final, params), outcome.episode_return

    over_episodes = jax.vmap(one, in_axes=(0, None))
    indices = jnp.arange(EPISODES, dtype=jnp.uint32)
    grades, returns = jax.jit(jax.vmap(over_episodes, in_axes=(None, 0)))(indices, params)
    return np.asarray(grades, np.float64), np.asarray(returns, np.float64)


def tolerance(sd: np.ndarray) -> np.ndarray:
    """Three standard errors and half a unit of the table's last digit."""
    return 3 * sd / np.sqrt(EPISODES) + 0.0005


@pytest.mark.parametrize("policy", GRADES)
def test_mean_grades_are_those_of_the_table(policy):
    grades, _ = played(policy)
    difference = np.abs(grades.mean(axis=1) - GRADES[policy])
    bound = {"random": tolerance(np.array(RANDOM_SDS)), "greedy": GREEDY_TOLERANCE}
    assert (difference <= bound.get(policy, tolerance(grades.std(axis=1)))).all(), difference


def test_spread_of_random_play_is_that_of_the_table():
    grades, _ = played("random")
    # The standard error of an sd is about sd / sqrt(2 n) for bell-shaped grades.
    np.testing.assert_allclose(grades.std(axis=1), RANDOM_SDS, atol=0.0005, rtol=3 / 64)


def test_mean_returns_of_random_play_are_those_of_the_table():
    _, returns = played("random")
    difference = np.abs(returns.mean(axis=1) - RANDOM_RETURNS)
    assert (difference <= tolerance(returns.std(axis=1))).all(), difference
