import json
import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax import record, rng, terminal
from lifedrift_jax.baselines import simple
from lifedrift_jax.task_flow import actions, describe, generate, tables, words
from lifedrift_jax.task_flow.env import make
from lifedrift_jax.task_flow.types import Noise, task_params

ENV, _ = make("task_flow/easy-v0")
DOMAINS = list(tables.DOMAINS)
EXECUTE, DEFER, DELEGATE, OPTIMIZE = (range(12 * kind, 12 * kind + 12) for kind in range(4))
COUNTS = ("time_remaining", "step_number", "max_steps", "tasks_completed", "tasks_failed")
RESOURCES = ("energy_remaining", "budget_remaining", "system_health", "cumulative_value")
TEXTS = ("last_action_outcome", "task_id", "task_description")
FIELDS = {
    "tasks": list,
    **dict.fromkeys(COUNTS, int),
    **dict.fromkeys(RESOURCES, float),
    **dict.fromkeys(TEXTS, str),
}
NUMBERS = ("priority", "uncertainty", "value", "energy_cost", "budget_cost")
ITEM_FIELDS = {
    **dict.fromkeys(("task_id", "deadline", "optimized"), int),
    **dict.fromkeys(("title", "domain", "status"), str),
    **dict.fromkeys(NUMBERS, float),
}
OUT_OF_RANGE = (48, -1, 99, 2**40)
NO_NAMES = ("6", "", "execute", "execute:12", "execute: 3", "Execute:3", "run:3", b"execute:3")
NO_INTEGERS = (2.0, float("nan"), True, False, np.bool_(True), np.array([1]), None, ["execute", 3])


def noise(absence=0.5, failure=0.5):
    """Draws without drift upwards, hurry or spikes."""
    single = [np.float32(absence), np.float32(failure)]
    return Noise(*single, *(np.full(12, x, np.float32) for x in (0.5, 0.9, 0.9, 0.5)))


def start(tier, seed=0, **changes):
    params = replace(task_params(tier), **changes)
    _, state = ENV.reset(rng.reset_key(rng.episode_key(rng.root_key(seed), jnp.uint32(0))), params)
    return params, state


def take(params, state, action, draws=None):
    """(text, step) of an action."""
    step = ENV.advance(state, np.int32(action), draws or noise(), params)
    return describe.outcome(state, action, step, params), step


OPTIMIZE_COST = 100 * tables.RULES["optimize_cost"]
# A slot each: what its item is, and what of it.
SCENE = (
    ("pending", "email_triage"),
    ("pending", "code_review"),
    ("late", "data_pipeline"),
    ("held", "security_audit"),
    ("delegated", "email_triage"),
    ("completed", "model_retraining"),
    ("failed", "incident_response"),
    ("pending", "compliance_check"),
    ("pending", "incident_response"),  # too dear
)


def scene(tier="hard", **changes):
    """(params, state) with items of every status; slots 9 to 11 are empty."""
    params, state = start(tier, items=jnp.int32(len(SCENE)))
    costs = np.full(12, 0.5, np.float32)
    costs[8] = 100
    empty = ["empty"] * (12 - len(SCENE))
    statuses = [*(status for status, _ in SCENE), *empty]
    domains = [*(domain for _, domain in SCENE), *[DOMAINS[0]] * len(empty)]
    items = {
        "status": jnp.array([tables.STATUSES.index(status) for status in statuses], jnp.int32),
        "domain": jnp.array([DOMAINS.index(domain) for domain in domains], jnp.int32),
        "wording": jnp.arange(12, dtype=jnp.int32) % generate.WORDINGS,
        "priority": jnp.full(12, 0.8, jnp.float32),
        "deadline": jnp.where(jnp.arange(12) == 2, 0, jnp.full(12, 5, jnp.int32)),
        "value": jnp.ones(12, jnp.float32),
        "uncertainty": jnp.full(12, 0.9, jnp.float32),
        "energy_cost": jnp.asarray(costs),
        "budget_cost": jnp.asarray(costs),
    }
    return params, replace(state, **items, **changes)


