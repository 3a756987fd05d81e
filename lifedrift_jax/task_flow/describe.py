"""TaskFlow in words: observations, actions and grades for people, servers and agents.

The same seven functions as in every family's `describe` (see `life_drift.describe`), outside
compiled code and for one episode at a time. All words follow from the numbers of a state, so
`observation` and `paragraph` take none beside. Dynamics never import this module.
"""

import bisect
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Step, one_episode
from lifedrift_jax.names import index_of, spaced
from lifedrift_jax.task_flow import actions, graders, tables, words
from lifedrift_jax.task_flow.types import Params, State

_PENALTIES = ("failed", "collapse")  # names of what is taken off the grade
_TASK_FIELDS = (
    "title",
    "domain",
    "status",
    "priority",
    "deadline",
    "uncertainty",
    "value",
    "energy_cost",
    "budget_cost",
    "optimized",
)
_DOMAINS = tuple(tables.DOMAINS)
_TIERS = tuple(tables.TASKS)

# What is read of an episode, integers and floats: columns of a number a slot, single numbers.
# Each row is fetched as one array, since fetching fields one by one is slow.
_PACKS = (
    (
        ("status", "domain", "wording", "deadline", "optimized"),
        ("step", "last_item", "last_outcome", "tier", "max_steps", "is_over"),
    ),
    (
        ("priority", "uncertainty", "value", "energy_cost", "budget_cost"),
        ("energy", "budget", "health", "reward_sum", "full_energy", "full_budget", "optimize_cost"),
    ),
)


@jax.jit
def _mask(state: State, params: Params) -> jax.Array:
    """[48] bool, that of Env.action_mask."""
    return jnp.concatenate(actions.mask(state, params))


@jax.jit
def _packed(state: State, params: Params) -> list[jax.Array]:
    """What _PACKS names, an array a row."""
    fields = vars(state) | {
        "tier": params.tier,
        "max_steps": params.max_steps,
        "is_over": actions.is_over(state, params).astype(jnp.int32),
        "full_energy": params.energy,
        "full_budget": params.budget,
        "optimize_cost": params.optimize_cost,
    }
    rows = ([fields[name] for name in (*columns, *singles)] for columns, singles in _PACKS)
    return [jnp.concatenate([jnp.atleast_1d(field) for field in row]) for row in rows]


@jax.jit
def _parts(state: State, params: Params) -> tuple[jax.Array, jax.Array]:
    """[6] weights and [6] values of the grade's components and penalties."""
    real = state.health.dtype
    failed = graders.failed(state).astype(real) * (1 / params.items.astype(real))
    collapsed = (state.health < params.collapse_health).astype(real)
    weights = [*params.grade_weights, -params.failed_penalty, -params.collapse_penalty]
    return jnp.stack(weights), jnp.stack([*graders.components(state, params), failed, collapsed])


def _read(state: State, params: Params) -> dict[str, Any]:
    """Field -> number, or list of one number a slot, as plain Python; codes as their names."""
    packed = jax.device_get(_packed(one_episode(state), params))
    seen: dict[str, Any] = {}
    for (columns, singles), row in zip(_PACKS, packed, strict=True):
        end = len(columns) * tables.SLOTS
        seen |= zip(columns, row[:end].reshape(-1, tables.SLOTS).tolist(), strict=True)
        seen |= zip(singles, row[end:].tolist(), strict=True)
    seen["status"] = [tables.STATUSES[code] for code in seen["status"]]
    seen["domain"] = [_DOMAINS[code] for code in seen["domain"]]
    named = zip(seen["domain"], seen["wording"], seen["priority"], strict=True)
    seen["title"] = [_title(*item) for item in named]
    return seen


def _title(domain: str, wording: int, priority: float) -> str:
    level = words.LEVELS[bisect.bisect_right(words.LEVEL_BOUNDS, priority)]
    return words.TITLES[domain][wording].format(level=level)


def observation(state: State, params: Params, task_id: str | None = None) -> dict[str, Any]:
    """The agent's view of one episode, ready for JSON.

    Args:
        state: of one episode, not a batch.
        params: its params.
        task_id: the id to report, such as `task_flow/easy-v0`; by default the tier's name.

    Returns:
        tasks: the items in the queue in the order of their slots, a dict each: task_id (the
        slot, int), title, domain (of `tables.DOMAINS`), status (pending, held or late),
        priority in (0, 1], deadline (steps in which it can still be served, int), uncertainty
        in [0, 1], value, energy_cost, budget_cost, optimized (how often, int);
        time_remaining (steps, int); energy_remaining, budget_remaining, system_health in
        [0, 1]: floats; step_number (steps taken), tasks_completed, tasks_failed (late items
        too): ints; cumulative_value: float, the rewards so far; last_action_outcome: a
        sentence; max_steps: int; task_id, task_description: texts.

    Raises:
        ValueError: `state` is a batch.
    """
    return _view(_read(state, params), task_id)


