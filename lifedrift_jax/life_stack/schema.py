"""The Task of LifeStack: a specification of one episode, written as data. Plain Python.

Fields and types are those of the LifeStack text. What else a value must be stands beside its
type, as JSON Schema keywords: `validate.py` checks both, and what they cannot say. The shipped
copy of `json_schema()` is written by
`python -c "from lifedrift_jax.life_stack import schema; schema.write_json_schema()"`.
"""

import copy
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from lifedrift_jax.life_stack import files
from lifedrift_jax.life_stack.tables import MISSED_DEADLINE

OPERATORS = ("eq", "ne", "lt", "le", "gt", "ge")  # of conditions; all but two for numbers only
STARTS = ("hidden_state", "mutable_world", "visible_world")  # fields with first values
FREE = ("constraints", "domain_metadata")  # fields that may carry anything JSON has, also null
SCHEMA_FILE = Path(__file__).parents[1] / "data" / "task.schema.json"

STEP = {"type": "integer", "minimum": 1, "maximum": 1_000_000_000}
MONEY = {"type": "number", "minimum": 0, "maximum": 1e30}
WEIGHT = {"type": "number", "exclusiveMinimum": 0, "maximum": 1e30}
VALUE = {"type": ["boolean", "number", "string"], "maxLength": 200}
WEIGHTED = {"type": "array", "prefixItems": [VALUE, WEIGHT], "minItems": 2, "maxItems": 2}
CONDITION = {"key": {"type": "string"}, "op": {"enum": list(OPERATORS)}, "value": VALUE}
WEIGHTED_VALUES = {"type": "array", "items": WEIGHTED, "minItems": 1}

Id = Annotated[str, {"pattern": "^[^:]+$"}]
Values = Annotated[dict, {"propertyNames": {"minLength": 1}, "additionalProperties": VALUE}]
Constraints = Annotated[dict, {"properties": {"deadline_step": STEP, "budget_max": MONEY}}]
Condition = Annotated[
    dict, {"properties": CONDITION, "required": ["key", "value"], "additionalProperties": False}
]
Prior = Annotated[dict, {"additionalProperties": WEIGHTED_VALUES}]
Cost = Annotated[dict, {"properties": {"money": MONEY}, "additionalProperties": False}]


@dataclass
class Route:
    """A way to act: it completes when each of its action types was used on it.

    Attributes:
        id: unique among routes, without ":".
        name: a few words.
        description: a sentence or two.
        required_action_types: each to be used once on the route, in any order.
        preconditions: key -> the value it must have at each action on the route.
        consequences: key -> the value that it gets on completion.
        closes_routes: ids of routes that completion closes.
        milestones_unlocked: ids of milestones that completion reaches.
        final_reward: paid on completion.
        cost: {"money": amount}, charged on completion; without it the route is free.
    """

    id: Id
    name: str
    description: str
    required_action_types: Annotated[list[Id], {"minItems": 1, "uniqueItems": True}]
    preconditions: Values
    consequences: Values
    closes_routes: list[str]
    milestones_unlocked: list[str]
    final_reward: float
    cost: Cost = field(default_factory=dict)


@dataclass
class Milestone:
    """A checkpoint that pays once.

    Attributes:
        id: unique among milestones, without ":".
        description: a sentence or two.
        condition_key: the key to look at.
        condition_value: the value with which the milestone is reached.
        reward: paid when it is first reached.
    """

    id: Id
    description: str
    condition_key: str
    condition_value: Annotated[Any, VALUE]
    reward: float


@dataclass
class ExoEvent:
    """Something that happens by itself.

    Attributes:
        step: the step at whose start it fires; -1 = by chance, at most once an episode.
        probability: chance to fire in each step, in [0, 1]; without effect unless step is -1.
        id: unique among events, without ":".
        description: a sentence or two.
        world_mutation: key of the world -> the value that it gets.
        hidden_state_mutation: key of the hidden state -> the value that it gets.
        closes_routes: ids of routes that it closes.
    """

    step: Annotated[int, STEP | {"minimum": -1}]
    probability: Annotated[float, {"minimum": 0, "maximum": 1}]
    id: Id
    description: str
    world_mutation: Values
    hidden_state_mutation: Values
    closes_routes: list[str]