@pytest.mark.parametrize("tier", tables.TASKS)
def test_first_observation_has_the_fields_of_the_source_in_plain_python(tier):
    params, state = start(tier)
    seen = describe.observation(state, params)
    assert {name: type(value) for name, value in seen.items()} == FIELDS
    assert all({n: type(x) for n, x in item.items()} == ITEM_FIELDS for item in seen["tasks"])
    assert json.loads(json.dumps(seen, allow_nan=False)) == seen
    spec = tables.TASKS[tier]
    assert len(seen["tasks"]) == spec.items
    assert (seen["time_remaining"], seen["step_number"], seen["max_steps"]) == (10, 0, 10)
    assert (seen["energy_remaining"], seen["budget_remaining"]) == (spec.energy, spec.budget)
    assert (seen["system_health"], seen["cumulative_value"]) == (1, 0)
    assert (seen["tasks_completed"], seen["tasks_failed"]) == (0, 0)
    assert (seen["task_id"], seen["task_description"]) == (tier, spec.description)
    assert seen["last_action_outcome"] == words.OUTCOMES["none"]


def test_a_task_id_is_reported_as_given():
    params, state = start("easy")
    name = "task_flow/easy-v0"
    assert describe.observation(state, params, task_id=name)["task_id"] == name
    assert describe.paragraph(state, params, task_id=name).startswith(f"Task {name}. ")


def test_only_items_in_the_queue_are_shown_with_their_numbers():
    params, state = scene(optimized=jnp.arange(12, dtype=jnp.int32))
    seen = describe.observation(state, params)
    assert [item["task_id"] for item in seen["tasks"]] == [0, 1, 2, 3, 7, 8]
    for item in seen["tasks"]:
        slot = item["task_id"]
        assert (item["status"], item["domain"]) == SCENE[slot]
        assert item["title"].startswith(words.TITLES[item["domain"]][slot % 8].format(level="P1"))
        for name in (*NUMBERS, "deadline", "optimized"):
            assert item[name] == getattr(state, name)[slot]
    assert (seen["tasks_completed"], seen["tasks_failed"]) == (1, 2)  # failed and late


def test_observation_follows_the_episode():
    params, state = start("medium")
    returned = 0.0
    for number, action in enumerate([EXECUTE[0], DELEGATE[1], OPTIMIZE[2], DEFER[9]], 1):
        _, step = take(params, state, action)
        state, returned = step.state, returned + float(step.reward)
        seen = describe.observation(state, params)
        assert (seen["step_number"], seen["time_remaining"]) == (number, 10 - number)
        assert seen["cumulative_value"] == pytest.approx(returned, abs=1e-6)
        assert seen["energy_remaining"] == float(state.energy)
        assert seen["system_health"] == float(state.health)
    assert 0 not in [item["task_id"] for item in seen["tasks"]]


@pytest.mark.parametrize("ask", [describe.observation, describe.legal_actions])
def test_a_batch_is_refused_with_the_way_out(ask):
    params, state = start("easy")
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    with pytest.raises(ValueError, match=r"batch of shape \(2,\).*take one episode"):
        ask(batch, params)


def test_every_domain_has_a_title_a_wording():
    assert list(words.TITLES) == DOMAINS
    titles = [title for row in words.TITLES.values() for title in row]
    assert len(set(titles)) == len(titles)
    assert all(len(row) == generate.WORDINGS for row in words.TITLES.values())
    assert all(len(title.format(level="P1")) <= 60 for title in titles)
    named = [title.partition(":")[0] for title in words.TITLES["compliance_check"]]
    assert set(named) == {"GDPR", "HIPAA", "SOC2", "PCI-DSS"}
    levels = [domain for domain, row in words.TITLES.items() if any("{" in t for t in row)]
    assert levels == ["incident_response"]
    assert all(t.startswith("{level} incident: ") for t in words.TITLES["incident_response"])


@pytest.mark.parametrize(
    ("priority", "level"), [(1.0, "P1"), (0.75, "P1"), (0.74, "P2"), (0.5, "P2"), (0.2, "P3")]
)
def test_incidents_have_the_level_of_their_current_priority(priority, level):
    params, state = scene()
    state = replace(state, priority=jnp.full(12, priority, jnp.float32))
    assert describe.observation(state, params)["tasks"][-1]["title"].startswith(f"{level} inc")