def _view(seen: Mapping[str, Any], task_id: str | None) -> dict[str, Any]:
    """The observation of what `_read` returned."""
    count, tier = seen["status"].count, _TIERS[seen["tier"]]
    return {
        "tasks": [
            {"task_id": slot} | {name: seen[name][slot] for name in _TASK_FIELDS}
            for slot in _queue(seen)
        ],
        "time_remaining": seen["max_steps"] - seen["step"],
        "energy_remaining": seen["energy"],
        "budget_remaining": seen["budget"],
        "system_health": seen["health"],
        "step_number": seen["step"],
        "tasks_completed": count("completed"),
        "tasks_failed": count("late") + count("failed"),
        "cumulative_value": seen["reward_sum"],
        "last_action_outcome": _last_action(seen),
        "max_steps": seen["max_steps"],
        "task_id": tier if task_id is None else task_id,
        "task_description": tables.TASKS[tier].description,
    }


def paragraph(state: State, params: Params, task_id: str | None = None) -> str:
    """`observation` as text for people and language models; arguments as there.

    Several lines: the task and the resources, the queue by status with a line an item, and
    what the last action came to.
    """
    seen = _read(state, params)
    view = _view(seen, task_id)
    lines = [words.PARAGRAPH.format_map(seen | view)]
    for status, heading in words.SECTIONS.items():
        items = [item for item in view["tasks"] if item["status"] == status]
        lines += [heading] if items else []
        lines += [words.LINE.format_map(i | {"domain": spaced(i["domain"])}) for i in items]
    lines += [] if view["tasks"] else [words.NO_QUEUE]
    return "\n".join([*lines, words.LAST_ACTION.format_map(view)])


def action_names(params: Params) -> tuple[str, ...]:
    """Names of all 48 actions, the same for every tier."""
    return actions.NAMES


def legal_actions(state: State, params: Params) -> list[str]:
    """Names of the actions that are legal in `state`, all 48 once the episode is over."""
    mask = jax.device_get(_mask(one_episode(state), params))
    return [name for name, legal in zip(actions.NAMES, mask, strict=True) if legal]


def checked_action(action: Any, state: State | None = None, params: Params | None = None) -> int:
    """The index of a legal action.

    Args:
        action: a name of `actions.NAMES` such as "execute:3"; an integer in [0, 48); or a
            mapping of `action_type` (a name of `tables.ACTION_TYPES`), `task_id` (the item's
            slot, an integer in [0, 12)) and perhaps `reasoning` (text of at most
            `words.REASONING_LIMIT` characters, or None; without effect).
        state, params: where it is to be taken; without them only the form is checked.

    Raises:
        ValueError: anything else, such as an unknown name, 48, -1, 2.0, "6" or True, or an
            action that is not legal in `state`; says why, and what is legal.
    """
    if state is None or params is None:
        return _index(action)
    legal = legal_actions(state, params)
    try:
        index = _index(action)
        if actions.NAMES[index] in legal:
            return index
        why = _why_illegal(_read(state, params), index)
        raise ValueError(f"{actions.NAMES[index]} is not legal: {why}")
    except ValueError as error:
        raise ValueError(f"{error}; legal here: {_grouped(legal)}") from None


def _index(action: Any) -> int:
    """The index that an action of any accepted form stands for; ValueError for others."""
    if not isinstance(action, Mapping):
        index = index_of(action, actions.NAMES)
        if not 0 <= index < len(actions.NAMES):
            raise ValueError(f"no action {reprlib.repr(action)}: use {words.FORM}")
        return index
    if not {"action_type", "task_id"} <= set(action) <= set(words.FIELDS):
        raise ValueError(f"action has the fields {reprlib.repr(list(action))}: use {words.FORM}")
    kind, slot, reasoning = (action.get(name) for name in words.FIELDS)
    legal = {
        "action_type": isinstance(kind, str) and kind in tables.ACTION_TYPES,
        "task_id": 0 <= index_of(slot, ()) < tables.SLOTS,
        "reasoning": reasoning is None
        or (isinstance(reasoning, str) and len(reasoning) <= words.REASONING_LIMIT),
    }
    for name, holds in legal.items():
        if not holds:
            raise ValueError(f"{name} is {reprlib.repr(action[name])}: use {words.FIELDS[name]}")
    return actions.NAMES.index(f"{kind}:{index_of(slot, ())}")


