"""The grader: four weighted components less penalties, as the source text gives it."""

import jax
import jax.numpy as jnp

from lifedrift_jax.core import rounded
from lifedrift_jax.task_flow.tables import COMPLETED, DELEGATED, EMPTY, FAILED, LATE
from lifedrift_jax.task_flow.types import Params, State


def count(holds: jax.Array) -> jax.Array:
    """How many of [12] bools are True, () int32."""
    return jnp.sum(holds, dtype=jnp.int32)


def failed(state: State) -> jax.Array:
    """() int32, items that count as failed if the episode ends here: expired, botched, or
    still to be done. Delegated items count neither as failed nor as completed.
    """
    status = state.status
    return count((status != EMPTY) & (status != COMPLETED) & (status != DELEGATED))


def lost(state: State) -> jax.Array:
    """() int32, items that have failed for good so far: late, or gone as failed."""
    return count((state.status == LATE) | (state.status == FAILED))


def components(state: State, params: Params) -> tuple[jax.Array, ...]:
    """efficiency, resources, health, speed, each () float in [0, 1], as of now.

    efficiency = completed / items; resources = the mean of what is left of time, energy and
    budget, by `resource_shares`; health as it is; speed = share of steps not used.
    """
    real = state.energy.dtype
    per_item = 1 / params.items.astype(real)
    per_step = 1 / params.max_steps.astype(real)
    time = (params.max_steps - state.step).astype(real) * per_step
    energy, budget = state.energy * (1 / params.energy), state.budget * (1 / params.budget)
    resources = _weighted(params.resource_shares, (time, rounded(energy), rounded(budget)))
    completed = count(state.status == COMPLETED).astype(real)
    return completed * per_item, resources, state.health, time


def penalty(state: State, params: Params) -> jax.Array:
    """() float, what is taken off: for failed items, and for a collapse of health."""
    share = failed(state).astype(state.energy.dtype) * (1 / params.items.astype(state.energy.dtype))
    collapsed = state.health < params.collapse_health
    return rounded(params.failed_penalty * share) + jnp.where(collapsed, params.collapse_penalty, 0)


def grade(state: State, params: Params) -> jax.Array:
    """() float in [0, 1], the score if the episode ends here."""
    total = _weighted(params.grade_weights, components(state, params))
    return jnp.clip(total - penalty(state, params), 0, 1)


def _weighted(weights: jax.Array, values: tuple[jax.Array, ...]) -> jax.Array:
    """() the sum of weight x value, the same bits in every program (see `core.rounded`)."""
    terms = (rounded(w * x) for w, x in zip(weights, values, strict=True))
    return sum(terms, start=jnp.zeros_like(values[0]))
