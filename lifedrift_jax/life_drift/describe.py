"""Life Drift in words: observations, actions and grades for people, servers and agents.

Every family has a `describe` module, and what serves or prints a family needs only that
and the registry. It offers, outside compiled code and for one episode at a time:

    observation(state, params, ..., task_id=None) -> dict   the agent's view, plain Python
    paragraph(state, params, ..., task_id=None) -> str      the same as text to read
    action_names(params) -> tuple of names                  of all actions, in index order
    legal_actions(state, params) -> list of names           in index order
    checked_action(action, state, params) -> index          or ValueError with the legal ones
    grade_components(state, params) -> dict                 name -> weight and value
    outcome(before, action, step, params) -> str            one step in words

where `...` are words that a family's numbers do not hold, here the goals that the agent
named with its actions. Dynamics never import this module.
"""

import bisect
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Step, one_episode
from lifedrift_jax.life_drift import dynamics, graders, words
from lifedrift_jax.life_drift.tables import ACTIONS, COMPONENTS, PHASES, TASKS, VARIABLES
from lifedrift_jax.life_drift.types import Params, State
from lifedrift_jax.names import checked_index, spaced

_RECENT = 3  # actions kept in State.recent
_WORTH_TELLING = 0.005  # smallest change of a variable that `outcome` mentions

# Compiled, so that the bits are those of Env.grade.
_components = jax.jit(graders.components)


@jax.jit
def _packed(state: State, params: Params) -> tuple[jax.Array, jax.Array]:
    """What `observation` reads, in two arrays: fetching scalars one by one is slow."""
    numbers = [getattr(state, name) for name in words.FIELDS.values()]
    # The phase of a state is that of its step count; before the first step, morning.
    phase = dynamics.day_phase(state.step, params.max_steps)
    codes = [params.task, state.recent, phase, state.step, params.max_steps]
    return jnp.stack(numbers), jnp.stack(codes)


def observation(
    state: State,
    params: Params,
    target_goals: Sequence[str | None] = (),
    task_id: str | None = None,
) -> dict[str, Any]:
    """The agent's view of one episode, ready for JSON.

    Args:
        state: of one episode, not a batch.
        params: its params.
        target_goals: goals named with the actions so far, oldest first, None where none
            was; only those of the last three actions are read.
        task_id: the id to report, such as `life_drift/drift_correction-v0`; by default the
            task's name.

    Returns:
        goal_alignment_score, drift_score, energy_level, fatigue, focus_score: floats in
        [0, 1]; goals: names; recent_actions: what the user did last, three texts, oldest
        first; time_of_day: a name of `tables.PHASES`; step_number (steps taken), max_steps:
        ints; task_id, task_description: texts.

    Raises:
        ValueError: `state` is a batch, or a target goal is none of the task's.
    """
    numbers, codes = jax.device_get(_packed(one_episode(state), params))
    task_index, recent, phase, step, max_steps = codes.tolist()
    task = list(TASKS)[task_index]
    return {
        **dict(zip(words.FIELDS, numbers.tolist(), strict=True)),
        "goals": list(TASKS[task].goals),
        "recent_actions": _recent_actions(task, recent, step, target_goals),
        "time_of_day": PHASES[phase],
        "step_number": step,
        "max_steps": max_steps,
        "task_id": task if task_id is None else task_id,
        "task_description": TASKS[task].description,
    }


def paragraph(
    state: State,
    params: Params,
    target_goals: Sequence[str | None] = (),
    task_id: str | None = None,
) -> str:
    """`observation` as text for people and language models; arguments as there."""
    seen = observation(state, params, target_goals, task_id)
    levels = [
        f"{name} is {_level(seen[field])} ({seen[field]:.2f})"
        for field, name in words.FIELDS.items()
    ]
    return words.PARAGRAPH.format(
        task_id=seen["task_id"],
        task_description=seen["task_description"],
        step_number=seen["step_number"],
        max_steps=seen["max_steps"],
        time_of_day=spaced(seen["time_of_day"]),
        goals=_listed([spaced(goal) for goal in seen["goals"]]),
        levels=_listed(levels).capitalize(),
        recent_actions=_listed(seen["recent_actions"]),
        threshold=float(params.cascade_threshold),
    )


