"""The rules of LifeStack: draw, then move. Pure functions, no API.

One step, in this order: events; the action; milestones by condition; the step count; the
deadline. Beside the world goes the world as it would be without the last action, which the
same events reach, and which a rollback makes the world.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax import rng
from lifedrift_jax.core import Tree, always, fence, integer_action, pick, select
from lifedrift_jax.life_stack import actions, graders, tables
from lifedrift_jax.life_stack.actions import Target, bit, bits
from lifedrift_jax.life_stack.types import (
    Capacity,
    Noise,
    Params,
    State,
    World,
    Writes,
)


def draw(key: jax.Array, capacity: Capacity) -> Noise:
    """All draws of a step, [E] float32 in (0, 1) with 16 bits each (see `rng`).

    `key` is consumed; nothing else enters.
    """
    return Noise(_uniforms(key, capacity.events))


def initial_state(key: jax.Array, params: Params) -> State:
    """The first state of an episode: the start, and what is drawn. `key` is consumed."""
    prior, facts = params.prior, params.start
    drawn = _uniforms(key, prior.lane.shape[0])
    for row in range(prior.lane.shape[0]):
        uniform = pick(drawn, prior.lane[row]).astype(prior.low.dtype)
        holds = (prior.low[row] <= uniform) & (uniform < prior.high[row])
        facts = jnp.where(holds, _written(facts, _row(prior.writes, row)), facts)
    none = jnp.zeros_like(params.routes.types[0])
    world = World(facts, none, none, none, jnp.zeros_like(params.routes.types))
    count = jnp.zeros_like(params.max_steps)
    return State(
        world=world,
        undo=world,
        shown=params.visible,
        fired=none,
        rollback=jnp.full_like(count, tables.NOTHING_TO_UNDO),
        step=count,
        last_action=jnp.full_like(count, -1),
        last_outcome=jnp.full_like(count, tables.NONE),
    )


def transition(
    state: State, action: jax.Array, noise: Noise, params: Params, capacity: Capacity
) -> tuple[State, jax.Array]:
    """Move from an unfinished state.

    Args:
        state: the state before.
        action: () integer, see `actions`; an illegal one has no effect of its own and pays
            0: events run, while milestones wait for the next legal one.
        noise: the step's draws.
        params: the task.
        capacity: the sizes of its arrays.

    Returns:
        (state after, reward): reward () float.

    Raises:
        TypeError: `action` is no integer of shape ().
    """
    action = integer_action(action)
    target = actions.target(state, action, params, capacity)
    happens, fired = _happening(state, noise, params)
    happens, fired, target = _fence((happens, fired, target))
    before, undo = (_events(world, happens, params) for world in (state.world, state.undo))
    before, undo = _fence((before, undo))
    acted, outcome = _act(before, state, target, params)
    acted, outcome = _fence((select(target.rolls_back & target.legal, undo, acted), outcome))
    step = state.step + 1
    world, undo = (
        _deadline(_milestones(world, target.legal, params), step, params)
        for world in (acted, before)
    )
    world, undo = _fence((world, undo))
    after = State(
        world=world,
        undo=undo,
        shown=jnp.where(target.legal, state.shown | _facts_of(target.key, params), state.shown),
        fired=fired,
        rollback=_rollback(state, target),
        step=step,
        last_action=jnp.where(target.legal, action, -1),
        last_outcome=outcome,
    )
    return after, _reward(state.world, world, target, outcome, params)


class _Effect(NamedTuple):
    """What a route has when it completes, the row of the route that is acted on."""

    forbidden: jax.Array  # [W] uint32
    writes: Writes  # [W]
    closes: jax.Array  # () uint32
    unlocks: jax.Array  # () uint32
    cost: jax.Array  # () float
    types: jax.Array  # () uint32


def _act(world: World, state: State, target: Target, params: Params) -> tuple[World, jax.Array]:
    """(the world after an action that is no rollback, its outcome).

    Args:
        world: after the events of this step.
        state: before them.
        target: the action.
    """
    routes, route = params.routes, jnp.maximum(target.route, 0)
    columns = (*(getattr(routes, name) for name in _Effect._fields),)
    row = _Effect(*jax.tree.map(lambda column: pick(column, route), columns))
    row = _fence(row)
    outcome = _fence(_outcome(world, state, target, row, params))
    here, kind = bit(route), bit(jnp.maximum(target.kind, 0))
    completed, burnt = outcome == tables.COMPLETED, outcome == tables.UNKNOWN
    taken = completed | (outcome == tables.PROGRESSED)
    numbers = jnp.arange(world.used.shape[0], dtype=jnp.int32)
    none = jnp.zeros_like(here)
    after = World(
        facts=jnp.where(completed, _written(world.facts, row.writes), world.facts),
        closed=world.closed | jnp.where(completed, row.closes, none) | jnp.where(burnt, here, none),
        completed=world.completed | jnp.where(completed, here, none),
        reached=world.reached | jnp.where(completed, row.unlocks, none),
        used=jnp.where(taken & (numbers == route), world.used | kind, world.used),
    )
    return after, outcome


def _outcome(world: World, state: State, target: Target, row: _Effect, params: Params) -> jax.Array:
    """() int32, what comes of an action: index into `tables.OUTCOMES`."""
    route = jnp.maximum(target.route, 0)
    unmet = world.facts & row.forbidden
    used = pick(world.used, route) | bit(jnp.maximum(target.kind, 0))
    completes = used == row.types
    spent = graders.spent(world, params)
    outcome = jnp.int32(tables.PROGRESSED)
    for holds, came in (  # the last one that holds counts
        (completes, tables.COMPLETED),
        (completes & (spent + row.cost > params.budget), tables.BUDGET),
        (jnp.any(unmet != 0), tables.PRECONDITION),
        (jnp.any(unmet & params.hidden & ~state.shown != 0), tables.UNKNOWN),
        (world.closed & bit(route) != 0, tables.CLOSED),
        (target.key >= 0, tables.INSPECTED),
        (target.rolls_back, tables.ROLLED_BACK),
        (target.waits, tables.WAITED),
        (~target.legal, tables.INVALID),
    ):
        outcome = jnp.where(holds, jnp.int32(came), outcome)
    return outcome


def _happening(state: State, noise: Noise, params: Params) -> tuple[jax.Array, jax.Array]:
    """([E] bool, the events of this step; () uint32, the set of all that have fired)."""
    events = params.events
    fired = bits(state.fired, events.step.shape[0])
    chance = (events.step == tables.BY_CHANCE) & (noise.event < events.probability) & ~fired
    happens = (events.step == state.step) | chance
    members = jnp.where(happens, bit(jnp.arange(fired.shape[0], dtype=jnp.int32)), jnp.uint32(0))
    return happens, state.fired | _union(members)


def _events(world: World, happens: jax.Array, params: Params) -> World:
    """The world after the events of a step, one after the other."""
    facts, closed, events = world.facts, world.closed, params.events
    for row in range(happens.shape[0]):
        facts = jnp.where(happens[row], _written(facts, _row(events.writes, row)), facts)
        closed = jnp.where(happens[row], closed | events.closes[row], closed)
    return replace(world, facts=facts, closed=closed)


def _milestones(world: World, looked_at: jax.Array, params: Params) -> World:
    """The world with the milestones whose condition holds marked as reached."""
    holds = jnp.any(params.milestones.facts & world.facts[None] != 0, axis=-1) & looked_at
    members = jnp.where(holds, bit(jnp.arange(holds.shape[0], dtype=jnp.int32)), jnp.uint32(0))
    return replace(world, reached=world.reached | _union(members))


def _deadline(world: World, step: jax.Array, params: Params) -> World:
    """The world with missed_deadline true if that step is reached without success."""
    missed = (step >= params.deadline) & ~actions.is_success(world, params)
    facts = jnp.where(missed, _written(world.facts, params.missed), world.facts)
    return replace(world, facts=facts)


def _rollback(state: State, target: Target) -> jax.Array:
    """() int32, whether the next action may be a rollback."""
    undoable = target.legal & (target.key < 0)
    after = jnp.where(undoable, tables.MAY_ROLL_BACK, tables.NOTHING_TO_UNDO)
    used = (target.rolls_back & target.legal) | (state.rollback == tables.ROLLBACK_USED)
    return jnp.where(used, tables.ROLLBACK_USED, after).astype(jnp.int32)


def _reward(
    before: World, after: World, target: Target, outcome: jax.Array, params: Params
) -> jax.Array:
    """() float: what is newly earned, less what a rollback takes back, and the shaping."""
    shaping, zero = params.shaping, jnp.zeros_like(params.best_return)
    taken = (outcome == tables.PROGRESSED) | (outcome == tables.COMPLETED)
    blocked = (outcome >= tables.CLOSED) & (outcome <= tables.BUDGET)
    shaped = (
        jnp.where(target.legal, shaping.step, zero)
        + jnp.where(taken, shaping.progress, zero)
        + jnp.where(blocked, shaping.blocked, zero)
    )
    new, old = (
        graders.earned(a.completed & ~b.completed, a.reached & ~b.reached, params)
        for a, b in ((after, before), (before, after))
    )
    return new - old + shaped


def _fence(x: Tree) -> Tree:
    """`x`, where several others are computed from it (see `core.fence`)."""
    return fence(always(), x)


def _facts_of(key: jax.Array, params: Params) -> jax.Array:
    """[W] uint32, the facts of a key, () int32; none for -1."""
    facts = pick(params.keys, jnp.maximum(key, 0))
    return jnp.where(key >= 0, facts, jnp.zeros_like(facts))


def _written(facts: jax.Array, writes: Writes) -> jax.Array:
    return (facts & ~writes.clears) | writes.sets


def _row(writes: Writes, row: int) -> Writes:
    return Writes(writes.clears[row], writes.sets[row])


def _union(members: jax.Array) -> jax.Array:
    """() uint32, the union of sets [n] uint32."""
    return jax.lax.reduce(members, jnp.uint32(0), jax.lax.bitwise_or, (0,))


def _uniforms(key: jax.Array, count: int) -> jax.Array:
    """[count] float32 in (0, 1), count at most 64."""
    return jnp.concatenate(rng.uniform_pairs(key, 0, (count + 1) // 2))[:count]
