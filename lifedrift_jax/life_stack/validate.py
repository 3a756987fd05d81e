"""What a Task must be: first its form, as JSON Schema has it, then what its names mean.

Nothing here needs a search. Each error names the first fault: where it is, the value there and
what is legal.
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from lifedrift_jax.life_stack.files import at, check_plain, fault, is_number, listed, short
from lifedrift_jax.life_stack.schema import (
    PARTS,
    STARTS,
    Task,
    json_schema,
    kind_of,
    known_keys,
    writes,
)
from lifedrift_jax.life_stack.tables import MISSED_DEADLINE

SCHEMA = json_schema()

# Type in JSON Schema -> its name in errors, what has it.
TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "array": ("a list", lambda value: isinstance(value, list)),
    "boolean": ("a boolean", lambda value: isinstance(value, bool)),
    "integer": ("a whole number", lambda value: is_number(value) and isinstance(value, int)),
    "number": ("a finite number", is_number),
    "object": ("a dict", lambda value: isinstance(value, dict)),
    "string": ("text", lambda value: isinstance(value, str)),
}


def validate(task: Task) -> None:
    """Check all of a task that needs no search; it is not changed.

    Raises:
        ValueError: "<place> is <value>: <what is legal>", of the first fault.
    """
    if not isinstance(task, Task):
        raise fault("the task", task, "use a Task")
    _check("", vars(task), SCHEMA)
    for name in ("event_schedule", "milestones", "viable_routes"):
        _check_ids(name, [part.id for part in getattr(task, name)])
    keys = _Keys(task)
    for name in ("success_conditions", "failure_conditions"):
        for number, condition in enumerate(getattr(task, name)):
            keys.check_condition(f"{name}[{number}]", condition)
    for number, milestone in enumerate(task.milestones):
        place = f"milestones[{number}].condition"
        keys.check_known(f"{place}_key", milestone.condition_key)
        keys.check_value(f"{place}_value", milestone.condition_key, milestone.condition_value)
    _check_routes(task, keys)
    _check_prior(task, keys)


class _Keys:
    """The keys of a task, whose initial values and types it finds to agree."""

    def __init__(self, task: Task) -> None:
        self.kinds = known_keys(task)
        start: dict[str, Any] = {MISSED_DEADLINE: False}
        for place, values in writes(task):
            for key, value in values.items():
                self.check_value(at(place, key), key, value)
                if place in STARTS and start.setdefault(key, value) != value:
                    raise fault(at(place, key), value, f"this key starts as {short(start[key])}")

    def check_known(self, place: str, key: str) -> None:
        if key not in self.kinds:
            raise fault(place, key, listed(self.kinds))

    def check_value(self, place: str, key: str, value: Any) -> None:
        if kind_of(value) != self.kinds[key]:
            legal = f"use a value of type {self.kinds[key]}, as the key {short(key)} has"
            raise fault(place, value, legal)

    def check_condition(self, place: str, condition: dict[str, Any]) -> None:
        key, name = condition["key"], condition.get("op", "eq")
        self.check_known(f"{place}.key", key)
        kind = self.kinds[key]
        if kind != "number" and name not in ("eq", "ne"):
            raise fault(f"{place}.op", name, f"use eq or ne, as {short(key)} is of type {kind}")
        self.check_value(f"{place}.value", key, condition["value"])


def _check_routes(task: Task, keys: _Keys) -> None:
    """Raise ValueError for names in routes and events that mean nothing."""
    routes = [route.id for route in task.viable_routes]
    milestones = [milestone.id for milestone in task.milestones]
    for number, route in enumerate(task.viable_routes):
        place = f"viable_routes[{number}]"
        for key, value in route.preconditions.items():
            where = at(f"{place}.preconditions", key)
            if key not in keys.kinds:
                raise fault(where, value, f"no such key, {listed(keys.kinds)}")
            keys.check_value(where, key, value)
        _check_names(f"{place}.closes_routes", route.closes_routes, routes)
        _check_names(f"{place}.milestones_unlocked", route.milestones_unlocked, milestones)
    for number, event in enumerate(task.event_schedule):
        _check_names(f"event_schedule[{number}].closes_routes", event.closes_routes, routes)


def _check_prior(task: Task, keys: _Keys) -> None:
    for key, weighted in task.hidden_prior.items():
        place = at("hidden_prior", key)
        if key not in task.hidden_state:
            raise fault(place, weighted, f"no hidden key, {listed(task.hidden_state)}")
        for number, (value, _) in enumerate(weighted):
            keys.check_value(f"{place}[{number}][0]", key, value)


def _check_names(place: str, names: Iterable[str], known: Iterable[str]) -> None:
    for number, name in enumerate(names):
        if name not in known:
            raise fault(f"{place}[{number}]", name, listed(known))


def _check_ids(place: str, ids: list[str]) -> None:
    first: dict[str, int] = {}
    for number, name in enumerate(ids):
        if first.setdefault(name, number) != number:
            legal = f"use another id, {place}[{first[name]}] has this one"
            raise fault(f"{place}[{number}].id", name, legal)
        if place == "viable_routes" and name == "inspect":  # its actions would be called so
            raise fault(f"{place}[{number}].id", name, "use another id, inspect:KEY has a meaning")


def _check(place: str, value: Any, schema: dict[str, Any]) -> None:
    """Raise ValueError if a value, or a part of it, is not what a schema says."""
    if "$ref" in schema:
        part = PARTS[schema["$ref"].rpartition("/")[2]]
        if not isinstance(value, part):
            raise fault(place, value, f"use an object of the class {part.__name__}")
        value, schema = vars(value), SCHEMA["$defs"][part.__name__]
    if not schema:
        check_plain(place, value, null=True)
    elif not _fits(value, schema):
        raise fault(place, value, _legal(schema))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            rows = schema.get("prefixItems")
            _check(f"{place}[{number}]", part, rows[number] if rows else schema["items"])
            if schema.get("uniqueItems") and part in value[:number]:
                raise fault(f"{place}[{number}]", part, "use each of the list once")
    elif isinstance(value, dict):
        _check_entries(place, value, schema)


def _check_entries(place: str, value: dict[Any, Any], schema: dict[str, Any]) -> None:
    fields, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name in schema.get("required", ()):
        if name not in value:
            raise ValueError(f"{at(place, name)} is missing: {_legal(fields[name])}")
    for key, part in value.items():
        if not isinstance(key, str) or not (key or "propertyNames" not in schema):
            raise fault(at(place, key), part, "use text that is not empty as the key")
        entry = fields.get(key, others)
        if entry is False:
            raise fault(at(place, key), part, f"no such field, {listed(fields)}")
        _check(at(place, key), part, entry)


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value, apart from its own parts, is what a schema says."""
    if "enum" in schema:
        return isinstance(value, str) and value in schema["enum"]
    if not any(TYPES[name][1](value) for name in _types(schema)):
        return False
    if isinstance(value, str):
        matches = re.fullmatch(schema.get("pattern", "(?s:.*)"), value)
        return bool(matches) and len(value) <= schema.get("maxLength", math.inf)
    if isinstance(value, list):
        return schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf)
    if isinstance(value, dict):
        return True
    above, low = schema.get("exclusiveMinimum", -math.inf), schema.get("minimum", -math.inf)
    return above < value and low <= value <= schema.get("maximum", math.inf)


def _legal(schema: dict[str, Any]) -> str:
    """What a schema says, in words."""
    if "enum" in schema:
        return listed(schema["enum"])
    words = "use " + " or ".join(TYPES[name][0] for name in _types(schema))
    if "maxLength" in schema:
        words += f" of at most {schema['maxLength']} characters"
    if "pattern" in schema:
        words += " that is not empty, without ':'"
    if "maxItems" in schema:
        words += f" of {schema['maxItems']}"
    elif "minItems" in schema:
        words += " that is not empty"
    if "exclusiveMinimum" in schema:
        words += f" above {schema['exclusiveMinimum']}, up to {_number(schema['maximum'])}"
    elif "minimum" in schema:
        words += f" from {schema['minimum']} to {_number(schema['maximum'])}"
    return words


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _types(schema: dict[str, Any]) -> list[str]:
    types = schema["type"]
    return [types] if isinstance(types, str) else types
