"""Actions of LifeStack: a type on a route, `route * T + type`; inspect a key; wait; roll back."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax.core import pick
from lifedrift_jax.life_stack.tables import MAY_ROLL_BACK
from lifedrift_jax.life_stack.types import Capacity, Params, State, World


def names(capacity: Capacity) -> tuple[str, ...]:
    """Names of all actions, in index order: route0:type0, ..., inspect:key0, ..., wait, rollback.

    A task's own names of them are in `describe.action_names`.
    """
    routes, types = range(capacity.routes), range(capacity.types)
    on_routes = [f"route{route}:type{kind}" for route in routes for kind in types]
    inspections = [f"inspect:key{key}" for key in range(capacity.keys)]
    return (*on_routes, *inspections, "wait", "rollback")


def bit(index: jax.Array) -> jax.Array:
    """uint32 with the one bit of a set's member, an int32 in [0, 32)."""
    return jnp.uint32(1) << index.astype(jnp.uint32)


def bits(members: jax.Array, count: int) -> jax.Array:
    """[..., count] bool: which of the first `count` members uint32 sets [...] have."""
    places = jnp.arange(count, dtype=jnp.uint32).reshape((1,) * members.ndim + (count,))
    return (members[..., None] >> places) & jnp.uint32(1) != 0


def is_success(world: World, params: Params) -> jax.Array:
    """() bool: all success conditions hold."""
    return ~jnp.any(world.facts & params.success != 0)


def is_failure(world: World, params: Params) -> jax.Array:
    """() bool: a failure condition holds."""
    return jnp.any(world.facts & params.failure != 0)


def is_over(state: State, params: Params) -> jax.Array:
    """() bool: success, failure, or the horizon."""
    ended = is_success(state.world, params) | is_failure(state.world, params)
    return ended | (state.step >= params.max_steps)


def left(world: World, params: Params) -> jax.Array:
    """[R] uint32: the types still to be used on each route that is open, else none."""
    count = params.routes.types.shape[0]
    done = bits(world.closed | world.completed, count)
    return jnp.where(done, jnp.uint32(0), params.routes.types & ~world.used)


def inspectable(state: State) -> jax.Array:
    """() uint32, set of keys that are not shown. Word 0 of a set of facts tells their keys."""
    return ~state.shown[0]


def mask(state: State, params: Params, capacity: Capacity) -> jax.Array:
    """[A] bool, what is legal: all that the agent knows no reason against; see the module.

    A type on a route: the route is open and wants that type still. Inspect: the key is not
    shown. Wait: always. Roll back: once an episode, if the last action was legal and neither
    an inspection nor a rollback. All True in a finished state.
    """
    on_routes = bits(left(state.world, params), capacity.types).reshape(-1)
    inspections = bits(inspectable(state), capacity.keys)
    may_roll_back = state.rollback == MAY_ROLL_BACK
    rest = jnp.stack([jnp.ones_like(may_roll_back), may_roll_back])
    return jnp.concatenate([on_routes, inspections, rest]) | is_over(state, params)


class Target(NamedTuple):
    """An action taken apart. What it is not about is -1."""

    route: jax.Array  # () int32
    kind: jax.Array  # () int32, action type
    key: jax.Array  # () int32
    waits: jax.Array  # () bool
    rolls_back: jax.Array  # () bool
    legal: jax.Array  # () bool


def target(state: State, action: jax.Array, params: Params, capacity: Capacity) -> Target:
    """What an action, () int32, is about, and whether it is legal in `state`."""
    on_routes = capacity.routes * capacity.types
    first_rest = on_routes + capacity.keys
    on_route = (action >= 0) & (action < on_routes)
    on_key = (action >= on_routes) & (action < first_rest)
    waits, rolls_back = action == first_rest, action == first_rest + 1
    route = jnp.where(on_route, action // capacity.types, -1)
    kind = jnp.where(on_route, action % capacity.types, -1)
    key = jnp.where(on_key, action - on_routes, -1)
    wanted = pick(left(state.world, params), route) >> jnp.maximum(kind, 0).astype(jnp.uint32)
    unseen = inspectable(state) >> jnp.maximum(key, 0).astype(jnp.uint32)
    legal = (
        (on_route & (wanted & jnp.uint32(1) != 0))
        | (on_key & (unseen & jnp.uint32(1) != 0))
        | waits
        | (rolls_back & (state.rollback == MAY_ROLL_BACK))
    )
    named = on_route | on_key | waits | rolls_back
    return Target(route, kind, key, waits, rolls_back, legal | (named & is_over(state, params)))
