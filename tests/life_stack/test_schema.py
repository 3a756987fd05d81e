"""The Task as data: fields, files, its JSON Schema, and what `validate` refuses."""

import ast
import copy
import datetime
import json
import math
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifedrift_jax.life_stack import files, schema
from lifedrift_jax.life_stack.schema import ExoEvent, Milestone, Route, Task, known_keys
from lifedrift_jax.life_stack.types import MAX_STEPS
from lifedrift_jax.life_stack.validate import validate

DROPPED = object()
SUFFIXES = ("json", "yaml", "yml")


def source_example() -> Task:
    """The custom task of the LifeStack text, as it stands there."""
    return Task(
        id="my_task",
        domain="my_domain",
        goal="Do the thing",
        constraints={"budget_max": 500, "deadline_step": 8},
        hidden_state={"secret_key": True},
        mutable_world={},
        visible_world={"public_info": "visible"},
        success_conditions=[{"key": "done", "value": True}],
        failure_conditions=[],
        event_schedule=[],
        viable_routes=[
            Route(
                id="r1",
                name="Route One",
                description="...",
                required_action_types=["execute"],
                preconditions={},
                consequences={"done": True},
                closes_routes=[],
                milestones_unlocked=[],
                final_reward=1.0,
            )
        ],
        milestones=[],
        horizon=20,
        difficulty=2,
        domain_metadata={"story": "A short story about the crisis."},
    )


def good_task() -> Task:
    """A legal task that uses every field."""

    def route(number: int, **others: Any) -> Route:
        return Route(
            **{
                "id": f"r{number}",
                "name": f"Route {number}",
                "description": "",
                "required_action_types": ["communicate", "spend"],
                "preconditions": {"card": True, "seats": 3},
                "consequences": {"booked": True, "mood": "calm"},
                "closes_routes": ["r1", "r2"],
                "milestones_unlocked": ["m1"],
                "final_reward": -1.5,
                "cost": {"money": 300},
            }
            | others
        )

    return Task(
        id="good",
        domain="any",
        goal="Get home",
        constraints={"deadline_step": 8, "budget_max": 500.5, "note": [None, {"a": 1}]},
        hidden_state={"card": True, "seats": 3},
        mutable_world={"booked": False, "seats": 3.0},
        visible_world={"mood": "tense", "booked": False},
        success_conditions=[{"key": "booked", "value": True}],
        failure_conditions=[
            {"key": "missed_deadline", "value": True},
            {"key": "seats", "op": "lt", "value": 0.5},
            {"key": "mood", "op": "ne", "value": "tense"},
        ],
        event_schedule=[
            ExoEvent(3, 1.0, "e1", "", {"booked": False}, {"card": False}, ["r1"]),
            ExoEvent(-1, 0.25, "e2", "", {"noise": 0.5}, {}, []),
        ],
        viable_routes=[route(1), route(2, preconditions={}, closes_routes=[], cost={})],
        milestones=[Milestone("m1", "", "booked", True, 1), Milestone("m2", "", "seats", 2, 0.0)],
        horizon=10,
        difficulty=5,
        domain_metadata={"story": "…", "tags": ["a", None, 2.5, {"b": []}]},
        hidden_prior={"card": [[True, 3], [False, 0.5]], "seats": [[3, 1]]},
    )


def changed(place: str, value: Any, task: Any = None) -> Any:
    """A good task with another value at a place; DROPPED takes it away."""
    task = good_task() if task is None else copy.deepcopy(task)
    *way, last = re.findall(r"\w+", place)
    at = task
    for step in way:
        at = at[int(step)] if isinstance(at, list) else entries(at)[step]
    if isinstance(at, list):
        at[int(last) :] = [value, *at[int(last) + 1 :]]
    elif value is DROPPED:
        del entries(at)[last]
    else:
        entries(at)[last] = value
    return task


def entries(at: Any) -> dict[str, Any]:
    return at if isinstance(at, dict) else vars(at)


