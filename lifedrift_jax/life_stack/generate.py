"""Random solvable tasks as arrays, with their best expected return. Compiles and batches.

A task has n routes in random slots. Real routes set one of two keys of success, both of which
are needed, and pay a reward and a milestone; decoys pay little and set neither. A route
closes another with a certain chance when it completes, and events close routes at certain
steps. Some real routes have a precondition on a hidden key, which is true at the start with a
certain chance; for each there is another route that pays little and makes it true. Two real
routes for different keys of success stay open for each other, so every task can be solved.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax import rng
from lifedrift_jax.core import pick
from lifedrift_jax.life_stack import tables
from lifedrift_jax.life_stack.optimum import Deal, best_return
from lifedrift_jax.life_stack.types import (
    WORD,
    Capacity,
    Events,
    Milestones,
    Params,
    Prior,
    Routes,
    Shaping,
    Writes,
)

SLOTS, HIDDEN, EVENTS, TYPES = 8, 2, 8, 4  # most routes, hidden keys, events; action types
# Keys: a flag for each route, the keys of success, the hidden keys, missed_deadline.
SUCCESS = (SLOTS, SLOTS + 1)
HIDDEN_KEYS = (SLOTS + 2, SLOTS + 3)
MISSED = SLOTS + 4
SINGLES = np.array([1 << a for a in range(TYPES)], np.uint32)  # sets of one type, and of two
PAIRS = np.array([1 << a | 1 << b for a in range(TYPES) for b in range(a)], np.uint32)
CAPACITY = Capacity(SLOTS, MISSED + 1, SLOTS, EVENTS, TYPES, words=2, draws=2 * HIDDEN)


@dataclass(frozen=True)
class Knobs:
    """How hard generated tasks are. Sizes, so other knobs are another compilation.

    Attributes:
        routes: real routes, at least 3 and at least 2 + 2 hidden.
        decoys: routes that pay little and serve nothing; with `routes` at most 8.
        hidden: hidden keys, in [0, 2].
        events: events that close a route, in [0, 8].
        closing: chance that a route closes another, in [0, 1].
        horizon: longest horizon, in [5, 16]; tasks have between 4 and so many steps.
    """

    routes: int = 4
    decoys: int = 1
    hidden: int = 1
    events: int = 2
    closing: float = 0.25
    horizon: int = 8

    def __post_init__(self) -> None:
        """Raise ValueError for a knob out of range."""
        for name, low, high in (
            ("hidden", 0, HIDDEN),
            ("routes", max(3, 2 + 2 * self.hidden), SLOTS),
            ("decoys", 0, SLOTS - self.routes),
            ("events", 0, EVENTS),
            ("closing", 0, 1),
            ("horizon", 5, 16),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} is {value!r}: it must be in [{low}, {high}]")


class Draft(NamedTuple):
    """A task before it is written as facts. Its n routes stand as in `Deal`."""

    deal: Deal
    types: jax.Array  # [n] uint32, sets of action types
    reward: jax.Array  # [n] float32
    milestone: jax.Array  # [n] float32
    target: jax.Array  # [events] int32, the route that each closing event closes
    when: jax.Array  # [events] int32, at which step
    slot: jax.Array  # [n] int32, where each route stands in the arrays, a permutation


def generate(key: jax.Array, knobs: Knobs) -> Params:
    """A random task, of CAPACITY.

    Args:
        key: consumed; nothing else enters but the knobs. Batch with `jax.vmap`.
        knobs: static.

    Returns:
        Params; `task` is 0, for there are no texts.
    """
    draft = draw(key, knobs)
    return _params(draft, best_return(draft.deal, knobs.routes, knobs.horizon), knobs)


def draw(key: jax.Array, knobs: Knobs) -> Draft:
    """What is drawn of a task. `key` is consumed."""
    n = knobs.routes + knobs.decoys
    columns = jnp.concatenate(rng.uniform_pairs(rng.part_key(key, 0), 0, 32)).reshape(8, SLOTS)
    place, kind, size, pay, extra = columns[:5, :n]
    when, whom, rest = columns[5:]
    number = np.arange(n)
    real, gated = number < knobs.routes, number < knobs.hidden
    pays = real & (gated | (number >= 2 * knobs.hidden))  # neither a decoy nor an enabler
    actions = jnp.where(gated | (size < 0.4), jnp.int32(1), jnp.int32(2))
    horizon = 4 + _integer(rest[0], knobs.horizon - 3)
    reward = jnp.where(pays, _tenths(pay, 5, 30), _tenths(pay, 0, 3))
    reward = jnp.where(gated, _tenths(pay, 20, 40), reward)
    milestone = jnp.where(pays, _tenths(extra, 2, 15), 0)
    steps = 1 + _integer(when[: knobs.events], horizon - 1)
    # The last two real routes keep the task solvable: no event closes them.
    target = _integer(whom[: knobs.events], knobs.routes - 2)
    hit = target[:, None] == np.arange(n, dtype=np.int32)[None]  # [events, n]
    until = jnp.min(jnp.where(hit, steps[:, None], horizon), axis=0, initial=knobs.horizon)
    deal = Deal(
        actions=actions,
        value=reward + milestone,
        closes=_closes(rng.part_key(key, 1), n, knobs),
        until=until,
        chance=_tenths(rest[1 : 1 + knobs.hidden], 3, 8),
        horizon=horizon,
    )
    types = jnp.where(actions == 1, _pick(SINGLES, kind), _pick(PAIRS, kind))
    return Draft(deal, types, reward, milestone, target, steps, _ranks(place))


def _ranks(place: jax.Array) -> jax.Array:
    """[n] int32, a permutation: the rank of each entry, equal ones in their order."""
    number = np.arange(place.shape[0])
    earlier = (place[None] == place[:, None]) & (number[None] < number[:, None])
    return jnp.sum((place[None] < place[:, None]) | earlier, axis=1, dtype=jnp.int32)


def _closes(key: jax.Array, n: int, knobs: Knobs) -> jax.Array:
    """[n, n] bool, which route closes which. `key` is consumed."""
    uniform = jnp.concatenate(rng.uniform_pairs(key, 0, 32)).reshape(SLOTS, SLOTS)[:n, :n]
    spared = np.eye(n, dtype=bool)
    spared[knobs.routes - 2, knobs.routes - 1] = True
    return (uniform < knobs.closing) & ~spared


def _params(draft: Draft, best: jax.Array, knobs: Knobs) -> Params:
    """The arrays of a task."""
    deal = draft.deal
    keys = range(CAPACITY.keys)
    padding = np.array([2**WORD - 2**CAPACITY.keys, 0], np.uint32)
    visible = _all(k for k in keys if k not in HIDDEN_KEYS[: knobs.hidden]) | padding
    missed = Writes(_all([MISSED]), _that(MISSED, True))
    return Params(
        task=jnp.int32(0),
        num_types=jnp.int32(TYPES),
        max_steps=deal.horizon,
        deadline=deal.horizon,
        budget=jnp.float32(tables.NO_BUDGET),
        keys=jnp.asarray(np.stack([_all([k]) for k in keys])),
        start=jnp.asarray(np.bitwise_or.reduce([_that(k, False) for k in keys])),
        visible=jnp.asarray(visible),
        hidden=jnp.asarray(_all(HIDDEN_KEYS[: knobs.hidden])),
        missed=jax.tree.map(jnp.asarray, missed),
        success=jnp.asarray(np.bitwise_or.reduce([_not_true(k) for k in SUCCESS])),
        failure=jnp.asarray(_that(MISSED, True)),
        routes=_routes(draft, knobs),
        milestones=Milestones(
            jnp.asarray(np.stack([_that(flag, True) for flag in range(SLOTS)])),
            _placed(draft.milestone, draft.slot),
        ),
        events=_events(draft, knobs),
        prior=_prior(deal.chance),
        best_return=best,
        shaping=Shaping(*jnp.zeros(3, jnp.float32)),
    )


def _routes(draft: Draft, knobs: Knobs) -> Routes:
    """The routes, each in its slot."""
    n = draft.slot.shape[0]
    bits = jnp.uint32(1) << draft.slot.astype(jnp.uint32)  # [n], of each route's slot
    closes = jnp.where(draft.deal.closes, bits[None], jnp.uint32(0))
    closes = jnp.sum(closes, axis=1, dtype=jnp.uint32)
    success = [_becomes(SUCCESS[i % 2], True) for i in range(knobs.routes)]
    nothing = np.zeros((SLOTS, CAPACITY.words), np.uint32)
    gates, clears, sets = nothing.copy(), nothing.copy(), nothing.copy()
    for number, key in enumerate(HIDDEN_KEYS[: knobs.hidden]):
        gates[number] = _not_true(key)
    for number, writes in enumerate(success):
        clears[number], sets[number] = writes
    for number, key in enumerate(HIDDEN_KEYS[: knobs.hidden]):
        opens = _becomes(key, True)
        clears[knobs.hidden + number] |= opens.clears
        sets[knobs.hidden + number] |= opens.sets
    # Flags go with the slot, the rest with the route.
    flags = Writes(*(np.stack(x) for x in zip(*(_becomes(f, True) for f in range(n)), strict=True)))
    placed = partial(_placed, slot=draft.slot)
    return Routes(
        types=placed(draft.types),
        forbidden=placed(gates[:n]),
        writes=Writes(
            placed(clears[:n]) | _padded(flags.clears, SLOTS),
            placed(sets[:n]) | _padded(flags.sets, SLOTS),
        ),
        closes=placed(closes),
        unlocks=jnp.zeros(SLOTS, jnp.uint32),
        reward=placed(draft.reward),
        cost=jnp.zeros(SLOTS, jnp.float32),
    )


def _events(draft: Draft, knobs: Knobs) -> Events:
    """The events, each of which closes a route."""
    closed = jax.vmap(pick, (None, 0))(draft.slot, draft.target).astype(jnp.uint32)
    unused = jnp.full(EVENTS - knobs.events, tables.NO_EVENT, jnp.int32)
    nothing = jnp.zeros((EVENTS, CAPACITY.words), jnp.uint32)
    return Events(
        step=jnp.concatenate([draft.when, unused]),
        probability=jnp.zeros(EVENTS, jnp.float32),
        writes=Writes(nothing, nothing),
        closes=_padded(jnp.uint32(1) << closed, EVENTS),
    )


def _prior(chance: jax.Array) -> Prior:
    """Two rows for each hidden key: it is true below its chance, else false."""
    zero, one = jnp.zeros_like(chance), jnp.ones_like(chance)
    rows = [
        _becomes(key, value) for value in (True, False) for key in HIDDEN_KEYS[: chance.shape[0]]
    ]
    nothing = Writes(*np.zeros((2, CAPACITY.words), np.uint32))
    rows += [nothing] * (CAPACITY.draws - len(rows))
    lane = jnp.arange(chance.shape[0], dtype=jnp.int32)
    return Prior(
        lane=_padded(jnp.concatenate([lane, lane]), CAPACITY.draws),
        low=_padded(jnp.concatenate([zero, chance]), CAPACITY.draws),
        high=_padded(jnp.concatenate([chance, one]), CAPACITY.draws),
        writes=Writes(*(jnp.asarray(np.stack(x)) for x in zip(*rows, strict=True))),
    )


# Facts: word 0 says which keys are absent; bits 2k and 2k + 1 of word 1 that key k is false, true.


def _that(key: int, value: bool) -> np.ndarray:
    return np.array([0, 1 << 2 * key + value], np.uint32)


def _not_true(key: int) -> np.ndarray:
    return np.array([1 << key, 1 << 2 * key], np.uint32)


def _all(keys: Iterable[int]) -> np.ndarray:
    """All facts of some keys."""
    sets = [_not_true(key) | _that(key, True) for key in keys]
    return np.bitwise_or.reduce([np.zeros(CAPACITY.words, np.uint32), *sets])


def _becomes(key: int, value: bool) -> Writes:
    return Writes(_all([key]), _that(key, value))


def _placed(values: jax.Array | np.ndarray, slot: jax.Array) -> jax.Array:
    """[SLOTS, ...], the entries of routes in their slots, zeros elsewhere."""
    values, here = jnp.asarray(values), jnp.arange(SLOTS, dtype=jnp.int32)
    placed = jnp.zeros((SLOTS, *values.shape[1:]), values.dtype)
    for route in range(values.shape[0]):
        chosen = (here == slot[route]).reshape(SLOTS, *(1,) * (values.ndim - 1))
        placed = jnp.where(chosen, values[route], placed)
    return placed


def _padded(values: jax.Array, count: int) -> jax.Array:
    """[count, ...], zeros after `values`."""
    return jnp.pad(values, [(0, count - values.shape[0]), *[(0, 0)] * (values.ndim - 1)])


def _integer(uniform: jax.Array, count: jax.Array | int) -> jax.Array:
    """Uniform int32 in [0, count) from uniforms in (0, 1)."""
    return jnp.floor(uniform * jnp.asarray(count).astype(jnp.float32)).astype(jnp.int32)


def _tenths(uniform: jax.Array, low: int, high: int) -> jax.Array:
    """Uniform multiples of 0.1 in [low / 10, high / 10], float32."""
    return (low + _integer(uniform, high - low + 1)).astype(jnp.float32) * jnp.float32(0.1)


def _pick(table: np.ndarray, uniform: jax.Array) -> jax.Array:
    """An entry of a table for each uniform in (0, 1)."""
    return pick(jnp.asarray(table), _integer(uniform, len(table)))