def test_paragraph_reads_as_text_and_holds_every_number():
    params, state = scene()
    _, step = take(params, state, OPTIMIZE[0])
    seen = describe.observation(step.state, params)
    first, *lines, last = describe.paragraph(step.state, params, "an/id-v0").split("\n")
    assert first.startswith(f"Task an/id-v0. {tables.TASKS['hard'].description} 1 of 10 steps")
    assert f"Energy {seen['energy_remaining']:.2f} of 8.00" in first
    assert f"budget {seen['budget_remaining']:.2f} of 40.00" in first
    assert f"health {seen['system_health']:.2f}" in first
    assert f"value so far {seen['cumulative_value']:.3f}" in first
    assert last == f"Last action: {seen['last_action_outcome']}"
    order = [heading for heading in words.SECTIONS.values() if heading in lines]
    assert [line for line in lines if not line.startswith("- ")] == order
    for item in seen["tasks"]:
        (line,) = (line for line in lines if line.startswith(f"- {item['task_id']}: "))
        assert f"{item['title']} ({item['domain'].replace('_', ' ')})" in line
        for name in NUMBERS:
            assert f"{item[name]:.2f}" in line
    assert not {"_", "{", "}"} & set("\n".join([first, *lines]))


def test_paragraph_lists_held_and_late_items_apart_and_says_that_a_queue_is_empty():
    params, state = scene()
    lines = describe.paragraph(state, params).split("\n")
    held, late = (lines.index(words.SECTIONS[status]) for status in ("held", "late"))
    assert lines[held + 1].startswith("- 3: ")
    assert lines[late + 1].startswith("- 2: ")
    gone = replace(state, status=jnp.full(12, tables.COMPLETED, jnp.int32))
    assert words.NO_QUEUE in describe.paragraph(gone, params).split("\n")


@pytest.mark.parametrize("index", range(len(actions.NAMES)))
def test_actions_are_known_by_name_by_index_and_as_in_the_source(index):
    kind, _, slot = actions.NAMES[index].partition(":")
    asked = {"action_type": kind, "task_id": int(slot)}
    forms = (
        *(actions.NAMES[index], index, np.int64(index), jnp.int32(index), np.uint8(index)),
        *(asked, asked | {"reasoning": "x" * 4_000}, asked | {"reasoning": None}),
    )
    for action in forms:
        result = describe.checked_action(action)
        assert (result, type(result)) == (index, int)