def test_the_sources_example_is_legal_and_has_its_fields():
    task = source_example()
    validate(task)
    assert (task.hidden_prior, task.viable_routes[0].cost) == ({}, {})
    hints = get_type_hints(Task)
    assert list(hints.items()) == [
        *{"id": str, "domain": str, "goal": str, "constraints": dict}.items(),
        *{"hidden_state": dict, "mutable_world": dict, "visible_world": dict}.items(),
        *{"success_conditions": list[dict], "failure_conditions": list[dict]}.items(),
        *{"event_schedule": list[ExoEvent], "viable_routes": list[Route]}.items(),
        *{"milestones": list[Milestone], "horizon": int, "difficulty": int}.items(),
        *{"domain_metadata": dict, "hidden_prior": dict}.items(),
    ]
    names = {part: " ".join(f.name for f in fields(part)) for part in (Route, Milestone, ExoEvent)}
    assert names == {
        Route: "id name description required_action_types preconditions consequences "
        "closes_routes milestones_unlocked final_reward cost",
        Milestone: "id description condition_key condition_value reward",
        ExoEvent: "step probability id description world_mutation hidden_state_mutation "
        "closes_routes",
    }
    with pytest.raises(TypeError, match="missing"):
        Milestone(id="m")


def test_known_keys_come_in_order_with_their_types():
    assert list(known_keys(good_task()).items()) == [
        ("card", "boolean"),
        ("seats", "number"),
        ("booked", "boolean"),
        ("mood", "text"),
        ("noise", "number"),
        ("missed_deadline", "boolean"),
    ]
    task = changed("mutable_world.missed_deadline", False)
    assert " ".join(known_keys(task)) == "card seats booked missed_deadline mood noise"


@pytest.mark.parametrize("make", [source_example, good_task])
def test_validate_changes_nothing(make):
    task = make()
    validate(task)
    assert task == make()


@pytest.mark.parametrize("make", [source_example, good_task])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_round_trip(make, suffix, tmp_path):
    path = tmp_path / f"task.{suffix}"
    make().save(path)
    assert repr(Task.load(path)) == repr(make())


def test_copies_share_nothing():
    task = good_task()
    data = task.to_dict()
    other = Task.from_dict(data)
    data["hidden_state"]["card"] = data["viable_routes"][0]["cost"]["money"] = 7
    data["hidden_prior"]["card"][0][1] = 7
    assert task == other == good_task()


def test_subclasses_of_plain_types_are_saved_as_these(tmp_path):
    task = changed("milestones[0].reward", np.float64(0.5))
    validate(task)
    for suffix in SUFFIXES:
        task.save(tmp_path / f"task.{suffix}")
        assert type(Task.load(tmp_path / f"task.{suffix}").milestones[0].reward) is float


TEXTS = st.text(max_size=20)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.dictionaries(st.text(min_size=1, max_size=8), st.booleans() | NUMBERS | TEXTS)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(TEXTS, part, max_size=3),
    max_leaves=8,
)
SPECIAL = {
    "constraints": st.dictionaries(TEXTS, JSON, max_size=3),
    "domain_metadata": st.dictionaries(TEXTS, JSON, max_size=3),
    "hidden_prior": st.dictionaries(TEXTS, st.lists(st.tuples(TEXTS, NUMBERS).map(list))),
    "condition_value": st.booleans() | NUMBERS | TEXTS,
}


def instances(part: type) -> st.SearchStrategy:
    """Tasks of the right types, whatever they mean."""
    kinds = {
        str: TEXTS,
        int: st.integers(),
        float: NUMBERS,
        dict: VALUES,
        list[dict]: st.lists(VALUES, max_size=2),
        list[str]: st.lists(TEXTS, max_size=2),
    }
    hints = get_type_hints(part)
    for own in (Route, Milestone, ExoEvent):
        if list[own] in hints.values():
            kinds[list[own]] = st.lists(instances(own), max_size=2)
    return st.builds(
        part, **{n: SPECIAL[n] if n in SPECIAL else kinds[h] for n, h in hints.items()}
    )


TASKS = instances(Task)


@settings(deadline=None)
@given(TASKS)
def test_dicts_round_trip(task):
    assert repr(Task.from_dict(task.to_dict())) == repr(task)
    assert repr(Task.from_dict(json.loads(json.dumps(task.to_dict())))) == repr(task)


