"""LifeStack in words: observations, actions and grades for people, servers and agents.

The same seven functions as in every family's `describe` (see `life_drift.describe`), outside
compiled code and for one episode at a time. A task that was compiled in
this process is told in its own words, any other in numbers (see `labels`). The value of a key
that is neither visible nor inspected enters no text. Dynamics never import this module.
"""

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from lifedrift_jax.core import Step, one_episode
from lifedrift_jax.life_stack import actions, labels, tables, words
from lifedrift_jax.life_stack.labels import Labels, members
from lifedrift_jax.life_stack.seen import Seen
from lifedrift_jax.life_stack.types import Params, State

_mask = partial(jax.jit, static_argnames="capacity")(actions.mask)


def action_names(params: Params) -> tuple[str, ...]:
    """[A] names of all actions in the task's own words, in index order.

    Such as "rebook_premium:communicate", "inspect:card_available", "wait", "rollback". Actions
    about padding have the names of `actions.names`.
    """
    return labels.of(params).actions


def observation(state: State, params: Params, task_id: str | None = None) -> dict[str, Any]:
    """The agent's view of one episode, ready for JSON.

    Args:
        state: of one episode, not a batch.
        params: its params.
        task_id: the id to report; by default the task's own.

    Returns:
        task_id, goal, story: texts; step_number (steps taken), steps_remaining: ints;
        deadline_in: steps until the deadline, int at least 0, None without one; money_spent:
        float; money_left: float, None without a budget; known: key -> live value of the keys
        that are visible or were inspected, None = absent; can_inspect: the other keys;
        routes: a dict each: id, name, description, status (open, completed or closed),
        actions_left (types still to be used, none unless it is open), preconditions (key ->
        value wanted), cost (money), final_reward, closes, unlocks (ids); milestones: a dict
        each: id, description, reached (bool), reward; events: those that have fired, a dict
        each: id, description; rollback_possible: bool; earned: float, rewards so far without
        shaping; last_action: its name, None if there was none or it was not legal;
        last_action_outcome: a sentence.

    Raises:
        ValueError: `state` is a batch.
    """
    return _view(Seen(state, params), task_id)


def _view(seen: Seen, task_id: str | None) -> dict[str, Any]:
    own, count = seen.labels, seen.count
    until = max(count["deadline"] - count["step"], 0)
    last = count["last_action"]
    return {
        "task_id": own.id if task_id is None else task_id,
        "goal": own.goal,
        "story": own.story,
        "step_number": count["step"],
        "steps_remaining": count["max_steps"] - count["step"],
        "deadline_in": until if count["deadline"] < tables.NO_DEADLINE else None,
        "money_spent": seen.spent,
        "money_left": seen.budget - seen.spent if seen.budget < tables.NO_BUDGET else None,
        "known": seen.known,
        "can_inspect": [key for key in own.keys.values() if key not in seen.known],
        "routes": [_route(seen, route) for route in own.routes],
        "milestones": [
            {
                "id": name,
                "description": description,
                "reached": number in seen.sets["reached"],
                "reward": seen.milestone_reward[number],
            }
            for number, (name, description) in own.milestones.items()
        ],
        "events": [
            dict(zip(("id", "description"), own.events[number], strict=True))
            for number in seen.sets["fired"]
        ],
        "rollback_possible": count["rollback"] == tables.MAY_ROLL_BACK,
        "earned": seen.earned,
        "last_action": own.actions[last] if last >= 0 else None,
        "last_action_outcome": _last_action(seen),
    }


def _route(seen: Seen, route: int) -> dict[str, Any]:
    own = seen.labels
    return {
        **dict(zip(("id", "name", "description"), own.routes[route], strict=True)),
        "status": seen.status(route),
        "actions_left": [own.types[kind] for kind in seen.left[route]],
        "preconditions": dict(own.wanted[route]),
        "cost": seen.cost[route],
        "final_reward": seen.final_reward[route],
        "closes": [own.routes[other][0] for other in seen.closes[route]],
        "unlocks": [own.milestones[number][0] for number in seen.unlocks[route]],
    }