@pytest.mark.parametrize("action", [*OUT_OF_RANGE, *NO_NAMES, *NO_INTEGERS])
def test_no_other_action_is_accepted_and_the_error_says_what_is(action):
    for where in ((), scene()[::-1]):
        with pytest.raises(ValueError) as error:
            describe.checked_action(action, *where)
        assert f"no action {action!r}: use a name such as execute:3" in str(error.value)
    assert str(error.value).endswith(
        "; legal here: execute 0, 1, 2, 7; defer 0, 1, 8; delegate 0, 1, 2, 7, 8; optimize 0, 1, 7"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action_type": "run"}, "action_type is 'run': use one of execute, defer, delegate"),
        ({"action_type": 0}, "action_type is 0: use one of execute"),
        ({"action_type": np.array([1, 2])}, "action_type is array"),
        ({"task_id": 12}, r"task_id is 12: use an integer in \[0, 12\)"),
        ({"task_id": -1}, "task_id is -1: use"),
        ({"task_id": "3"}, "task_id is '3': use"),
        ({"task_id": 3.0}, "task_id is 3.0: use"),
        ({"task_id": True}, "task_id is True: use"),
        ({"task_id": None}, "task_id is None: use"),
        ({"reasoning": "x" * 4_001}, "reasoning is 'xxx.{0,40}: use text of at most 4,000 char"),
        ({"reasoning": 3}, "reasoning is 3: use text"),
        ({"target": 3}, "action has the fields .*'target'.*: use a name such as"),
    ],
)
def test_a_field_of_another_form_is_named(changes, message):
    good = {"action_type": "execute", "task_id": 3, "reasoning": "it is first"}
    with pytest.raises(ValueError, match=message):
        describe.checked_action(good | changes)
    for missing in ("action_type", "task_id"):
        with pytest.raises(ValueError, match="action has the fields"):
            describe.checked_action({name: good[name] for name in good if name != missing})


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("execute:3", r"item 3 \(.*\) is held"),
        ("delegate:3", r"item 3 \(.*\) is held"),
        ("execute:8", r"item 8 \(.*\) takes 100.000 energy and 100.000 budget, of which 8.000"),
        (
            "optimize:8",
            rf"to optimize item 8 \(.*\) takes {OPTIMIZE_COST:.3f} energy and",
        ),
        ("defer:7", r"item 7 \(.*\) cannot be deferred, as no compliance check can"),
        ("defer:2", r"item 2 \(.*\) is late"),
        ("optimize:2", r"item 2 \(.*\) is late"),
        ("delegate:4", r"item 4 \(.*\) is delegated already"),
        ("execute:5", r"item 5 \(.*\) is completed already"),
        ("execute:6", r"item 6 \(.*\) is lost already"),
        ("defer:9", "there is no item 9"),
    ],
)
def test_an_illegal_action_is_refused_with_the_reason_and_told_in_the_outcome(action, why):
    params, state = scene()
    with pytest.raises(ValueError, match=f"^{action} is not legal: {why}.*; legal here: execute 0"):
        describe.checked_action(action, state, params)
    text, step = take(params, state, actions.NAMES.index(action))
    said = "The action was not legal: nothing was done, and time passed. It was "
    assert text.startswith(f"{said}{action}: ")
    assert step.info["invalid_action"]
    assert re.search(why, text, re.IGNORECASE)


def test_a_late_item_that_cannot_be_paid_for_is_told_as_such():
    params, state = scene(energy=jnp.float32(0.25))
    with pytest.raises(ValueError, match=r"item 2 \(.*\) takes 0.500 energy.*which 0.250 energy"):
        describe.checked_action("execute:2", state, params)


def test_legal_is_what_the_mask_says():
    states = [scene(), scene(energy=jnp.float32(0.2)), start("medium"), start("hard", 3)]
    params, state = start("hard", 1)
    for action in (DEFER[0], OPTIMIZE[1], EXECUTE[2], DELEGATE[4], EXECUTE[3]):
        state = take(params, state, action)[1].state
        states.append((params, state))
    for params, state in states:
        mask = np.asarray(ENV.action_mask(state, params))
        assert mask.any() and not mask.all()
        legal = [name for name, ok in zip(actions.NAMES, mask, strict=True) if ok]
        assert describe.legal_actions(state, params) == legal
        accepted = []
        for action in range(len(actions.NAMES)):
            try:
                accepted.append(actions.NAMES[describe.checked_action(action, state, params)])
            except ValueError as error:
                assert f"{actions.NAMES[action]} is not legal: " in str(error)
        assert accepted == legal


def test_in_a_finished_episode_every_action_is_legal():
    params, state = scene(step=jnp.int32(10))
    assert describe.legal_actions(state, params) == list(actions.NAMES)
    assert describe.checked_action("execute:11", state, params) == 11


def test_where_nothing_is_legal_the_error_says_so():
    params, state = scene()
    state = replace(state, status=jnp.full(12, tables.HELD, jnp.int32))
    with pytest.raises(ValueError, match=r"is held.*; legal here: nothing$"):
        describe.checked_action("delegate:0", state, params)