@settings(deadline=None, max_examples=25)
@given(task=TASKS, suffix=st.sampled_from(SUFFIXES))
def test_any_task_round_trips_in_files(task, suffix, tmp_path_factory):
    path = tmp_path_factory.mktemp("tasks") / f"task.{suffix}"
    task.save(path)
    assert repr(Task.load(path)) == repr(task)


@settings(deadline=None)
@given(TASKS)
def test_validate_returns_or_tells_in_one_line(task):
    try:
        validate(task)
    except ValueError as error:
        assert re.match(r"\S.* is .*: .*", str(error)) and "\n" not in str(error)


LONG = "x" * 201
REFUSED = [
    # types
    ("id", 3, "use text that is not empty, without ':'"),
    ("id", "a:b", "without ':'"),
    ("goal", None, "use text"),
    ("goal", b"go", "use text"),
    ("horizon", 0, "use a whole number from 1 to 1,000"),
    ("horizon", 1001, "from 1 to 1,000"),
    ("horizon", 10.0, "use a whole number"),
    ("horizon", True, "use a whole number"),
    ("difficulty", 0, "from 1 to 5"),
    ("difficulty", 6, "from 1 to 5"),
    ("constraints", [], "use a dict"),
    ("milestones", (), "use a list"),
    ("milestones[0]", {"id": "m1"}, "use an object of the class Milestone"),
    ("viable_routes[1]", None, "use an object of the class Route"),
    ("event_schedule[0]", "e1", "use an object of the class ExoEvent"),
    ("viable_routes[0].id", "", "not empty"),
    ("viable_routes[0].id", "r:1", "without ':'"),
    ("viable_routes[0].name", 1, "use text"),
    ("viable_routes[0].final_reward", True, "use a finite number"),
    ("viable_routes[0].final_reward", math.inf, "use a finite number"),
    ("viable_routes[0].closes_routes[0]", ["r1"], "use text"),
    ("milestones[0].reward", math.nan, "use a finite number"),
    ("milestones[0].reward", 10**400, "use a finite number"),
    ("milestones[0].condition_value", None, "use a boolean or a finite number or text"),
    ("milestones[1].id", "", "not empty"),
    ("event_schedule[0].id", ":", "without ':'"),
    ("event_schedule[0].step", -2, "use a whole number from -1 to 1,000,000,000"),
    ("event_schedule[0].step", 1.0, "use a whole number"),
    ("event_schedule[1].probability", 1.5, "use a finite number from 0 to 1"),
    ("event_schedule[1].probability", -0.1, "from 0 to 1"),
    ("event_schedule[0].probability", math.nan, "from 0 to 1"),
    ("typo", 1, "no such field, use one of id, domain, "),
    # values and keys
    ("hidden_state.card", None, "use a boolean or a finite number or text"),
    ("hidden_state.card", [1], "use a boolean"),
    ("hidden_state.card", np.float32(1), "use a boolean"),
    ("hidden_state.card", np.zeros((2, 2)), "use a boolean"),
    ("visible_world.mood", LONG, "at most 200 characters"),
    ("mutable_world.seats", math.nan, "use a boolean"),
    ("mutable_world", {1: True}, "mutable_world[1] is True: use text that is not empty as the key"),
    ("mutable_world", {"": True}, "mutable_world[''] is True: use text that is not empty"),
    ("mutable_world.seats", 4, "this key starts as 3"),
    ("mutable_world.card", 1, "use a value of type boolean, as the key 'card' has"),
    ("visible_world.seats", "3", "type number"),
    ("hidden_state.missed_deadline", True, "this key starts as False"),
    ("hidden_state.missed_deadline", 0, "type boolean"),
    ("viable_routes[0].consequences.booked", "yes", "type boolean"),
    ("event_schedule[0].world_mutation.seats", True, "type number"),
    ("event_schedule[1].hidden_state_mutation.noise", "loud", "type number"),
    # ids
    ("viable_routes[1].id", "r1", "use another id, viable_routes[0] has this one"),
    ("milestones[1].id", "m1", "use another id, milestones[0] has this one"),
    ("event_schedule[1].id", "e1", "use another id, event_schedule[0] has this one"),
    ("viable_routes[1].id", "inspect", "use another id, inspect:KEY has a meaning"),
    # conditions
    ("success_conditions", [], "use a list that is not empty"),
    ("success_conditions[0]", [], "use a dict"),
    ("success_conditions[0].key", "boked", "use one of card, seats, booked, mood, noise, missed"),
    ("success_conditions[0].key", 1, "use text"),
    ("success_conditions[0].key", DROPPED, "success_conditions[0].key is missing: use text"),
    ("success_conditions[0].value", DROPPED, "success_conditions[0].value is missing: use a bool"),
    ("success_conditions[0].value", 1, "type boolean"),
    ("success_conditions[0].value", math.nan, "use a boolean"),
    ("success_conditions[0].operator", "eq", "no such field, use one of key, op, value"),
    ("success_conditions[0].op", "==", "use one of eq, ne, lt, le, gt, ge"),
    ("success_conditions[0].op", ["eq"], "use one of eq, ne, lt, le, gt, ge"),
    ("success_conditions[0].op", "ge", "use eq or ne, as 'booked' is of type boolean"),
    ("failure_conditions[2].op", "lt", "use eq or ne, as 'mood' is of type text"),
    ("failure_conditions[1].key", "other", "use one of card"),
    ("failure_conditions[1].value", "0", "type number"),
    ("milestones[0].condition_key", "other", "use one of card"),
    ("milestones[0].condition_value", 1, "type boolean"),
    ("viable_routes[0].preconditions.other", True, "no such key, use one of card"),
    ("viable_routes[0].preconditions.seats", True, "type number"),
    # routes
    ("viable_routes[0].required_action_types", [], "use a list that is not empty"),
    ("viable_routes[0].required_action_types[1]", "communicate", "use each of the list once"),
    ("viable_routes[0].required_action_types[0]", "", "not empty"),
    ("viable_routes[0].closes_routes[1]", "r9", "use one of r1, r2"),
    ("viable_routes[1].milestones_unlocked[0]", "m9", "use one of m1, m2"),
    ("event_schedule[0].closes_routes[0]", "r9", "use one of r1, r2"),
    ("viable_routes[0].cost.money", -1, "use a finite number from 0 to 1e+30"),
    ("viable_routes[0].cost.money", math.inf, "use a finite number"),
    ("viable_routes[0].cost.time", 1, "no such field, use one of money"),
    # prior and constraints
    ("hidden_prior.mood", [["calm", 1]], "no hidden key, use one of card, seats"),
    ("hidden_prior.card", [], "use a list that is not empty"),
    ("hidden_prior.card", {"a": 1}, "use a list"),
    ("hidden_prior.card[0]", (True, 1), "use a list of 2"),
    ("hidden_prior.card[0]", [True], "use a list of 2"),
    ("hidden_prior.card[1][0]", 1, "type boolean"),
    ("hidden_prior.card[1][1]", 0, "use a finite number above 0, up to 1e+30"),
    ("hidden_prior.card[1][1]", math.inf, "use a finite number"),
    ("constraints.deadline_step", 0, "use a whole number from 1 to 1,000,000,000"),
    ("constraints.deadline_step", 8.5, "use a whole number"),
    ("constraints.deadline_step", None, "use a whole number"),
    ("constraints.budget_max", -1, "use a finite number from 0"),
    ("constraints.budget_max", "500", "use a finite number"),
    ("constraints.note", {1, 2}, files.PLAIN),
    ("constraints.note[1]", datetime.date(2026, 4, 23), files.PLAIN),
    ("domain_metadata.story", math.inf, files.PLAIN),
    ("domain_metadata.tags[3]", {2: 1}, "domain_metadata.tags[3][2] is 1: use text as the key"),
]


