"""The built-in tasks: `build` makes them of `library_table` and `library_texts`.

What the difficulty d changes, from what the row of a task says for its own difficulty:

* the deadline and the horizon come a step earlier for each level more;
* an event keeps its share of the time until the deadline, rounded up to a whole step;
* the budget is (12 - d) / 10 of the row's;
* each level more adds a decoy, a route of one action that pays little and serves nothing; one
  of the four closes a good route.
"""

import json
import math
from functools import cache
from importlib import resources

from lifedrift_jax.life_stack.library_table import DECOYS, TABLE, Crisis, Turn, Way
from lifedrift_jax.life_stack.library_texts import DECOY_TEXTS, TEXTS, Texts
from lifedrift_jax.life_stack.schema import ExoEvent, Milestone, Route, Task
from lifedrift_jax.life_stack.tables import MISSED_DEADLINE, TASKS
from lifedrift_jax.names import unknown

FILE = "life_stack.json"  # written by benchmarks/solve_life_stack.py
DIFFICULTIES = range(1, 6)
NAMES = tuple(TASKS)


def build(name: str, difficulty: int | None = None) -> Task:
    """A built-in task.

    Args:
        name: one of `NAMES`.
        difficulty: in [1, 5]; by default the task's own.

    Returns:
        A new Task.

    Raises:
        ValueError: no such task, or a difficulty out of range.
    """
    row, level = _checked(name, difficulty)
    texts, harder = TEXTS[name], level - TASKS[name].difficulty
    usual = row.length + row.spare
    deadline = usual - harder
    world = _world(row)
    visible = world if row.visible is None else row.visible.split()
    return Task(
        id=name,
        domain=name,
        goal=texts.goal,
        constraints={"budget_max": row.budget * (12 - level) // 10, "deadline_step": deadline},
        hidden_state={key: next(iter(values)) for key, values in row.hidden.items()},
        mutable_world=world,
        visible_world={key: world[key] for key in visible},
        success_conditions=[{"key": key, "value": True} for key in row.success.split()],
        failure_conditions=[{"key": MISSED_DEADLINE, "value": True}],
        event_schedule=[
            _event(event, turn, math.ceil(turn.step * deadline / usual), texts)
            for event, turn in row.events.items()
        ],
        viable_routes=[*_routes(row, texts), *_decoys(row, row.decoys + harder)],
        milestones=_milestones(row, texts),
        horizon=deadline + row.late,
        difficulty=level,
        domain_metadata={"story": texts.story},
        hidden_prior={
            key: [[value, weight] for value, weight in values.items()]
            for key, values in row.hidden.items()
            if len(values) > 1
        },
    )


def FlightCrisisTask() -> Task:  # noqa: N802 - the LifeStack text calls it so
    """The built-in task of the LifeStack text, flight_crisis."""
    return build("flight_crisis")


def best_return(task_name: str, difficulty: int | None = None) -> float:
    """The best expected return of a built-in task, as the search found it.

    Args, errors: as of `build`.
    """
    _, level = _checked(task_name, difficulty)
    return _solved()[f"{task_name}/{level}"]["best_return"]


@cache
def _solved() -> dict[str, dict[str, float]]:
    text = resources.files("lifedrift_jax").joinpath("data", FILE).read_text(encoding="utf-8")
    return json.loads(text)


def _checked(name: str, difficulty: int | None) -> tuple[Crisis, int]:
    """The row of a task, and the difficulty."""
    if name not in NAMES:
        raise unknown("built-in task", name, NAMES)
    level = TASKS[name].difficulty if difficulty is None else difficulty
    if isinstance(level, bool) or level not in DIFFICULTIES:
        raise ValueError(f"difficulty is {level!r}: it must be a whole number from 1 to 5")
    return TABLE[name], int(level)


def _world(row: Crisis) -> dict[str, bool | str]:
    """Keys that are not hidden -> their first values."""
    flags = [_flag(route, way) for route, way in row.routes.items()]
    return {**row.world, **dict.fromkeys([*flags, *row.success.split()], False)}


def _flag(route: str, way: Way) -> str:
    return way.flag or f"{route}_done"


def _consequences(route: str, way: Way) -> dict[str, bool | str]:
    return {**dict.fromkeys([_flag(route, way), *way.serves.split()], True), **way.sets}


def _routes(row: Crisis, texts: Texts) -> list[Route]:
    return [
        Route(
            id=route,
            name=texts.routes[route][0],
            description=texts.routes[route][1],
            required_action_types=way.types.split(),
            preconditions=dict(way.needs),
            consequences=_consequences(route, way),
            closes_routes=way.closes.split(),
            milestones_unlocked=[f"m{number}"],
            final_reward=way.reward,
            cost={"money": way.cost} if way.cost else {},
        )
        for number, (route, way) in enumerate(row.routes.items(), start=1)
    ]


def _decoys(row: Crisis, count: int) -> list[Route]:
    """The first `count` decoys, none if it is below 1."""
    return [
        Route(
            id=decoy,
            name=DECOY_TEXTS[decoy][0],
            description=DECOY_TEXTS[decoy][1],
            required_action_types=[kind],
            preconditions={},
            consequences={},
            closes_routes=row.traps.get(decoy, "").split(),
            milestones_unlocked=[],
            final_reward=reward,
        )
        for decoy, (kind, reward) in list(DECOYS.items())[: max(count, 0)]
    ]


def _milestones(row: Crisis, texts: Texts) -> list[Milestone]:
    return [
        Milestone(
            id=f"m{number}",
            description=f"Done: {texts.routes[route][0]}",
            condition_key=_flag(route, way),
            condition_value=True,
            reward=way.milestone,
        )
        for number, (route, way) in enumerate(row.routes.items(), start=1)
    ]


def _event(event: str, turn: Turn, step: int, texts: Texts) -> ExoEvent:
    return ExoEvent(
        step=step,
        probability=1.0,
        id=event,
        description=texts.events[event],
        world_mutation=dict(turn.world),
        hidden_state_mutation=dict(turn.hidden),
        closes_routes=turn.closes.split(),
    )
