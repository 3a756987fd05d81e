"""Exact search on a compiled task: what the best play without hindsight is worth.

First the graph: from every start that may be drawn, layer by layer, all states that actions and
events can lead to, moved by the env's own `dynamics`. On it, backward induction gives the
value of play that knows the hidden keys; as an information relaxation it bounds all play
from above (Brown, Smith and Sun 2010, Operations Research 58). Then the search over beliefs:
a belief is the states that are possible after what was seen, with their weights, and what
differs between two of them shows only when an observation does. Hindsight values order its
actions and cut those that cannot be best.

Types that a route wants are as good as each other, so only the first that is left is tried.
A rollback brings something only where something is uncertain, an inspection only of keys
whose value is drawn. What is left out cannot be better.
"""

from dataclasses import replace
from functools import partial
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.life_stack import actions, dynamics, tables
from lifedrift_jax.life_stack.types import Capacity, Noise, Params, State

MAX_STATES = 200_000  # by default
BATCH = 1024  # moves a compiled call makes
SUCCESS_WEIGHT = 1e-5  # of the chance of success beside the return: it decides ties
UNEXPLORED, OVER, ILLEGAL = -1, -2, -3  # in place of a child


class Layer(NamedTuple):
    """The states at one step, and where their moves lead: n states, A actions, O outcomes.

    Attributes:
        rows: [n, C] uint32, the states (see `_to_row`).
        action: [n, A] int32.
        child: [n, A, O] int32, index in the next layer, or UNEXPLORED, OVER, ILLEGAL.
        seen: [n, A, O] int64, equal where the agent sees the same after the move.
        reward: [n, A, O] float64.
        success: [n, A, O] float64, 1 where the move ends in success.
    """

    rows: np.ndarray
    action: np.ndarray
    child: np.ndarray
    seen: np.ndarray
    reward: np.ndarray
    success: np.ndarray


class Graph(NamedTuple):
    """All states of a task.

    Attributes:
        layers: one a step.
        weights: [worlds] float64, chances of the starts, the rows of layer 0.
        seen: [worlds] int64, equal where the starts look the same.
        chances: [O] float64, chances of the outcomes of events by chance.
        inspects: [A] bool, which columns of `Layer.action` inspect a key.
        wait: the action to wait.
        num_states: in all layers.
        exact: False if states were left unexplored.
    """

    layers: list[Layer]
    weights: np.ndarray
    seen: np.ndarray
    chances: np.ndarray
    inspects: np.ndarray
    wait: int
    num_states: int
    exact: bool


@partial(jax.jit, static_argnames="capacity")
def _move(rows, action, fires, params, uncertain, capacity):
    """Moves [B]: (rows after, what is seen of them, reward, over, success)."""

    def one(row, action, fires):
        state, reward = dynamics.transition(
            _to_state(row, params, capacity), action, Noise(fires), params, capacity
        )
        over = actions.is_over(state, params)
        success = actions.is_success(state.world, params)
        return _to_row(_canonical(state, uncertain)), _public(state), reward, over, success

    return jax.vmap(one)(rows, action, fires)


@partial(jax.jit, static_argnames="capacity")
def _look(rows, params, capacity):
    """Of states: [B, A] bool masks; [B, P] uint32, what is seen; [B] bool, see `_may_happen`."""

    def one(row):
        state = _to_state(row, params, capacity)
        return actions.mask(state, params, capacity), _public(state), _may_happen(state, params)

    return jax.vmap(one)(rows)


@jax.jit
def _first(facts, params):
    """([B, C] rows of first states with these facts [B, W],)."""
    state = dynamics.initial_state(jax.random.key(0), params)

    def one(facts):
        world = replace(state.world, facts=facts)
        return _to_row(replace(state, world=world, undo=world))

    return (jax.vmap(one)(facts),)