@pytest.mark.parametrize(("place", "value", "legal"), REFUSED)
def test_faults_are_told_with_place_value_and_what_is_legal(place, value, legal):
    task = changed(place, value)
    with pytest.raises(ValueError) as caught:
        validate(task)
    message = str(caught.value)
    # Where a row tells the place itself, the fault is in a part of what was changed.
    start = legal if legal.startswith(place) else f"{place} is {files.short(value)}: "
    assert message.startswith(start) and legal in message
    assert "\n" not in message and len(message) < 400


def test_a_name_among_none_or_very_many():
    task = source_example()
    task.viable_routes[0].milestones_unlocked = ["m"]
    with pytest.raises(ValueError, match=r"\[0\] is 'm': there is none to name$"):
        validate(task)
    task = source_example()
    task.visible_world = {f"key{number}": 1 for number in range(1000)}
    task.success_conditions[0]["key"] = "line\nbreak" * 100
    with pytest.raises(ValueError, match=r"^[^\n]*use one of secret_key, key0, [^\n]*, \.\.\.$"):
        validate(task)


def test_a_task_is_no_dict_and_free_data_no_knot():
    with pytest.raises(ValueError, match=r"^the task is {.*: use a Task$"):
        validate(good_task().to_dict())
    task = good_task()
    task.constraints["self"] = task.constraints
    with pytest.raises(ValueError, match=r"^constraints\.self\.self.*: at most 20"):
        validate(task)