def _grouped(names: Sequence[str]) -> str:
    """Actions by type: execute 0, 2; delegate 0, 1, 2."""
    slots: dict[str, list[str]] = {}
    for name in names:
        kind, _, slot = name.partition(":")
        slots.setdefault(kind, []).append(slot)
    return "; ".join(f"{kind} {', '.join(s)}" for kind, s in slots.items()) or "nothing"


def _why_illegal(seen: Mapping[str, Any], index: int) -> str:
    """What is in the way of an action that the mask forbids."""
    code, slot = divmod(index, tables.SLOTS)
    kind, status = tables.ACTION_TYPES[code], seen["status"][slot]
    # If the item can be acted on, its domain or its costs are in the way, as the type says.
    reachable = status == "pending" or (status, kind) == ("late", "execute")
    share = seen["optimize_cost"] if kind == "optimize" else 1
    costs = share * seen["energy_cost"][slot], share * seen["budget_cost"][slot]
    return words.ILLEGAL[kind if reachable else status].format(
        slot=slot,
        item=_item(seen, slot),
        domain=spaced(seen["domain"][slot]),
        needs=words.COST.format(*costs),
        left=words.COST.format(seen["energy"], seen["budget"]),
    )


def grade_components(state: State, params: Params) -> dict[str, dict[str, float]]:
    """What the grade is made of: name -> {"weight", "value"}, those with a weight.

    Beside `tables.COMPONENTS`, "failed" (the share of items neither completed nor delegated)
    and "collapse" (1 if health is below collapse_health, else 0), whose weights are negative.
    The sum of weight x value, clamped to [0, 1], is the grade so far; it is final at the end.
    """
    weights, values = jax.device_get(_parts(one_episode(state), params))
    names = (*tables.COMPONENTS, *_PENALTIES)
    return {
        name: {"weight": weight, "value": value}
        for name, weight, value in zip(names, weights.tolist(), values.tolist(), strict=True)
        if weight != 0
    }


def outcome(before: State, action: Any, step: Step, params: Params) -> str:
    """One step in words: what came of the action, the reward, what is late now, the end.

    Args:
        before: the state in which the action was taken.
        action: what was taken, as an integer; one out of range is told as such.
        step: what `Env.step` (or `advance`) returned for it.
        params: the episode's params.
    """
    was, now = _read(before, params), _read(step.state, params)
    if was["is_over"]:
        return words.ALREADY_OVER
    told = [_last_action(now)]
    if now["last_outcome"] == tables.INVALID:
        told.append(words.REFUSED.format(why=_refusal(was, int(action))))
    told.append(words.REWARD.format(reward=float(step.reward)))
    statuses = enumerate(zip(was["status"], now["status"], strict=True))
    expired = [_item(now, slot) for slot, (x, y) in statuses if x != "late" and y == "late"]
    if expired:
        told.append(words.EXPIRED.format(items=", ".join(expired)))
    if now["is_over"]:
        told.append(words.LAST_STEP if _queue(now) else words.QUEUE_EMPTY)
    return " ".join(told)


def _last_action(seen: Mapping[str, Any]) -> str:
    """What the last action came to, as a sentence."""
    sentence = words.OUTCOMES[tables.OUTCOMES[seen["last_outcome"]]]
    return sentence.format(item=_item(seen, seen["last_item"]))


def _refusal(seen: Mapping[str, Any], index: int) -> str:
    """An action that was not legal, and why."""
    if not 0 <= index < len(actions.NAMES):
        return words.NO_SUCH_ACTION.format(action=index)
    return f"{actions.NAMES[index]}: {_why_illegal(seen, index)}"


def _queue(seen: Mapping[str, Any]) -> list[int]:
    """Slots of the items in the queue."""
    return [slot for slot, status in enumerate(seen["status"]) if status in words.SECTIONS]


def _item(seen: Mapping[str, Any], slot: int) -> str:
    return words.ITEM.format(slot=slot, title=seen["title"][slot])