def explore(params: Params, capacity: Capacity, max_states: int) -> Graph:
    """The graph of a task.

    Args:
        params: of one task, concrete.
        capacity: its sizes.
        max_states: past it, states are left unexplored, those that have earned least.
    """
    starts, weights = _starts(params)
    fires, chances = _outcomes(params)
    keys = _worth_inspecting(params)
    uncertain = len(weights) > 1 or len(chances) > 1
    columns = capacity.routes + len(keys) + 1 + uncertain
    inspects = np.zeros(columns, bool)
    inspects[capacity.routes : capacity.routes + len(keys)] = True
    layers, rows, visited, exact = [], starts, 0, True
    horizon = int(params.max_steps)
    for step in range(horizon):
        visited += len(rows)
        action = _candidates(rows, keys, uncertain, params, capacity)
        layer, after, earned = _layer(rows, action, fires, uncertain, params, capacity)
        room = max(max_states - visited, 0) // max(horizon - step - 1, 1)
        if len(after) > room:
            after, layer, exact = *_cut(after, earned, layer, room), False
        layers.append(layer)
        rows = after
        if not len(rows):
            break
    wait = capacity.routes * capacity.types + capacity.keys
    _, public, _ = _batched(partial(_look, params=params, capacity=capacity), (starts,))
    return Graph(layers, weights, _unique(public)[1], chances, inspects, wait, visited, exact)


def states_of(rows: np.ndarray, params: Params, capacity: Capacity) -> State:
    """The states of rows [n, C]: leaves [n, ...]."""
    return jax.vmap(lambda row: _to_state(row, params, capacity))(rows)


def _layer(rows, action, fires, uncertain, params, capacity):
    """(the layer of `rows`, the rows of the next one, what they have earned)."""
    shape = (*action.shape, len(fires))
    legal = np.broadcast_to(action[..., None] >= 0, shape)
    index, column, outcome = np.nonzero(legal)
    moved, seen, reward, over, success = _batched(
        partial(_move, params=params, uncertain=jnp.bool_(uncertain), capacity=capacity),
        (rows[index], action[index, column], fires[outcome]),
    )
    after, place = _unique(moved[~over])
    _, view = _unique(np.concatenate([seen, over[:, None].astype(np.uint32)], axis=1))
    child = np.full(len(index), OVER, np.int32)
    child[~over] = place

    def table(values, empty, dtype):
        filled = np.full(shape, empty, dtype)
        filled[index, column, outcome] = values
        return filled

    layer = Layer(
        rows,
        action,
        table(child, ILLEGAL, np.int32),
        table(view, -1, np.int64),
        table(reward, 0, np.float64),
        table(over & success, 0, np.float64),
    )
    earned = np.zeros(len(after))
    earned[place] = reward[~over]
    return layer, after, earned


def _to_row(state: State) -> jax.Array:
    """[C] uint32, all numbers of a state."""
    leaves = [jax.lax.bitcast_convert_type(x, jnp.uint32) for x in jax.tree.leaves(state)]
    return jnp.concatenate([leaf.reshape(-1) for leaf in leaves])


def _to_state(row: jax.Array, params: Params, capacity: Capacity) -> State:
    """The state of a row."""
    template = jax.eval_shape(dynamics.initial_state, jax.random.key(0), params)
    leaves = jax.tree.leaves(template)
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = zip(jnp.split(row, ends), leaves, strict=True)
    typed = [
        jax.lax.bitcast_convert_type(part.reshape(leaf.shape), leaf.dtype) for part, leaf in parts
    ]
    return jax.tree.unflatten(jax.tree.structure(template), typed)


def _canonical(state: State, uncertain: jax.Array) -> State:
    """A state with what can no longer matter removed, so that equal futures are one state."""
    may = uncertain & (state.rollback == tables.MAY_ROLL_BACK)
    undo = jax.tree.map(lambda x, y: jnp.where(may, x, y), state.undo, state.world)
    return replace(
        state,
        undo=undo,
        rollback=jnp.where(uncertain, state.rollback, tables.NOTHING_TO_UNDO),
        last_action=jnp.full_like(state.last_action, -1),
        last_outcome=jnp.full_like(state.last_outcome, tables.NONE),
    )


def _public(state: State) -> jax.Array:
    """[P] uint32, what the agent can tell of a state."""
    world = state.world
    sets = (world.closed, world.completed, world.reached, state.fired)
    return jnp.concatenate([jnp.stack(sets), world.used, state.shown, world.facts & state.shown])


def _starts(params: Params) -> tuple[np.ndarray, np.ndarray]:
    """([worlds, C] rows of all starts that may be drawn, [worlds] float64 chances)."""
    prior = jax.tree.map(np.asarray, params.prior)
    chance = prior.high.astype(np.float64) - prior.low
    drawn = np.flatnonzero(chance > 0)
    lanes = [drawn[prior.lane[drawn] == lane] for lane in np.unique(prior.lane[drawn])]
    facts, weights = [], []
    for picked in product(*lanes):
        facts.append(np.asarray(params.start))
        for row in picked:
            facts[-1] = (facts[-1] & ~prior.writes.clears[row]) | prior.writes.sets[row]
        weights.append(np.prod(chance[list(picked)]))
    (rows,) = _batched(partial(_first, params=params), (np.stack(facts),))
    return rows, np.array(weights)