ROUTE = good_task().to_dict()["viable_routes"][0]
UNFIT = [
    ("gaol", "x", "gaol: no field 'gaol' (did you mean 'goal'?): use one of id, "),
    (
        "viable_routes[0].costs",
        {},
        "viable_routes[0].costs: no field 'costs' (did you mean 'cost'?)",
    ),
    ("goal", DROPPED, "goal is missing: every Task has one"),
    ("viable_routes[0].final_reward", DROPPED, "viable_routes[0].final_reward is missing"),
    ("milestones[1].condition_value", DROPPED, "milestones[1].condition_value is missing"),
    ("viable_routes", {"r1": ROUTE}, "use a list"),
    ("viable_routes[0]", "r1", "viable_routes[0] is 'r1': use a dict with the fields of Route"),
]


@pytest.mark.parametrize(("place", "value", "legal"), UNFIT)
def test_dicts_and_files_of_another_form_are_refused(place, value, legal, tmp_path):
    data = changed(place, value, good_task().to_dict())
    with pytest.raises(ValueError, match=re.escape(legal)):
        Task.from_dict(data)
    path = tmp_path / "task.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="^" + re.escape(f"{path}: ") + ".*" + re.escape(legal)):
        Task.load(path)


@pytest.mark.parametrize("data", [None, [], "task", 3])
def test_other_data_are_no_task(data):
    with pytest.raises(ValueError, match=r"the task is .*: use a dict with the fields of Task"):
        Task.from_dict(data)


def test_lists_and_dicts_may_be_left_out():
    scalars = {"id": "a", "domain": "b", "goal": "c", "horizon": 1, "difficulty": 1}
    task = Task.from_dict(scalars)
    assert {name: value for name, value in task.to_dict().items() if value} == scalars
    assert task.success_conditions == [] and task.hidden_state == {}
    event = {"id": "e", "step": 1, "probability": 1, "description": ""}
    task = Task.from_dict(scalars | {"event_schedule": [event]})
    assert task.event_schedule == [ExoEvent(1, 1, "e", "", {}, {}, [])]


YAML = """
id: short
domain: any
goal: Get home
horizon: 10
difficulty: 1
success_conditions: [{key: home, value: true}]
viable_routes:
  - id: walk
    name: Walk
    description: On foot.
    required_action_types: &types [execute]
    consequences: {home: true}
    final_reward: 1
milestones: []
domain_metadata: {types: *types}
"""


