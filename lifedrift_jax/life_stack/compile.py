"""A Task compiled: padded arrays, checked to be solvable, with its best expected return."""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.life_stack import beliefs, tables, texts
from lifedrift_jax.life_stack.layout import ABSENT, Layout
from lifedrift_jax.life_stack.schema import ExoEvent, Task
from lifedrift_jax.life_stack.search import MAX_STATES
from lifedrift_jax.life_stack.types import (
    Capacity,
    Events,
    Milestones,
    Params,
    Prior,
    Routes,
    Shaping,
    Writes,
)
from lifedrift_jax.life_stack.validate import validate


def compile_task(
    task: Task,
    capacity: Capacity | None = None,
    *,
    best_return: float | None = None,
    max_states: int = MAX_STATES,
) -> Params:
    """The arrays of a task.

    Args:
        task: what to compile; it is not changed.
        capacity: sizes of the arrays, those of the env that plays it.
        best_return: its best expected return, if it is known; by default it is searched for.
        max_states: states that the search may visit.

    Returns:
        Params, float32, int32 and uint32 leaves. If the search needs more states than it may
        visit, a warning says so, and `best_return` is an upper bound.

    Raises:
        ValueError: the task makes no sense, does not fit, or no actions lead to success;
            names the field, its value, and what is legal.
    """
    validate(task)
    layout = Layout(copy.deepcopy(task), capacity or Capacity())
    params = _arrays(layout)
    _check(layout, params)
    if best_return is None:
        best_return = _best_return(params, layout, max_states)
    texts.keep(layout)
    return replace(params, best_return=jnp.float32(best_return))


def _best_return(params: Params, layout: Layout, max_states: int) -> float:
    solution = beliefs.solve(params, layout.capacity, max_states=max_states)
    if solution.upper_success <= 0:
        raise ValueError("success_conditions cannot all be met by any actions before the end")
    if solution.upper_return <= 0:
        raise ValueError(
            f"viable_routes and milestones pay {solution.upper_return:g} at best: a task needs a "
            "best return above 0"
        )
    if not solution.exact:
        warnings.warn(
            f"task {layout.task.id!r} needs more than {max_states:,} states: whether it can be "
            f"solved is unknown; its best return is in [{solution.expected_return:g}, "
            f"{solution.upper_return:g}], and scores refer to the upper bound",
            stacklevel=4,
        )
    return solution.upper_return


def _arrays(layout: Layout) -> Params:
    """Everything but the best return."""
    task, room = layout.task, layout.capacity
    visible = layout.about(task.visible_world)
    # Padding keys count as shown: there is nothing to inspect.
    visible[0] |= np.uint32((2**32 - 1) & ~((1 << len(layout.keys)) - 1))
    unseen = [key for key in task.hidden_state if key not in task.visible_world]
    start = {key: layout.start.get(key, ABSENT) for key in layout.keys}
    failures = [layout.matching(condition) for condition in task.failure_conditions]
    params = Params(
        task=np.int32(texts.number(task)),
        num_types=np.int32(room.types),
        max_steps=np.int32(task.horizon),
        deadline=np.int32(task.constraints.get("deadline_step", tables.NO_DEADLINE)),
        budget=np.float32(task.constraints.get("budget_max", tables.NO_BUDGET)),
        keys=_padded([layout.about([key]) for key in layout.keys], room.keys, layout.set_of(())),
        start=layout.that(start),
        visible=visible,
        hidden=layout.about(unseen),
        missed=layout.writes({tables.MISSED_DEADLINE: True}),
        success=layout.contradicting(task.success_conditions),
        failure=np.bitwise_or.reduce([layout.set_of(()), *failures]),
        routes=_routes(layout),
        milestones=_milestones(layout),
        events=_events(layout),
        prior=_prior(layout),
        best_return=np.float32(1),
        shaping=Shaping(*np.zeros(3, np.float32)),
    )
    return jax.tree.map(jnp.asarray, params)