def paragraph(state: State, params: Params, task_id: str | None = None) -> str:
    """`observation` as text for people and language models; arguments as there.

    Several lines: the task and the resources, what is known, the routes by status and the
    milestones with a line each, the events so far, and what the last action came to.
    """
    view = observation(state, params, task_id)
    until, money = view["deadline_in"], view["money_left"]
    parts = {
        "deadline": words.DEADLINES[0 if until is None else 1 if until else 2].format_map(view),
        "money": words.MONEY[money is not None].format_map(view),
    }
    lines = [words.TASK_LINE.format_map(view), words.RESOURCES.format_map(view | parts)]
    if view["story"]:
        lines.insert(1, view["story"])
    lines.append(words.KNOWN.format(known=_told(view["known"]) or words.NOTHING))
    if view["can_inspect"]:
        lines.append(words.CAN_INSPECT.format(keys=_told(view["can_inspect"])))
    for status, heading in words.SECTIONS.items():
        lines += _section(heading, [_line(x) for x in view["routes"] if x["status"] == status])
    for reached, heading in words.MILESTONES.items():
        told = [_line(x, words.MILESTONE) for x in view["milestones"] if x["reached"] == reached]
        lines += _section(heading, told)
    lines += _section(words.EVENTS, [_line(event, {}) for event in view["events"]])
    lines += [words.ROLLBACK] if view["rollback_possible"] else []
    return "\n".join([*lines, words.LAST_ACTION.format_map(view)])


def _section(heading: str, lines: list[str]) -> list[str]:
    return [heading, *(f"- {line}" for line in lines)] if lines else []


def _line(part: Mapping[str, Any], fields: Mapping[str, str] = words.ROUTE) -> str:
    """What is said of a route, a milestone or an event: its texts, and fields that tell much."""
    texts = (part[name] for name in ("id", "name", "description") if name in part)
    open_ = part.get("status", "open") == "open"
    told = [fields[name].format(_told(part[name])) for name in fields if open_ and part[name]]
    return "; ".join([_titled(*texts), *told])


def _titled(name: str, *about: str) -> str:
    """An id, and what is said of it: rebook: Rebook at the desk. The queue is long."""
    told = ". ".join(text.rstrip(". ") for text in about if text.strip(". "))
    return f"{name}: {told}" if told else name


