"""The dense reward of a Life Drift step."""

import jax
import jax.numpy as jnp

from lifedrift_jax.core import rounded
from lifedrift_jax.life_drift.types import Reward, State


def reward(before: State, after: State, weights: Reward) -> jax.Array:
    """Reward of a step, from the (clamped) values before and after it.

        0.4 dAlignment - 0.3 dDrift - 0.2 max(0, dFatigue) + energy window + shaping

    Args:
        before, after: states, of which only the variables are read.
        weights: the formula's numbers.

    Returns:
        () float in [weights.low, weights.high].
    """
    change = (
        rounded(weights.alignment * (after.alignment - before.alignment))
        + rounded(weights.drift * (after.drift - before.drift))
        + rounded(weights.fatigue * jnp.maximum(after.fatigue - before.fatigue, 0))
    )
    total = change + energy_window(after, weights) + shaping(after, weights)
    return jnp.clip(total, weights.low, weights.high)


def energy_window(state: State, weights: Reward) -> jax.Array:
    """() float, a bonus inside the window of energy (bounds included), else a malus."""
    inside = (state.energy >= weights.energy_low) & (state.energy <= weights.energy_high)
    return jnp.where(inside, weights.energy_inside, weights.energy_outside)


def shaping(state: State, weights: Reward) -> jax.Array:
    """() float, the sum of what healthy and critical states pay."""
    on_course = (state.alignment > weights.on_course_alignment) & (
        state.drift < weights.on_course_drift
    )
    rested = (state.fatigue < weights.rested_fatigue) & (state.energy > weights.rested_energy)
    return (
        jnp.where(on_course, weights.on_course, 0)
        + jnp.where(rested, weights.rested, 0)
        + jnp.where(state.fatigue > weights.exhausted_fatigue, weights.exhausted, 0)
        + jnp.where(state.drift > weights.adrift_drift, weights.adrift, 0)
    )