@pytest.mark.parametrize("tier", tables.TASKS)
@pytest.mark.parametrize("health", [0.25, 0.9])
def test_grade_components_add_up_to_the_grade(tier, health):
    spec = tables.TASKS[tier]
    params, state = scene(tier, health=jnp.float32(health), step=jnp.int32(3))
    state = replace(state, status=jnp.where(state.status == 3, tables.COMPLETED, state.status))
    parts = describe.grade_components(state, params)
    weights = dict(zip(tables.COMPONENTS, spec.weights, strict=True))
    weights |= {"failed": -spec.failed_penalty, "collapse": -spec.collapse_penalty}
    assert {name: part["weight"] for name, part in parts.items()} == pytest.approx(
        {name: weight for name, weight in weights.items() if weight}
    )
    assert parts["efficiency"]["value"] == pytest.approx(2 / 9)
    if "failed" in parts:
        assert parts["failed"]["value"] == pytest.approx(6 / 9)
    if "collapse" in parts:
        assert parts["collapse"]["value"] == (health < 0.3)
    total = sum(part["weight"] * part["value"] for part in parts.values())
    assert total == pytest.approx(float(ENV.grade(state, params)), abs=1e-6)
    assert json.loads(json.dumps(parts)) == parts


@pytest.mark.parametrize(
    ("outcome", "action", "draws"),
    [
        ("completed", EXECUTE[0], noise()),
        ("failed", EXECUTE[0], noise(failure=1e-3)),
        ("absent", EXECUTE[1], noise(absence=1e-3)),
        ("too_late", EXECUTE[2], noise()),
        ("deferred", DEFER[0], noise()),
        ("delegated", DELEGATE[7], noise()),
        ("closed", DELEGATE[2], noise()),
        ("optimized", OPTIMIZE[1], noise()),
    ],
)
def test_outcome_and_observation_tell_the_same_of_every_outcome(outcome, action, draws):
    params, state = scene()
    text, step = take(params, state, action, draws)
    slot = action % 12
    title = next(
        i["title"] for i in describe.observation(state, params)["tasks"] if i["task_id"] == slot
    )
    sentence = words.OUTCOMES[outcome].format(item=f"{slot} ({title})")
    assert describe.observation(step.state, params)["last_action_outcome"] == sentence
    assert text == f"{sentence} Reward {float(step.reward):+.3f}."


def test_every_outcome_and_every_status_has_its_words():
    assert tuple(words.OUTCOMES) == tables.OUTCOMES
    assert set(words.SECTIONS) == {"pending", "held", "late"}
    known = set(words.ILLEGAL)
    assert known == {*tables.STATUSES} - {"pending"} | {*tables.ACTION_TYPES} - {"delegate"}


@pytest.mark.parametrize("action", [48, 99, -1])
def test_an_action_out_of_range_is_told_as_such(action):
    params, state = scene()
    text, _ = take(params, state, action)
    assert (
        text == f"{words.OUTCOMES['invalid']} It was {action}, which is no action. Reward +0.000."
    )


def test_outcome_tells_what_is_late_now():
    params, state = scene()
    state = replace(state, deadline=jnp.where(jnp.arange(12) == 2, 0, jnp.int32(1)))
    text, step = take(params, state, EXECUTE[0])
    seen = describe.observation(step.state, params)
    late = [f"{i['task_id']} ({i['title']})" for i in seen["tasks"] if i["task_id"] != 2]
    assert len(late) == 4
    assert text.endswith(f"Now late: {', '.join(late)}.")
    assert seen["tasks_failed"] == 6
    assert "Now late" not in take(params, step.state, DELEGATE[2])[0]


def test_outcome_tells_the_end():
    params, state = scene(step=jnp.int32(9))
    text, step = take(params, state, EXECUTE[0])
    assert text.endswith(" That was the last step.")
    assert take(params, step.state, 0)[0] == "The episode was over already: nothing changed."
    only = jnp.where(jnp.arange(12) == 0, tables.PENDING, jnp.int32(tables.COMPLETED))
    text, step = take(params, replace(scene()[1], status=only), DELEGATE[0])
    assert text.endswith(" The queue is empty: that was the end.")
    assert step.terminated


def test_a_record_holds_the_words_and_makes_a_table():
    env, params = make("task_flow/medium-v0")
    played = record.episode_record(env, simple.random(), params, 5, 0, "task_flow/medium-v0")
    assert json.loads(json.dumps(played, allow_nan=False)) == played
    for step in played["steps"]:
        assert step["outcome"].startswith(step["view"]["last_action_outcome"])
        assert step["view"]["task_id"] == "task_flow/medium-v0"
    assert terminal.episode_table(played).row_count == len(played["steps"]) + 1