def _told(value: Any) -> str:
    """Numbers, lists of names and dicts of values in words."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_value(x)}" for key, x in value.items())
    return f"{value:.7g}" if isinstance(value, float) else ", ".join(value)


def _value(value: Any) -> str:
    """The value of a key: true, 3, "alert"."""
    return words.ABSENT if value is None else json.dumps(value, ensure_ascii=False)


def legal_actions(state: State, params: Params) -> list[str]:
    """Names of the actions that are legal in `state`, all once the episode is over."""
    own = labels.of(params)
    return [own.actions[index] for index in _legal(state, params, own)]


def _legal(state: State, params: Params, own: Labels) -> list[int]:
    mask = jax.device_get(_mask(one_episode(state), params, own.capacity))
    return np.flatnonzero(mask).tolist()


def checked_action(action: Any, state: State, params: Params) -> int:
    """The index of a legal action.

    Args:
        action: a name of `action_names(params)`, or of `actions.names`; an integer in [0, A);
            or a mapping of `action_type`, `target` and perhaps `reasoning` (text of at most
            `words.REASONING_LIMIT` characters, or None; without effect). The target is the id
            of a route, or a key if the type is inspect; None, or left out, if it is wait or
            rollback. Should a key and a route be called the same, inspect means the key.
        state, params: where it is to be taken.

    Raises:
        ValueError: anything else, such as an unknown name, -1, 2.0, "6" or True, or an action
            that is not legal in `state`; says why, and what is legal.
    """
    own = labels.of(params)
    legal = _legal(state, params, own)
    try:
        index = own.index(action)
        if index in legal:
            return index
        why = _why_illegal(Seen(state, params), index)
        raise ValueError(f"{own.actions[index]} is not legal: {why}")
    except ValueError as error:
        over = len(legal) == len(own.actions)
        told = words.WHEN_OVER if over else _grouped(own.actions[index] for index in legal)
        raise ValueError(f"{error}; legal here: {told}") from None


def _grouped(names: Iterable[str]) -> str:
    """Actions by route: rebook communicate, execute; inspect card; wait."""
    groups: dict[str, list[str]] = {}
    for name in names:
        about, _, rest = name.partition(":")
        groups.setdefault(about, []).append(rest)
    return "; ".join(f"{about} {', '.join(rest)}".rstrip() for about, rest in groups.items())


def _why_illegal(seen: Seen, index: int) -> str:
    """What is in the way of an action that the mask forbids."""
    own, (route, kind, key) = seen.labels, seen.labels.target(index)
    if route >= 0:
        status = seen.status(route)
        taken = "used" if kind in seen.types[route] else "not_taken"
        why = (taken if status == "open" else status) if route in own.routes else "no_route"
    elif key >= 0:
        why = "shown" if key in own.keys else "no_key"
    else:
        used = seen.count["rollback"] == tables.ROLLBACK_USED
        why = "rollback_used" if used else "nothing_to_undo"
    return words.ILLEGAL[why].format(
        route=own.routes.get(route, ("",))[0],
        type=own.actions[index].partition(":")[2],
        key=own.keys.get(key),
    )


def grade_components(state: State, params: Params) -> dict[str, dict[str, float]]:
    """What the grade is made of: name -> {"weight", "value"}, those with a weight.

    Routes, "route:ID", and milestones, "milestone:ID": the weight is what each pays as a share
    of the best expected return, the value 1 if it is completed or reached, else 0. The sum of
    weight x value, clamped to [0, 1], is the grade so far; it is final at the end.
    """
    seen = Seen(state, params)
    own, done, reached = seen.labels, seen.sets["completed"], seen.sets["reached"]
    parts = [
        (f"route:{about[0]}", seen.final_reward[route], route in done)
        for route, about in own.routes.items()
    ]
    parts += [
        (f"milestone:{about[0]}", seen.milestone_reward[number], number in reached)
        for number, about in own.milestones.items()
    ]
    return {
        name: {"weight": reward / seen.best, "value": float(has)}
        for name, reward, has in parts
        if reward != 0
    }


def outcome(before: State, action: Any, step: Step, params: Params) -> str:
    """One step in words: what came of the action, events, milestones, the reward, the end.

    Args:
        before: the state in which the action was taken.
        action: what was taken, as an integer; one out of range is told as such.
        step: what `Env.step` (or `advance`) returned for it.
        params: the episode's params.
    """
    was, now = Seen(before, params), Seen(step.state, params)
    if was.count["is_over"]:
        return words.ALREADY_OVER
    told = [_last_action(now)]
    if now.count["last_outcome"] == tables.INVALID:
        told.append(words.REFUSED.format(why=_refusal(was, int(action))))
    events, milestones = now.labels.events, now.labels.milestones
    new, old = (
        {name: [x for x in a.sets[name] if x not in b.sets[name]] for name in ("fired", "reached")}
        for a, b in ((now, was), (was, now))
    )
    told += [words.EVENT.format(event=_titled(*events[number])) for number in new["fired"]]
    told += [words.REACHED.format(milestone=_titled(*milestones[x])) for x in new["reached"]]
    if old["reached"]:
        lost = ", ".join(milestones[number][0] for number in old["reached"])
        told.append(words.LOST.format(milestones=lost))
    told.append(words.REWARD.format(reward=float(step.reward)))
    return " ".join([*told, *_end(now)])


def _end(seen: Seen) -> list[str]:
    """How the episode ended, if it has."""
    count = seen.count
    if count["is_success"]:
        return [words.SUCCESS]
    if not count["is_failure"]:
        return [words.LAST_STEP] if count["is_over"] else []
    missed = members(seen.missed & seen.failure) if count["step"] >= count["deadline"] else []
    shown = [fact for fact in members(seen.shown_facts & seen.failure) if fact not in missed]
    why = [words.DEADLINE] * len(missed) + [_told(dict([seen.labels.facts[x]])) for x in shown]
    return [words.FAILURE.format(why=" and ".join(why) or words.UNSEEN_FAILURE)]


def _last_action(seen: Seen) -> str:
    """What the last action came to, as a sentence."""
    own, last = seen.labels, seen.count["last_action"]
    route, _, key = own.target(last)
    told: dict[str, Any] = {"action": own.actions[last]}
    if key >= 0:
        told |= {"key": own.keys[key], "value": _value(seen.known[own.keys[key]])}
    if route >= 0:
        told["left"] = ", ".join(own.types[kind] for kind in seen.left[route])
        told["unmet"] = _unmet(seen, route)
        told |= {"cost": seen.cost[route], "money": seen.budget - seen.spent}
    return words.OUTCOMES[tables.OUTCOMES[seen.count["last_outcome"]]].format_map(told)


def _unmet(seen: Seen, route: int) -> str:
    """The preconditions that are seen not to hold; if there are none, what may be in the way."""
    wanted = seen.labels.wanted[route]
    facts = members(seen.shown_facts & seen.forbidden[route])
    unmet = [seen.labels.facts[fact][0] for fact in facts]
    if not unmet and not set(wanted) <= set(seen.known):
        return words.UNSEEN
    # If all are seen to hold now, missed_deadline did not before the deadline passed.
    return _told({key: wanted[key] for key in unmet or wanted})


def _refusal(seen: Seen, index: int) -> str:
    """An action that was not legal, and why."""
    if not 0 <= index < len(seen.labels.actions):
        return words.NO_SUCH_ACTION.format(action=index)
    return f"{seen.labels.actions[index]}: {_why_illegal(seen, index)}"