def action_names(params: Params) -> tuple[str, ...]:
    """Names of all actions, the same for every task."""
    return tuple(ACTIONS)


def legal_actions(state: State, params: Params) -> list[str]:
    """Names of the actions that are legal in `state`: in this family always all six."""
    return list(ACTIONS)


def checked_action(action: Any, state: State | None = None, params: Params | None = None) -> int:
    """The index of a legal action.

    Args:
        action: a name of `tables.ACTIONS`, or an integer in [0, 6).
        state, params: where it is to be taken; not needed in this family, whose actions are
            legal everywhere.

    Raises:
        ValueError: anything else, such as an unknown name, 6, -1, 2.0, "2" or True; lists
            the legal actions.
    """
    return checked_index("action", action, ACTIONS)


def checked_goal(task: str, goal: Any) -> str:
    """The name of one of a task's goals.

    Args:
        task: a name of `tables.TASKS`.
        goal: a name of the task's goals, or its index.

    Raises:
        ValueError: an unknown task or goal; lists the legal ones.
    """
    names = list(TASKS)
    goals = TASKS[names[checked_index("task", task, names)]].goals
    return goals[checked_index(f"goal of {task}", goal, goals)]


def grade_components(state: State, params: Params) -> dict[str, dict[str, float]]:
    """What the grade is made of: name -> {"weight", "value"}, those with a weight above 0.

    The sum of weight x value, clamped to [grade_low, grade_high], is the grade so far; it
    is final once the last step is taken.
    """
    weights, values = jax.device_get((params.grade_weights, _components(state, params)))
    return {
        name: {"weight": weight, "value": float(value)}
        for name, weight, value in zip(COMPONENTS, weights.tolist(), values, strict=True)
        if weight > 0
    }


def outcome(before: State, action: Any, step: Step, params: Params) -> str:
    """One step in words: what changed most, whether the cascade struck, the reward.

    Args:
        before: the state in which the action was taken.
        action: what was taken, as an integer; one out of range is told as such.
        step: what `Env.step` (or `advance`) returned for it.
        params: the episode's params.
    """
    if int(before.step) >= int(params.max_steps):
        return words.ALREADY_OVER
    told = [
        words.INVALID.format(action=int(action))
        if step.info["invalid_action"]
        else _change(before, ACTIONS[int(action)], step.state)
    ]
    if step.state.cascade_steps > before.cascade_steps:
        told.append(words.CASCADE)
    told.append(words.REWARD.format(reward=float(step.reward)))
    if step.terminated:
        told.append(words.FINISHED)
    return " ".join(told)


def _change(before: State, action: str, after: State) -> str:
    """The two largest changes of a step, if worth telling, as a sentence."""
    changes = {
        name: float(getattr(after, name)) - float(getattr(before, name)) for name in VARIABLES
    }
    largest = sorted(changes.items(), key=lambda item: -abs(item[1]))[:2]
    texts = [
        f"{name} {'rose' if change > 0 else 'fell'} by {abs(change):.2f}"
        for name, change in largest
        if abs(change) >= _WORTH_TELLING
    ]
    if not texts:
        return words.UNCHANGED.format(action=action)
    return words.CHANGED.format(action=action, changes=_listed(texts))


def _recent_actions(
    task: str, recent: int, step: int, target_goals: Sequence[str | None]
) -> list[str]:
    """The last three behaviours, oldest first; habits stand in for steps not yet taken."""
    named = [None if goal is None else checked_goal(task, goal) for goal in target_goals[-_RECENT:]]
    told = []
    for age in range(min(step, _RECENT)):
        digit = recent >> (3 * age) & 7
        wordings = tuple(words.BEHAVIOURS.values())[digit - 1]
        goal = named[-1 - age] if age < len(named) else None
        for_goal = "" if goal is None else words.FOR_GOAL.format(goal=spaced(goal))
        told.append(wordings[(step - 1 - age) % len(wordings)].format(goal=for_goal))
    return [*TASKS[task].habits, *reversed(told)][-_RECENT:]


def _level(value: float) -> str:
    return words.LEVELS[bisect.bisect_right(words.LEVEL_BOUNDS, value)]


def _listed(items: Sequence[str]) -> str:
    """a, b and c."""
    return ", ".join(items[:-1]) + " and " + items[-1] if len(items) > 1 else items[0]