def test_yaml_by_hand_is_read(tmp_path):
    path = tmp_path / "task.yml"
    path.write_text(YAML)
    task = Task.load(path)
    validate(task)
    assert task.viable_routes[0].closes_routes == []
    assert task.domain_metadata == {"types": ["execute"]}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("horizon: 10", "horizon: 10\nhorizon: 12", "the key 'horizon' stands twice in one dict"),
        ("{home: true}", "{home: true, 'home': false}", "the key 'home' stands twice"),
        ("final_reward: 1", "final_reward: .nan", "viable_routes[0].final_reward is nan: use"),
        ("final_reward: 1", "final_reward: -.inf", "viable_routes[0].final_reward is -inf: use"),
        ("Get home", "", "goal is None: use text"),
        ("{home: true}", "{home: }", "viable_routes[0].consequences.home is None: use text"),
        (
            "{home: true}",
            "{day: 2026-04-23}",
            "consequences.day is datetime.date(2026, 4, 23): use",
        ),
        ("{home: true}", "{2026-04-23: 1}", "use text as the key"),
        ("{home: true}", "{yes: 1}", "consequences[True] is 1: use text as the key"),
        ("{home: true}", "{[a]: 1}", "unhashable key"),
        ("{home: true}", "{home: !!binary aGk=}", "consequences.home is b'hi': use text"),
        ("{home: true}", "{home: !!python/name:os.system }", "could not determine a constructor"),
        ("*types", "&knot [*knot]", "domain_metadata.types[0]"),
        ("[]", "[", "while parsing"),
        (YAML, "", "the task is None: use a dict"),
    ],
)
def test_pitfalls_of_yaml_are_refused(old, new, message, tmp_path):
    path = tmp_path / "task.yaml"
    path.write_text(YAML.replace(old, new))
    with pytest.raises(ValueError, match="^" + re.escape(f"{path}: ") + ".*") as caught:
        Task.load(path)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "a", "id": "b"}', "the key 'id' stands twice"),
        ('{"horizon": NaN}', "horizon is nan"),
        ('{"hidden_state": {"a": [1e999]}}', "hidden_state.a[0] is inf"),
        ('{"hidden_state": {"a b": null}}', "hidden_state['a b'] is None"),
        ("{", "line 1"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_pitfalls_of_json_are_refused(text, message, tmp_path):
    path = tmp_path / "task.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"{path}: ")) as caught:
        Task.load(path)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"suffix is '\.toml': use one of \.json, \.yaml, \.yml$"):
        Task.load(tmp_path / "task.toml")
    with pytest.raises(ValueError, match="suffix is ''"):
        good_task().save(tmp_path / "task")
    with pytest.raises(FileNotFoundError):
        Task.load(tmp_path / "task.json")
    (tmp_path / "task.json").write_bytes(b'"\xff"')
    with pytest.raises(ValueError, match=r"task\.json: .*utf-8"):
        Task.load(tmp_path / "task.json")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_files_cannot_hold_is_not_saved(suffix, tmp_path):
    for place, value in [("milestones[0].reward", math.nan), ("hidden_prior.card[0]", (True, 1))]:
        with pytest.raises(ValueError, match=re.escape(f"{place} is ")):
            changed(place, value).save(tmp_path / f"task.{suffix}")
    assert not list(tmp_path.iterdir())


def test_yaml_without_pyyaml_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "yaml", None)
    good_task().save(tmp_path / "task.json")
    assert Task.load(tmp_path / "task.json") == good_task()
    (tmp_path / "task.yaml").write_text("")
    for use in (Task.load, good_task().save):
        with pytest.raises(
            ImportError, match=r"^YAML files need: pip install 'lifedrift_jax\[cli\]'"
        ):
            use(tmp_path / "task.yaml")


def test_the_shipped_schema_is_todays():
    shipped = json.loads(schema.SCHEMA_FILE.read_text())
    assert shipped == schema.json_schema(), "write it again, see the docstring of schema.py"
    assert shipped["properties"]["horizon"]["maximum"] == MAX_STEPS
    for part in (shipped, *shipped["$defs"].values()):
        assert part["description"] and all(x["description"] for x in part["properties"].values())
    assert shipped["required"] == [
        *("id", "domain", "goal", "success_conditions", "horizon", "difficulty")
    ]


def test_json_schema_is_a_copy():
    schema.json_schema()["properties"]["hidden_state"]["additionalProperties"].clear()
    assert schema.json_schema() == json.loads(schema.SCHEMA_FILE.read_text())


@pytest.mark.parametrize("module", ["schema", "validate", "files"])
def test_plain_python_is_enough(module):
    tree = ast.parse(Path(schema.__file__).with_name(f"{module}.py").read_text())
    top = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    names = {n.module if isinstance(n, ast.ImportFrom) else n.names[0].name for n in top}
    assert not {name.split(".")[0] for name in names} & {"jax", "numpy", "yaml", "chex"}


def test_loading_a_task_starts_no_backend(clean_environ, tmp_path):
    good_task().save(tmp_path / "task.json")
    code = (
        "import sys; from lifedrift_jax.life_stack.schema import Task; "
        f"Task.load({str(tmp_path / 'task.json')!r}); assert 'yaml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=clean_environ)
