"""What holds in every state: bounds, the order inside a step, ends, invalid actions."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifedrift_jax import life_drift
from lifedrift_jax.life_drift import ACTIONS, TASKS, VARIABLES

ENV = life_drift.LifeDrift()
PARAMS = {task: life_drift.task_params(task) for task in TASKS}
LONG = PARAMS["long_term_stability"]  # 20 steps
UNIT = st.floats(0, 1, width=32)
VALUES = st.lists(UNIT, min_size=5, max_size=5)
DRAWS = st.lists(UNIT, min_size=8, max_size=8)
ANY_ACTION = st.integers(-(2**31), 2**31 - 1) | st.integers(-1, len(ACTIONS))
INVALID_ACTION = ANY_ACTION.filter(lambda action: not 0 <= action < len(ACTIONS))


def advance(state, action, draws, params):
    noise = life_drift.noise_from_uniforms(np.asarray(draws, np.float32))
    return ENV.advance(state, np.int32(action), noise, params)


def state_with(values, step=0, params=LONG):
    """The first state of `params` with other variables and step count."""
    values = dict(zip(VARIABLES, map(np.float32, values), strict=True))
    return replace(life_drift.initial_state(params), step=jnp.int32(step), **values)


def values_of(state):
    return [float(x) for x in ENV.variables(state, LONG)]


@settings(deadline=None)
@given(
    task=st.sampled_from(list(TASKS)),
    start=VALUES,
    moves=st.lists(st.tuples(ANY_ACTION, DRAWS), min_size=1, max_size=20),
)
def test_variables_rewards_and_grades_stay_in_range(task, start, moves):
    params = replace(PARAMS[task], start=jnp.asarray(start, jnp.float32))
    state = life_drift.initial_state(params)
    for action, draws in moves:
        step = advance(state, action, draws, params)
        state = step.state
        seen = np.asarray(step.obs)  # the five variables, day phase, step fraction, task
        assert ((seen >= 0) & (seen <= 1)).all()
        assert -1 <= float(step.reward) <= 1
    assert float(params.grade_low) <= float(ENV.grade(state, params)) <= float(params.grade_high)


# All draws 1/2. By nature a step adds .02 to fatigue, .015 to drift, -.02 to energy.
ORDER = {
    "natural fatigue counts for the cascade": (
        ("reschedule_task", 0, [0.5, 0.5, 0.5, 0.849, 0.5]),
        [0.5 + 0.075 - 0.03, 0.5 - 0.06 + 0.015 + 0.03, 0.445, 0.869, 0.5 + 0.05 + 0.02 - 0.05],
    ),
    "relief by the action counts for the cascade": (
        ("reduce_difficulty", 0, [0.5, 0.5, 0.5, 0.879, 0.5]),
        [0.5 + 0.055, 0.5 - 0.035 + 0.015, 0.515, 0.849, 0.52],
    ),
    "the phase counts for the cascade, and is that after the count": (
        ("reschedule_task", 11, [0.5, 0.5, 0.5, 0.811, 0.5]),
        [0.5 + 0.075 - 0.03, 0.5 - 0.06 + 0.015 + 0.03, 0.445, 0.851, 0.5 + 0.05 - 0.02 - 0.05],
    ),
    "one step earlier it is still afternoon": (
        ("reschedule_task", 10, [0.5, 0.5, 0.5, 0.811, 0.5]),
        [0.575, 0.455, 0.445, 0.831, 0.55],
    ),
    "the cascade comes before the clamp from above": (
        ("prioritize_goal", 0, [0.95, 0.5, 0.5, 0.9, 0.97]),
        [1.0, 0.5 - 0.115 + 0.015 + 0.03, 0.365, 1.0, 1.0],
    ),
    "the cascade comes before the clamp from below": (
        ("prioritize_goal", 0, [0.5, 0.05, 0.5, 0.9, 0.5]),
        [0.62, 0.0, 0.365, 1.0, 0.545],
    ),
}


@pytest.mark.parametrize("case", ORDER)
def test_the_parts_of_a_step_follow_in_order(case):
    (action, step, before), expected = ORDER[case]
    after = advance(state_with(before, step), ACTIONS.index(action), [0.5] * 8, LONG).state
    np.testing.assert_allclose(values_of(after), expected, rtol=0, atol=1e-6)


def test_fatigue_at_the_threshold_is_not_yet_above_it():
    calm = replace(LONG, natural_low=jnp.zeros(3), natural_high=jnp.zeros(3))
    at = replace(calm, cascade_threshold=jnp.float32(0.5))
    below = replace(calm, cascade_threshold=jnp.nextafter(jnp.float32(0.5), jnp.float32(0)))
    action = ACTIONS.index("reschedule_task")  # leaves fatigue alone
    for params, struck in ((at, 0), (below, 1)):
        step = advance(life_drift.initial_state(params), action, [0.5] * 8, params)
        assert int(step.state.cascade_steps) == struck


def test_reward_history_and_grade_take_the_clamped_values():
    before = state_with([0.5, 0.5, 0.02, 0.99, 0.5], step=19)
    step = advance(before, ACTIONS.index("prioritize_goal"), [0.5] * 8, LONG)
    after = step.state
    # Evening and cascade: fatigue .99 + .08 + .02 + .02 -> 1, energy .02 - .115 - .02 -> 0.
    np.testing.assert_allclose(values_of(after), [0.62, 0.43, 0, 1, 0.505], rtol=0, atol=1e-6)
    change = 0.4 * 0.12 + 0.3 * 0.07 - 0.2 * 0.01
    assert float(step.reward) == pytest.approx(change - 0.05 - 0.15, abs=1e-6)
    assert bool(step.terminated)
    assert float(after.fatigue_max) == 1
    assert float(after.fatigue_sum) == 0.5
    assert float(after.energy_sum) == -0.5
    assert float(after.energy_square_sum) == 0.25


@settings(deadline=None)
@given(values=VALUES, task=st.sampled_from(list(TASKS)), action=ANY_ACTION, draws=DRAWS)
def test_a_finished_state_absorbs_every_action(values, task, action, draws):
    params = PARAMS[task]
    state = state_with(values, int(params.max_steps), params)
    step = advance(state, action, draws, params)
    same = jax.tree.map(lambda x, y: bool(x == y), state, step.state)
    assert jax.tree.all(same), same
    assert float(step.reward) == 0
    assert bool(step.terminated)
    assert not bool(step.truncated)
    assert not bool(step.info["invalid_action"])


@settings(deadline=None)
@given(
    values=VALUES,
    task=st.sampled_from(list(TASKS)),
    step=st.integers(0, 9),
    action=INVALID_ACTION,
    draws=DRAWS,
)
def test_an_invalid_action_counts_a_step_and_changes_no_variable(values, task, step, action, draws):
    params = PARAMS[task]
    state = state_with(values, step, params)
    moved = advance(state, action, draws, params)
    after = moved.state
    alignment, drift, energy, fatigue, _ = (
        np.float32(x) - start for x, start in zip(values, params.start, strict=True)
    )
    expected = replace(
        state,
        step=jnp.int32(step + 1),
        alignment_sum=alignment,
        drift_sum=drift,
        energy_sum=energy,
        energy_square_sum=energy * energy,
        fatigue_sum=fatigue,
        fatigue_max=jnp.maximum(state.fatigue_max, state.fatigue),
        recent=jnp.int32(7),
    )
    same = jax.tree.map(lambda x, y: bool(x == y), expected, after)
    assert jax.tree.all(same), same
    assert bool(moved.info["invalid_action"])
    assert float(moved.reward) == 0
    assert bool(moved.terminated) == (step + 1 >= int(params.max_steps))


@pytest.mark.parametrize("action", range(len(ACTIONS)))
def test_a_legal_action_is_not_flagged_and_moves_the_state(action):
    step = advance(state_with([0.5] * 5), action, [0.5] * 8, LONG)
    assert not bool(step.info["invalid_action"])
    assert values_of(step.state) != [0.5] * 5
    assert int(step.state.recent) == action + 1