@dataclass
class Task:
    """The complete specification of an episode of LifeStack.

    Values of keys are booleans, finite numbers or texts of at most 200 characters, one of these
    types for each key. A condition is {key, value} and optionally op, one of eq, ne, lt, le, gt,
    ge: how the key's value must compare to this one; eq without it.

    Attributes:
        id: without ":".
        domain: what it is about, such as flight_crisis.
        goal: what is to be achieved, for the reader.
        constraints: deadline_step, the step at which missed_deadline becomes true; budget_max,
            the money that routes may cost in total; other entries are only carried along.
        hidden_state: key -> first value, not visible until the key is inspected.
        mutable_world: key -> first value, of what changes during the episode.
        visible_world: key -> first value, always visible.
        success_conditions: conditions; all must hold to succeed.
        failure_conditions: conditions; any that holds is failure.
        event_schedule: what happens by itself.
        viable_routes: the ways to act.
        milestones: checkpoints that pay.
        horizon: the last step, in [1, 1000].
        difficulty: from 1, easy, to 5, hard.
        domain_metadata: anything else, such as a story.
        hidden_prior: key of the hidden state -> [[value, weight], ...], drawn at reset in
            proportion to the weights; other keys start as hidden_state says.
    """

    id: Id
    domain: str
    goal: str
    constraints: Constraints
    hidden_state: Values
    mutable_world: Values
    visible_world: Values
    success_conditions: Annotated[list[Condition], {"minItems": 1}]
    failure_conditions: list[Condition]
    event_schedule: list[ExoEvent]
    viable_routes: list[Route]
    milestones: list[Milestone]
    horizon: Annotated[int, {"minimum": 1, "maximum": 1000}]
    difficulty: Annotated[int, {"minimum": 1, "maximum": 5}]
    domain_metadata: dict
    hidden_prior: Prior = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Task":
        """The Task of a .json, .yaml or .yml file; lists and dicts that it leaves out are empty.

        Raises:
            ValueError: the file is no Task; names the file and the field.
            ImportError: PyYAML is missing, and the file is YAML.
        """
        try:
            data = files.read(Path(path))
            _check_plain(data)
            return cls.from_dict(data)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: {' '.join(str(error).split())}") from None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Task":
        """The Task of what `to_dict` gives; lists and dicts that are left out are empty.

        Raises:
            ValueError: a field is unknown or missing. Values are left to `validate`.
        """
        return files.built(cls, data)

    def to_dict(self) -> dict[str, Any]:
        """A copy in dicts, lists and scalars."""
        return asdict(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a .json, .yaml or .yml file, of which `load` makes an equal Task.

        Raises:
            ValueError: a value has no place in such a file; names the field.
            ImportError: PyYAML is missing, and the file is YAML.
        """
        data = self.to_dict()
        _check_plain(data)
        files.write(Path(path), data)


PARTS: dict[str, Any] = {part.__name__: part for part in (Route, Milestone, ExoEvent)}


def writes(task: Task) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, key -> value) of all that sets keys: the three dicts, then routes, then events."""
    for name in STARTS:
        yield name, getattr(task, name)
    for number, route in enumerate(task.viable_routes):
        yield f"viable_routes[{number}].consequences", route.consequences
    for number, event in enumerate(task.event_schedule):
        for name in ("world_mutation", "hidden_state_mutation"):
            yield f"event_schedule[{number}].{name}", getattr(event, name)


def known_keys(task: Task) -> dict[str, str]:
    """Key -> its type (boolean, number, text), of all keys of a task.

    In the order in which they first stand in hidden_state, mutable_world, visible_world, the
    routes' consequences, the events' mutations; missed_deadline is last if it is in none of them.
    """
    kinds: dict[str, str] = {}
    for _, values in writes(task):
        for key, value in values.items():
            kinds.setdefault(key, kind_of(value))
    kinds[MISSED_DEADLINE] = kind_of(False)
    return kinds


def kind_of(value: bool | float | str) -> str:
    """The type that a key with this value has: boolean, number or text."""
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a Task in a file, a new dict."""
    parts = {name: _schema_of(part) for name, part in PARTS.items()}
    draft = "https://json-schema.org/draft/2020-12/schema"
    return copy.deepcopy({"$schema": draft} | _schema_of(Task) | {"$defs": parts})


def write_json_schema() -> None:
    """Write `SCHEMA_FILE`."""
    SCHEMA_FILE.write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")


def _schema_of(part: type) -> dict[str, Any]:
    about, _, attributes = (inspect.getdoc(part) or "").partition("\n\nAttributes:\n")
    docs = dict(re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", attributes, re.MULTILINE))
    properties = {
        name: {"description": " ".join(docs.get(name, "").split())} | _hinted(hint)
        for name, hint in get_type_hints(part, include_extras=True).items()
    }
    # Lists and dicts may be left out, unless they must not be empty.
    needed = [
        name
        for name, schema in properties.items()
        if schema.get("type") not in ("array", "object") or "minItems" in schema
    ]
    return {
        "title": part.__name__,
        "description": " ".join(about.split()),
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }


def _hinted(hint: Any) -> dict[str, Any]:
    """What a type hint says, as JSON Schema."""
    if get_origin(hint) is Annotated:
        base, keywords = get_args(hint)
        return _hinted(base) | keywords
    if hint in PARTS.values():
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if get_origin(hint) is list:
        return {"type": "array", "items": _hinted(get_args(hint)[0])}
    names = {str: "string", int: "integer", float: "number", dict: "object"}
    return {"type": names[hint]} if hint in names else {}


def _check_plain(data: Any) -> None:
    """Raise ValueError for what a task's file cannot hold; `from_dict` refuses other data."""
    for name, value in data.items() if isinstance(data, dict) else ():
        files.check_plain(files.at("", name), value, null=name in FREE)
