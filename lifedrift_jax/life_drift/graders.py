"""The graders: one weighted sum of components; a task is a choice of weights."""

import jax
import jax.numpy as jnp

from lifedrift_jax.core import rounded
from lifedrift_jax.life_drift.types import Params, State


def components(state: State, params: Params) -> tuple[jax.Array, ...]:
    """The graded quantities of an episode so far, each () float, named by
    `tables.COMPONENTS`. All lie in [0, 1].

    Means and the population variance run over the start state and all states since; the
    mean reward over the steps. The same bits in every compiled program: nothing batched is
    divided by a parameter or a count, since XLA rounds x / n in one program unlike in
    another, but a product with 1 / n alike in all; and products are `rounded`.
    """
    one = jnp.ones_like(params.grade_target)
    steps = state.step.astype(one.dtype)
    per_state = one / (steps + 1)
    per_step = one / jnp.maximum(steps, 1)
    per_target = one / params.grade_target
    start_alignment, start_drift, _, start_fatigue, _ = params.start
    energy_shift = rounded(state.energy_sum * per_state)
    mean_square = rounded(state.energy_square_sum * per_state)
    energy_variance = mean_square - rounded(energy_shift * energy_shift)
    return (
        jnp.minimum(state.alignment * per_target, 1),
        jnp.minimum((1 - state.drift) * per_target, 1),
        start_alignment + rounded(state.alignment_sum * per_state),
        1 - (start_fatigue + rounded(state.fatigue_sum * per_state)),
        1 - state.fatigue,
        1 - (start_drift + rounded(state.drift_sum * per_state)),
        jnp.maximum(1 - rounded(params.grade_variance_scale * energy_variance), 0),
        1 - state.fatigue_max,
        jnp.clip((rounded(state.reward_sum * per_step) + 1) / 2, 0, 1),
    )


def unclamped_grade(state: State, params: Params) -> jax.Array:
    """() float in [0, 1], the weighted sum of the components."""
    parts = components(state, params)
    return sum(
        (rounded(params.grade_weights[i] * part) for i, part in enumerate(parts)),
        start=jnp.zeros_like(state.alignment),
    )


def grade(state: State, params: Params) -> jax.Array:
    """() float, the score: `unclamped_grade` clamped to [grade_low, grade_high]."""
    return jnp.clip(unclamped_grade(state, params), params.grade_low, params.grade_high)
