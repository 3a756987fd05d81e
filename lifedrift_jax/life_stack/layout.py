"""Where the keys, values, routes and types of a Task stand in its arrays."""

import operator
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from lifedrift_jax.life_stack import tables
from lifedrift_jax.life_stack.schema import Task, known_keys
from lifedrift_jax.life_stack.types import WORD, Capacity, Writes

OPERATORS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
ABSENT = None  # the value of a key that is not there


class Layout:
    """Numbers for the names of a validated Task.

    Attributes:
        task: the Task.
        keys: its known keys; key k is number k.
        values: for each key, its values: ABSENT, then the others, as the Task names them.
        facts: (key, value) -> number of the fact.
        types: action types, `tables.TYPES` first.
        routes, milestones: ids, in order.
        events: positions in `event_schedule`, those of a step before those by chance.
    """

    def __init__(self, task: Task, capacity: Capacity) -> None:
        self.task, self.capacity = task, capacity
        self.keys = list(known_keys(task))
        self.values = {key: [ABSENT, *_distinct(_values(task, key))] for key in self.keys}
        given = [(key, value) for key in self.keys for value in self.values[key][1:]]
        self.facts = {(key, ABSENT): number for number, key in enumerate(self.keys)}
        self.facts |= {fact: WORD + number for number, fact in enumerate(given)}
        named = (x for route in task.viable_routes for x in route.required_action_types)
        self.types = list(dict.fromkeys([*tables.TYPES, *named]))
        self.routes = [route.id for route in task.viable_routes]
        self.milestones = [milestone.id for milestone in task.milestones]
        chance = [event.step == tables.BY_CHANCE for event in task.event_schedule]
        self.events = sorted(range(len(chance)), key=chance.__getitem__)
        self._check()

    @cached_property
    def start(self) -> dict[str, Any]:
        """Key -> its value at reset, before what is drawn; keys that are absent are left out."""
        task = self.task
        own = task.hidden_state | task.mutable_world | task.visible_world
        return {tables.MISSED_DEADLINE: False} | own

    def set_of(self, facts: Iterable[int]) -> np.ndarray:
        """[W] uint32, a set of facts given by their numbers."""
        words = np.zeros(self.capacity.words, np.uint32)
        for fact in facts:
            words[fact // WORD] |= np.uint32(1 << fact % WORD)
        return words

    def about(self, keys: Iterable[str]) -> np.ndarray:
        """[W] uint32, all facts of some keys."""
        return self.set_of(self.facts[key, value] for key in keys for value in self.values[key])

    def that(self, values: Mapping[str, Any]) -> np.ndarray:
        """[W] uint32, the facts that keys have certain values."""
        return self.set_of(self.facts[item] for item in values.items())

    def writes(self, values: Mapping[str, Any]) -> Writes:
        """What makes keys take certain values."""
        return Writes(self.about(values), self.that(values))

    def matching(self, condition: Mapping[str, Any], holds: bool = True) -> np.ndarray:
        """[W] uint32, the facts of its key with which a condition holds, or does not."""
        key, name = condition["key"], condition.get("op", "eq")

        def meets(value: Any) -> bool:
            if value is ABSENT:
                return name == "ne"
            return bool(OPERATORS[name](value, condition["value"]))

        return self.set_of(
            self.facts[key, value] for value in self.values[key] if meets(value) == holds
        )

    def contradicting(self, conditions: Iterable[Mapping[str, Any]]) -> np.ndarray:
        """[W] uint32, the facts none of which may hold if all conditions are to."""
        sets = [self.matching(condition, holds=False) for condition in conditions]
        return np.bitwise_or.reduce([self.set_of(()), *sets])

    def _check(self) -> None:
        """Raise ValueError if the task does not fit the capacity."""
        task, room = self.task, self.capacity
        values = len(self.facts) - len(self.keys)
        drawn = sum(map(len, task.hidden_prior.values()))
        rewards = [x.final_reward for x in task.viable_routes] + [x.reward for x in task.milestones]
        total = sum(map(abs, rewards))
        for name, used, most, what in (
            ("viable_routes", len(self.routes), room.routes, "routes"),
            ("known keys", len(self.keys), room.keys, "keys"),
            ("values of all keys", values, WORD * (room.words - 1), "words (32 values each)"),
            ("milestones", len(self.milestones), room.milestones, "milestones"),
            ("event_schedule", len(self.events), room.events, "events"),
            ("action types", len(self.types), room.types, "types"),
            ("hidden_prior", drawn, room.draws, "draws (values in all)"),
            ("sum of all rewards", total, room.rewards, "rewards"),
        ):
            if used > most:
                raise ValueError(
                    f"{name}: {used:g} do not fit, at most {most} may be; a LifeStack with more "
                    f"room has a Capacity of more {what}"
                )


def _values(task: Task, key: str) -> list[Any]:
    """All values that a key may ever take, repeats included."""
    mutations = [
        written
        for event in task.event_schedule
        for written in (event.world_mutation, event.hidden_state_mutation)
    ]
    written = [*mutations, *(route.consequences for route in task.viable_routes)]
    start = (task.hidden_state, task.mutable_world, task.visible_world)
    values = [mapping[key] for mapping in (*start, *written) if key in mapping]
    values += [value for value, _ in task.hidden_prior.get(key, [])]
    return values + [False, True] * (key == tables.MISSED_DEADLINE)


def _distinct(values: list[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
