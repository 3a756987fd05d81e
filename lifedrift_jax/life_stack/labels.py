"""What the numbers in a task's arrays are called, for `describe`. Plain Python.

A task that was compiled in this process has its own names. In any other, such as a generated
one, names are numbers: route0, key3, and a value is told as the number of its fact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jax
import numpy as np

from lifedrift_jax.life_stack import actions, texts, words
from lifedrift_jax.life_stack.files import listed, short
from lifedrift_jax.life_stack.layout import Layout
from lifedrift_jax.life_stack.types import WORD, Capacity, Params
from lifedrift_jax.names import index_of


@dataclass(frozen=True)
class Labels:
    """Names and texts by number. What is padding has none.

    Attributes:
        capacity: sizes of the arrays.
        id, goal, story: of the task.
        types: action types.
        keys: key -> name.
        facts: fact -> its key's name and value, None if it says that the key is absent.
        routes: route -> id, name, description.
        wanted: route -> its preconditions, key's name -> value.
        milestones, events: number -> id, description.
    """

    capacity: Capacity
    id: str
    goal: str
    story: str
    types: Sequence[str]
    keys: Mapping[int, str]
    facts: Mapping[int, tuple[str, Any]]
    routes: Mapping[int, tuple[str, str, str]]
    wanted: Mapping[int, Mapping[str, Any]]
    milestones: Mapping[int, tuple[str, str]]
    events: Mapping[int, tuple[str, str]]

    @cached_property
    def actions(self) -> tuple[str, ...]:
        """[A] names of the actions; those about padding have the names of `actions.names`."""
        own = dict(self._own())
        generic = enumerate(actions.names(self.capacity))
        return tuple(own.get(index, name) for index, name in generic)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Name -> action. The task's own names come first, then those of `actions.names`."""
        generic = enumerate(actions.names(self.capacity))
        return {name: index for index, name in [*generic, *self._own()]}

    def target(self, action: int) -> tuple[int, int, int]:
        """(route, type, key) of an action; -1 for what it is not about."""
        kinds, first_key = self.capacity.types, self.capacity.routes * self.capacity.types
        if 0 <= action < first_key:
            return action // kinds, action % kinds, -1
        on_key = first_key <= action < first_key + self.capacity.keys
        return -1, -1, action - first_key if on_key else -1

    def index(self, action: Any) -> int:
        """What an action of any form that `describe.checked_action` accepts stands for.

        Raises:
            ValueError: it has no such form; says what is wrong with it.
        """
        form = words.FORM.format(count=len(self.actions))
        if not isinstance(action, Mapping):
            named = isinstance(action, str)
            index = self.numbers.get(action, -1) if named else index_of(action, ())
            if not 0 <= index < len(self.actions):
                raise ValueError(f"no action {short(action)}: use {form}")
            return index
        if not {"action_type"} <= set(action) <= set(words.FIELDS):
            raise ValueError(f"action has the fields {short(list(action))}: use {form}")
        kind, target, reasoning = (action.get(name) for name in words.FIELDS)
        is_short = isinstance(reasoning, str) and len(reasoning) <= words.REASONING_LIMIT
        if reasoning is not None and not is_short:
            raise ValueError(f"reasoning is {short(reasoning)}: use {words.REASONING}")
        kinds = dict.fromkeys([*self.types, "inspect", *words.ALONE])
        if not isinstance(kind, str) or kind not in kinds:
            raise ValueError(f"action_type is {short(kind)}: {listed(kinds)}")
        if target is None and kind in words.ALONE:
            return self.numbers[kind]
        targets = self._targets(kind)
        if not isinstance(target, str) or target not in targets:
            raise ValueError(f"target is {short(target)}: {listed(targets)}")
        return self.numbers[targets[target]]

    def _targets(self, kind: str) -> dict[str, str]:
        """What an action of a type can be about -> the name of the action."""
        routes = [about[0] for about in self.routes.values()] if kind in self.types else []
        keys = self.keys.values() if kind == "inspect" else ()
        return {x: f"{x}:{kind}" for x in routes} | {x: f"inspect:{x}" for x in keys}

    def _own(self) -> list[tuple[int, str]]:
        kinds, first_key = self.capacity.types, self.capacity.routes * self.capacity.types
        on_routes = [
            (route * kinds + kind, f"{about[0]}:{name}")
            for route, about in self.routes.items()
            for kind, name in enumerate(self.types)
        ]
        return on_routes + [(first_key + key, f"inspect:{name}") for key, name in self.keys.items()]


def of(params: Params) -> Labels:
    """The labels of one task."""
    layout = texts.of(int(params.task))
    if layout is None:
        return _numbered(jax.device_get(params))
    return _named(layout, _capacity(params))


def members(words_of_set: Any) -> list[int]:
    """The members of a set, uint32 of shape () or [W], in order."""
    data = np.atleast_1d(words_of_set).astype("<u4").view(np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little")).tolist()


@lru_cache(maxsize=64)
def _named(layout: Layout, capacity: Capacity) -> Labels:
    task = layout.task
    story = task.domain_metadata.get("story", "")
    events = [task.event_schedule[position] for position in layout.events]
    return Labels(
        capacity=capacity,
        id=task.id,
        goal=task.goal,
        story=story if isinstance(story, str) else "",
        types=layout.types,
        keys=dict(enumerate(layout.keys)),
        facts={number: fact for fact, number in layout.facts.items()},
        routes={i: (x.id, x.name, x.description) for i, x in enumerate(task.viable_routes)},
        wanted={i: dict(x.preconditions) for i, x in enumerate(task.viable_routes)},
        milestones={i: (x.id, x.description) for i, x in enumerate(task.milestones)},
        events={i: (x.id, x.description) for i, x in enumerate(events)},
    )


def _numbered(params: Params) -> Labels:
    """`params` hold NumPy arrays. Milestones that pay nothing count as padding."""
    capacity, routes, rewards = _capacity(params), params.routes, params.milestones.reward
    keys = {key: f"key{key}" for key, row in enumerate(params.keys) if row.any()}
    unlocked = np.bitwise_or.reduce(routes.unlocks)
    milestones = {*members(unlocked), *np.flatnonzero(rewards).tolist()}
    return Labels(
        capacity=capacity,
        id=words.TASK,
        goal=words.GOAL,
        story="",
        types=[f"type{kind}" for kind in range(capacity.types)],
        keys=keys,
        facts={
            fact: (name, None if fact < WORD else fact)
            for key, name in keys.items()
            for fact in members(params.keys[key])
        },
        routes={r: (f"route{r}", "", "") for r in np.flatnonzero(routes.types).tolist()},
        wanted={
            route: {
                name: max(members(params.keys[key] & ~forbidden), default=None)
                for key, name in keys.items()
                if np.any(params.keys[key] & forbidden)
            }
            for route, forbidden in enumerate(routes.forbidden)
        },
        milestones={i: (f"milestone{i}", "") for i in sorted(milestones)},
        events={i: (f"event{i}", "") for i in range(capacity.events)},
    )


def _capacity(params: Params) -> Capacity:
    """The capacity that params were compiled for; what `rewards` add up to is not told."""
    keys, words_ = params.keys.shape
    return Capacity(
        routes=params.routes.types.size,
        keys=keys,
        milestones=params.milestones.reward.size,
        events=params.events.step.size,
        types=int(params.num_types),
        words=words_,
        draws=params.prior.lane.size,
    )