def _routes(layout: Layout) -> Routes:
    rows = [
        Routes(
            types=_members(layout.types, route.required_action_types),
            forbidden=layout.contradicting(
                {"key": key, "value": value} for key, value in route.preconditions.items()
            ),
            writes=layout.writes(route.consequences),
            closes=_members(layout.routes, route.closes_routes),
            unlocks=_members(layout.milestones, route.milestones_unlocked),
            reward=np.float32(route.final_reward),
            cost=np.float32(route.cost.get("money", 0)),
        )
        for route in layout.task.viable_routes
    ]
    nothing, none, zero = layout.set_of(()), np.uint32(0), np.float32(0)
    empty = Routes(none, nothing, Writes(nothing, nothing), none, none, zero, zero)
    return _padded(rows, layout.capacity.routes, empty)


def _milestones(layout: Layout) -> Milestones:
    rows = [
        Milestones(
            facts=layout.matching({"key": m.condition_key, "value": m.condition_value}),
            reward=np.float32(m.reward),
        )
        for m in layout.task.milestones
    ]
    empty = Milestones(layout.set_of(()), np.float32(0))
    return _padded(rows, layout.capacity.milestones, empty)


def _events(layout: Layout) -> Events:
    schedule = layout.task.event_schedule
    rows = [_event(schedule[position], layout) for position in layout.events]
    nothing = layout.set_of(())
    empty = Events(np.int32(tables.NO_EVENT), np.float32(0), Writes(nothing, nothing), np.uint32(0))
    return _padded(rows, layout.capacity.events, empty)


def _event(event: ExoEvent, layout: Layout) -> Events:
    by_chance = event.step == tables.BY_CHANCE
    return Events(
        step=np.int32(event.step),
        probability=np.float32(event.probability if by_chance else 0),
        writes=layout.writes(event.world_mutation | event.hidden_state_mutation),
        closes=_members(layout.routes, event.closes_routes),
    )


def _prior(layout: Layout) -> Prior:
    rows = []
    for lane, (key, weighted) in enumerate(layout.task.hidden_prior.items()):
        weights = np.array([weight for _, weight in weighted], np.float64)
        edges = np.concatenate([[0], np.cumsum(weights) / np.sum(weights)])
        edges[-1] = 1  # not a rounding below, which would leave a draw without a value
        for (value, _), low, high in zip(weighted, edges[:-1], edges[1:], strict=True):
            writes = layout.writes({key: value})
            rows.append(Prior(np.int32(lane), np.float32(low), np.float32(high), writes))
    nothing = layout.set_of(())
    empty = Prior(np.int32(0), np.float32(0), np.float32(0), Writes(nothing, nothing))
    return _padded(rows, layout.capacity.draws, empty)


def _check(layout: Layout, params: Params) -> None:
    """Raise ValueError for what needs arrays to be seen, but no search."""
    prior = np.bitwise_or.reduce(np.asarray(params.prior.writes.sets))
    drawn = layout.about(layout.task.hidden_prior)
    first = (np.asarray(params.start) & ~drawn) | prior  # all that may hold at reset
    for number, condition in enumerate(layout.task.failure_conditions):
        if np.any(first & layout.matching(condition)):
            raise ValueError(f"failure_conditions[{number}] is {condition}: it may hold at reset")
    conditions = layout.task.success_conditions
    if all(np.any(first & layout.matching(condition)) for condition in conditions):
        raise ValueError(f"success_conditions is {conditions}: they may all hold at reset")
    writes = (params.missed, params.routes.writes, params.events.writes)
    sets = [np.asarray(w.sets).reshape(-1, layout.capacity.words) for w in writes]
    possible = np.bitwise_or.reduce(np.concatenate([first[None], *sets]))
    unlocked = int(np.bitwise_or.reduce(np.asarray(params.routes.unlocks)))
    for number, milestone in enumerate(layout.task.milestones):
        facts = np.asarray(params.milestones.facts)[number]
        if not (np.any(facts & possible) or unlocked >> number & 1):
            raise ValueError(
                f"milestones[{number}].condition_value is {milestone.condition_value!r}: no route "
                f"or event gives {milestone.condition_key!r} this value, or unlocks the milestone"
            )


def _members(names: Sequence[str], chosen: Sequence[str]) -> np.uint32:
    """The set of the chosen names."""
    return np.uint32(sum(1 << names.index(name) for name in set(chosen)))


def _padded(rows: Sequence[Any], count: int, empty: Any) -> Any:
    """Rows as one pytree of arrays [count, ...], the last of them `empty`."""
    full = [*rows, *[empty] * (count - len(rows))]
    return jax.tree.map(lambda *x: np.stack(x), *full)