def _outcomes(params: Params) -> tuple[np.ndarray, np.ndarray]:
    """([O, E] float32 draws that make each set of events by chance fire, [O] its chance)."""
    probability = np.asarray(params.events.probability, np.float64)
    open_ = (np.asarray(params.events.step) == tables.BY_CHANCE) & (probability > 0)
    cases = [(0, 1) if p < 1 else (1,) for p in probability[open_]]
    fires = np.ones((int(np.prod([len(c) for c in cases])), len(probability)), np.float32)
    chances = np.ones(len(fires))
    for number, happens in enumerate(product(*cases)):
        chosen = np.array(happens, bool)
        fires[number, open_] = np.where(chosen, 0, 1)
        odds = np.where(chosen, probability[open_], 1 - probability[open_])
        chances[number] = np.prod(odds)
    return fires, chances


def _worth_inspecting(params: Params) -> list[int]:
    """Keys whose value is drawn, not shown from the start, and asked for in a condition."""
    clears = np.asarray(params.prior.writes.clears)
    drawn = np.bitwise_or.reduce(clears) & ~np.asarray(params.visible)
    asked = [params.routes.forbidden, params.milestones.facts]
    asked += [params.success[None], params.failure[None]]
    wanted = np.bitwise_or.reduce(np.concatenate(asked)) & drawn
    facts = np.asarray(params.keys)
    return [key for key in range(len(facts)) if np.any(facts[key] & wanted)]


def _candidates(rows, keys, uncertain, params, capacity) -> np.ndarray:
    """[n, A] int32, actions worth trying in each state; -1 = none in this column."""
    mask, _, may_wait = _batched(partial(_look, params=params, capacity=capacity), (rows,))
    wait = capacity.routes * capacity.types + capacity.keys
    on_routes = mask[:, : capacity.routes * capacity.types]
    on_routes = on_routes.reshape(-1, capacity.routes, capacity.types)
    first = np.argmax(on_routes, axis=-1) + np.arange(capacity.routes) * capacity.types
    columns = [np.where(np.any(on_routes, axis=-1), first, -1)]
    others = [capacity.routes * capacity.types + key for key in keys]
    columns += [np.where(mask[:, [a]], a, -1) for a in others]
    columns.append(np.where(may_wait, wait, -1)[:, None])
    if uncertain:
        columns.append(np.where(mask[:, [wait + 1]], wait + 1, -1))
    return np.concatenate(columns, axis=1).astype(np.int32)


def _may_happen(state: State, params: Params) -> jax.Array:
    """() bool, whether time can still bring anything but the end."""
    events = params.events
    asked = jnp.concatenate([params.routes.forbidden, params.milestones.facts])
    asked = jnp.any(asked & params.missed.clears[None] != 0) | jnp.any(
        params.success & params.missed.clears != 0
    )
    fired = actions.bits(state.fired, events.step.shape[0])
    to_come = (events.step >= state.step) | ((events.step == tables.BY_CHANCE) & ~fired)
    return asked | jnp.any(to_come)


def _cut(after, earned, layer: Layer, room: int) -> tuple[np.ndarray, Layer]:
    """The rows that have earned most, `room` of them, and the layer that leads to them."""
    kept = np.sort(np.argsort(-earned, kind="stable")[:room])
    number = np.full(len(after) + 1, UNEXPLORED, np.int32)
    number[kept] = np.arange(len(kept))
    child = np.where(layer.child >= 0, number[layer.child], layer.child)
    return after[kept], layer._replace(child=child)


def _batched(program, columns) -> tuple[np.ndarray, ...]:
    """A compiled program over rows [N, ...], BATCH at a time: one compilation for any N."""
    count, parts = len(columns[0]), []
    for first in range(0, max(count, 1), BATCH):
        chunk = [column[first : first + BATCH] for column in columns]
        short = BATCH - len(chunk[0])
        padded = [np.pad(x, [(0, short), *[(0, 0)] * (x.ndim - 1)]) for x in chunk]
        parts.append([np.asarray(x)[: BATCH - short] for x in program(*padded)])
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _unique(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the different rows, the place of each row among them)."""
    rows = np.ascontiguousarray(rows)
    opaque = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).reshape(-1)
    _, first, place = np.unique(opaque, return_index=True, return_inverse=True)
    return rows[first], place.reshape(-1)
