"""Actions of TaskFlow: an action is a type and an item's slot, `type * 12 + slot`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax.core import pick
from lifedrift_jax.task_flow.tables import ACTION_TYPES, LATE, PENDING, SLOTS
from lifedrift_jax.task_flow.types import Params, State

NAMES = tuple(f"{kind}:{slot}" for kind in ACTION_TYPES for slot in range(SLOTS))


def split(action: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(type, slot), each int32 like `action`, of an action in [0, 48)."""
    return action // SLOTS, action % SLOTS


def join(kind: jax.Array, slot: jax.Array) -> jax.Array:
    """The action of a type and a slot, the reverse of `split`."""
    return kind * SLOTS + slot


def is_over(state: State, params: Params) -> jax.Array:
    """() bool: no step is left, or no item in the queue, pending, held or late."""
    return (state.step >= params.max_steps) | ~jnp.any(in_queue(state))


def in_queue(state: State) -> jax.Array:
    """[12] bool: pending, held or late."""
    return (state.status >= PENDING) & (state.status <= LATE)


def affordable(state: State) -> jax.Array:
    """[12] bool: energy and budget suffice for an execution."""
    return _affordable(state, state, 1.0)


def mask(state: State, params: Params) -> tuple[jax.Array, ...]:
    """Which items each type may be applied to: a [12] bool for each of ACTION_TYPES.

    A pending item can be executed and optimized if energy and budget suffice, deferred if its
    domain allows, and always delegated. A late item can be executed (in vain) or delegated,
    which closes it. Nothing can be done with held items, empty slots and items that have
    left. All True in a finished state.
    """
    return _allowed(state, state, is_over(state, params), params)


class Target(NamedTuple):
    """An action, and the item that it is applied to.

    Attributes:
        kind: () int32, its type; outside [0, 4) if there is no such action.
        slot: () int32, its item's slot.
        chosen: [12] bool, True in that slot.
        legal: () bool.
    """

    kind: jax.Array
    slot: jax.Array
    chosen: jax.Array
    legal: jax.Array

    def of(self, column: jax.Array) -> jax.Array:
        """() the item's entry of a [12] column."""
        # Not a masked sum: on CPU, XLA makes a pass of its own of each float reduction.
        return pick(column, self.slot)


def target(state: State, action: jax.Array, params: Params) -> Target:
    """The item of an action, () int32, and whether the action is legal in `state`."""
    kind, slot = split(action)
    found = Target(kind, slot, jnp.arange(SLOTS, dtype=jnp.int32) == slot, jnp.bool_(False))
    item = _Item(*(found.of(getattr(state, name)) for name in _Item._fields))
    allowed = _allowed(item, state, is_over(state, params), params)
    named = [(kind == number) & holds for number, holds in enumerate(allowed)]
    return found._replace(legal=named[0] | named[1] | named[2] | named[3])


class _Item(NamedTuple):
    """What decides whether an action is legal, of one item."""

    status: jax.Array
    domain: jax.Array
    energy_cost: jax.Array
    budget_cost: jax.Array


def _allowed(
    item: State | _Item, state: State, over: jax.Array, params: Params
) -> tuple[jax.Array, ...]:
    """Whether each of ACTION_TYPES may be applied, to one item or to a [12] column of them."""
    pending, late = item.status == PENDING, item.status == LATE
    deferrable = pick(params.domains.deferrable, item.domain) > 0
    return (
        ((pending | late) & _affordable(item, state, 1.0)) | over,
        (pending & deferrable) | over,
        pending | late | over,
        (pending & _affordable(item, state, params.optimize_cost)) | over,
    )


def _affordable(item: State | _Item, state: State, share: jax.Array | float) -> jax.Array:
    energy, budget = share * item.energy_cost, share * item.budget_cost
    return (energy <= state.energy) & (budget <= state.budget)
