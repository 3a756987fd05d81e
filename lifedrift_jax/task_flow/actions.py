"""Actions of TaskFlow: an action is a type and an item's slot, `type * 12 + slot`."""

import jax
import jax.numpy as jnp

from lifedrift_jax.core import pick
from lifedrift_jax.task_flow.tables import ACTION_TYPES, LATE, PENDING, SLOTS
from lifedrift_jax.task_flow.types import Params, State

NAMES = tuple(f"{kind}:{slot}" for kind in ACTION_TYPES for slot in range(SLOTS))


def split(action: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(type, slot), each int32 like `action`, of an action in [0, 48)."""
    return action // SLOTS, action % SLOTS


def join(kind: jax.Array | int, slot: jax.Array) -> jax.Array:
    """The action of a type and a slot."""
    return kind * SLOTS + slot


def is_over(state: State, params: Params) -> jax.Array:
    """() bool: no step is left, or no item in the queue, pending, held or late."""
    return (state.step >= params.max_steps) | ~jnp.any(in_queue(state))


def in_queue(state: State) -> jax.Array:
    """[12] bool: pending, held or late."""
    return (state.status >= PENDING) & (state.status <= LATE)


def affordable(state: State, share: jax.Array | float = 1.0) -> jax.Array:
    """[12] bool: energy and budget suffice for this share of an execution's costs."""
    return (share * state.energy_cost <= state.energy) & (share * state.budget_cost <= state.budget)


def mask(state: State, params: Params) -> tuple[jax.Array, ...]:
    """Which items each type may be applied to: a [12] bool for each of ACTION_TYPES.

    A pending item can be executed and optimized if energy and budget suffice, deferred if its
    domain allows, and always delegated. A late item can be executed (in vain) or delegated,
    which closes it. Nothing can be done with held items, empty slots and items that have
    left. All True in a finished state.
    """
    pending, late = state.status == PENDING, state.status == LATE
    deferrable = pick(params.domains.deferrable, state.domain) > 0
    over = is_over(state, params)
    return (
        ((pending | late) & affordable(state)) | over,
        (pending & deferrable) | over,
        pending | late | over,
        (pending & affordable(state, params.optimize_cost)) | over,
    )


def target(state: State, action: jax.Array, params: Params) -> jax.Array:
    """[12] bool, True in the slot of a legal action; all False if the action is illegal."""
    kind, slot = split(action)
    of_kind = jnp.zeros(SLOTS, bool)
    for number, legal in enumerate(mask(state, params)):
        of_kind = of_kind | (legal & (kind == number))
    return of_kind & (jnp.arange(SLOTS, dtype=jnp.int32) == slot)
