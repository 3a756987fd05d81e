import json
import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax import rng
from lifedrift_jax.life_stack import (
    OUTCOMES,
    Capacity,
    ExoEvent,
    LifeStack,
    Milestone,
    Noise,
    Route,
    Task,
    actions,
    compile_task,
    describe,
    generate,
    labels,
    tables,
    texts,
    words,
)

CAPACITY = Capacity(routes=5, keys=12, milestones=4, events=5, types=13)
ENV = LifeStack(CAPACITY)
MISSED = {"key": "missed_deadline", "value": True}
NEVER, ALWAYS = np.full(5, 0.9, np.float32), np.full(5, 0.001, np.float32)


def route(name, types, needs=None, sets=None, closes=(), unlocks=(), pays=1.0, cost=None):
    return Route(
        id=name,
        name=f"The {name}",
        description=f"All about {name}.",
        required_action_types=types.split(),
        preconditions=needs or {},
        consequences=sets or {},
        closes_routes=list(closes),
        milestones_unlocked=list(unlocks),
        final_reward=pays,
        cost={} if cost is None else {"money": cost},
    )


def crisis(**changes):
    """A task with every kind of key, event and obstacle."""
    bribe_rules = {"needs": {"guard": "bribable"}, "closes": ["queue"], "cost": 60}
    fields = {
        "id": "border",
        "domain": "travel",
        "goal": "Cross the border {today}.",
        "constraints": {"budget_max": 100, "deadline_step": 8, "note": None},
        "hidden_state": {"guard": "bribable"},
        "mutable_world": {"office": "open-then-shut", "seats": 2, "noise": 1.5},
        "visible_world": {"weather": "dry", "seats": 2},
        "success_conditions": [{"key": "across", "value": True}],
        "failure_conditions": [MISSED, {"key": "weather", "value": "storm"}],
        "event_schedule": [
            ExoEvent(-1, 0.5, "rumour", "People talk", {"noise": 9.5}, {}, []),
            ExoEvent(3, 1, "shift", "The guards change.", {}, {"guard": "never-told"}, []),
            ExoEvent(4, 1, "full", "The bus fills.", {"seats": 0}, {}, ["hike"]),
            ExoEvent(7, 1, "gale", "", {"weather": "storm"}, {}, []),
        ],
        "viable_routes": [
            route("bribe", "spend communicate", pays=2.5, sets={"across": True}, **bribe_rules),
            route("queue", "wait", {"office": "open"}, {"stamp": True}),
            route("bus", "plan", {"seats": 2}, {"stamp": True}, unlocks=["m2"], pays=0.8, cost=70),
            route("hike", "rest sing", pays=0, cost=0.25),
        ],
        "milestones": [
            Milestone("m1", "The stamp is got.", "stamp", True, 1.0),
            Milestone("m2", "", "across", True, 0.5),
        ],
        "horizon": 10,
        "difficulty": 3,
        "domain_metadata": {"story": "It is late."},
        "hidden_prior": {"guard": [["bribable", 1], ["strict-and-secret", 1]]},
    }
    return Task(**fields | changes)


def start(task=None, **values):
    """(params, state): where the keys have these values, which must be possible ones."""
    params = compile_task(task or crisis(), CAPACITY, best_return=5.0)
    _, state = ENV.reset(rng.root_key(0), params)
    return params, with_values(state, params, **values)


def with_values(state, params, **values):
    writes = texts.of(int(params.task)).writes(values)
    facts = (state.world.facts & ~writes.clears) | writes.sets
    world = replace(state.world, facts=facts)
    return replace(state, world=world, undo=world)


def take(params, state, action, draws=NEVER):
    """(text, state) after an action, given as its name or as any integer."""
    index = describe.action_names(params).index(action) if isinstance(action, str) else action
    step = ENV.advance(state, np.int32(index), Noise(draws), params)
    return describe.outcome(state, index, step, params), step.state


def play(params, state, *names):
    for name in names:
        text, state = take(params, state, name)
    return text, state


def routes(state, params):
    return {x["id"]: x for x in describe.observation(state, params)["routes"]}


def test_first_observation():
    params, state = start(guard="bribable")
    seen = describe.observation(state, params)
    assert json.loads(json.dumps(seen, allow_nan=False)) == seen
    assert seen["routes"][0] == {
        "id": "bribe",
        "name": "The bribe",
        "description": "All about bribe.",
        "status": "open",
        "actions_left": ["communicate", "spend"],
        "preconditions": {"guard": "bribable"},
        "cost": 60,
        "final_reward": 2.5,
        "closes": ["queue"],
        "unlocks": [],
    }
    assert [x["id"] for x in seen.pop("routes")] == ["bribe", "queue", "bus", "hike"]
    assert routes(state, params)["bus"]["unlocks"] == ["m2"]
    assert seen == {
        "task_id": "border",
        "goal": "Cross the border {today}.",
        "story": "It is late.",
        "step_number": 0,
        "steps_remaining": 10,
        "deadline_in": 8,
        "money_spent": 0,
        "money_left": 100,
        "known": {"seats": 2, "weather": "dry"},
        "can_inspect": ["guard", "office", "noise", "across", "stamp", "missed_deadline"],
        "milestones": [
            {"id": "m1", "description": "The stamp is got.", "reached": False, "reward": 1},
            {"id": "m2", "description": "", "reached": False, "reward": 0.5},
        ],
        "events": [],
        "rollback_possible": False,
        "earned": 0,
        "last_action": None,
        "last_action_outcome": words.OUTCOMES["none"],
    }
    assert {type(seen[n]) for n in ("money_spent", "money_left", "earned")} == {float}
    assert describe.observation(state, params, task_id="life_stack/x-v0")["task_id"][-3:] == "-v0"


def test_observation_follows_the_episode():
    params, state = start(guard="bribable")
    _, state = play(params, state, "inspect:guard", "inspect:across", "wait", "wait")
    seen = describe.observation(state, params)
    assert seen["known"] == {"guard": "never-told", "seats": 2, "weather": "dry", "across": None}
    assert (seen["step_number"], seen["deadline_in"]) == (4, 4)
    assert seen["events"] == [{"id": "shift", "description": "The guards change."}]
    assert (seen["last_action"], seen["rollback_possible"]) == ("wait", True)
    _, state = take(params, state, "bus:plan", ALWAYS)  # full just now
    seen = describe.observation(state, params)
    assert [event["id"] for event in seen["events"]] == ["shift", "full", "rumour"]
    assert {name: x["status"] for name, x in routes(state, params).items()} == {
        **dict.fromkeys(("bribe", "queue", "bus"), "open"),
        "hike": "closed",
    }
    assert routes(state, params)["hike"]["actions_left"] == []
    assert seen["known"]["seats"] == 0


def test_money_rewards_and_milestones_follow():
    params, state = start(guard="bribable")
    _, state = play(params, state, "hike:sing", "hike:rest", "bus:plan")
    seen = describe.observation(state, params)
    assert (seen["money_spent"], seen["money_left"]) == (70.25, 29.75)
    assert seen["earned"] == 2.3  # not 2.299999952316284
    assert [x["reached"] for x in seen["milestones"]] == [True, True]
    assert routes(state, params)["bus"]["status"] == "completed"


def test_what_a_task_does_not_limit_is_none():
    params, state = start(crisis(constraints={}, domain_metadata={"story": ["no", "text"]}))
    seen = describe.observation(state, params)
    assert (seen["deadline_in"], seen["money_left"], seen["story"]) == (None, None, "")
    text = describe.paragraph(state, params)
    assert "there is no deadline" in text and "Money spent 0, there is no limit" in text


@pytest.mark.parametrize(
    "ask", [describe.observation, describe.legal_actions, describe.grade_components]
)
def test_a_batch_is_refused_with_the_way_out(ask):
    params, state = start()
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    with pytest.raises(ValueError, match=r"batch of shape \(2,\).*take one episode"):
        ask(batch, params)


def test_paragraph():
    params, state = start(guard="bribable")
    _, state = take(params, state, "bus:plan", ALWAYS)
    assert describe.paragraph(state, params, "a/b-v0").split("\n") == [
        "Task a/b-v0: Cross the border {today}.",
        "It is late.",
        "Steps taken 1, left 9; steps to the deadline 7.",
        "Money spent 70, left 30. Rewards so far 2.3.",
        'Known: seats = 2, weather = "dry".',
        "Not known, to be inspected: guard, office, noise, across, stamp, missed_deadline.",
        "Open routes:",
        "- bribe: The bribe. All about bribe; takes communicate, spend; "
        'needs guard = "bribable"; costs 60; pays 2.5; closes queue',
        '- queue: The queue. All about queue; takes wait; needs office = "open"; pays 1',
        "- hike: The hike. All about hike; takes rest, sing; costs 0.25",
        "Completed routes:",
        "- bus: The bus. All about bus",
        "Milestones reached:",
        "- m1: The stamp is got; pays 1",
        "- m2; pays 0.5",
        "Events so far:",
        "- rumour: People talk",
        "The last action can be rolled back.",
        "Last action: bus:plan was done: the route is complete.",
    ]


def test_action_names_are_the_tasks_own_and_unique():
    params, _ = start()
    names, generic = describe.action_names(params), actions.names(CAPACITY)
    assert len(names) == len(generic) == len(set(names)) == ENV.num_actions
    assert names[:2] == ("bribe:inspect", "bribe:plan")
    assert names[11:14] == ("bribe:sing", "route0:type12", "queue:inspect")
    assert names[-14:-12] == ("inspect:guard", "inspect:office")
    assert names[-3:] == ("inspect:key11", "wait", "rollback")
    for own, other in zip(names, generic, strict=True):
        assert own == other or re.match(r"(bribe|queue|bus|hike):|inspect:[a-z_]+$", own)


@pytest.mark.parametrize("others", ["key0", "route4"])
def test_a_name_of_the_tasks_own_comes_before_a_generic_one(others):
    task = crisis(
        visible_world={others: 1}, milestones=[], event_schedule=[], failure_conditions=[]
    )
    task.viable_routes[1].id = others
    task.viable_routes[1].required_action_types = ["type12", "inspect"]
    for other in task.viable_routes:
        other.closes_routes, other.milestones_unlocked = [], []
    params, state = start(task)
    name = f"{others}:type12"
    index = describe.checked_action(name, state, params)
    assert describe.action_names(params)[index] == name and index // 13 == 1
    # A key and a route of the same name: inspect means the key, which is visible here.
    with pytest.raises(ValueError, match=f"^inspect:{others} is not legal: {others} is shown"):
        describe.checked_action({"action_type": "inspect", "target": others}, state, params)
    assert describe.checked_action(f"{others}:inspect", state, params) == 13


def test_every_form_of_an_action_is_known():
    params, state = start(guard="bribable")
    _, state = play(params, state, "wait")
    for index, name in enumerate(describe.action_names(params)):
        if name not in describe.legal_actions(state, params):
            continue
        about, _, rest = name.partition(":")
        asked = {"action_type": rest, "target": about} if rest else {"action_type": about}
        asked = {"action_type": about, "target": rest} if about == "inspect" else asked
        for action in (
            *(name, actions.names(CAPACITY)[index], index, np.int64(index), jnp.int32(index)),
            *(asked, asked | {"reasoning": "x" * 4_000}, asked | {"reasoning": None}),
            *([asked | {"target": None}] if not rest else []),
        ):
            result = describe.checked_action(action, state, params)
            assert (result, type(result)) == (index, int)


LEGAL = (
    "; legal here: bribe communicate, spend; queue wait; bus plan; hike rest, sing; "
    "inspect guard, office, noise, across, stamp, missed_deadline; wait"
)
NO_NAMES = ("6", "", "bribe", "bribe:run", "Bribe:spend", "bribe: spend", "inspect:nothing")
NO_INTEGERS = (79, -1, 2**40, 2.0, float("nan"), True, np.bool_(True), None, ["wait"], b"wait")


@pytest.mark.parametrize("action", [*NO_NAMES, *NO_INTEGERS, "x" * 5_000])
def test_no_other_action_is_accepted_and_the_error_says_what_is(action):
    params, state = start()
    with pytest.raises(ValueError) as error:
        describe.checked_action(action, state, params)
    form = "use a name (ROUTE:TYPE, inspect:KEY, wait or rollback), an index in [0, 79), or a map"
    assert re.match(r"no action .{1,70}: use ", str(error.value))
    assert form in str(error.value) and str(error.value).endswith(LEGAL)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action_type": "run"}, "action_type is 'run': use one of inspect, plan, .*, sing; legal"),
        ({"action_type": 0}, "action_type is 0: use one of inspect"),
        ({"action_type": np.array([1, 2])}, "action_type is array"),
        ({"action_type": "guard", "target": "inspect"}, "action_type is 'guard': use one of"),
        ({"target": "train"}, "target is 'train': use one of bribe, queue, bus, hike; legal"),
        ({"target": None}, "target is None: use one of bribe"),
        ({"target": 0}, "target is 0: use one of bribe"),
        ({"target": ["bribe"]}, r"target is \['bribe'\]: use one of bribe"),
        ({"action_type": "inspect", "target": "key"}, "target is 'key': use one of bribe, .*guard"),
        ({"action_type": "wait", "target": "train"}, "target is 'train': use one of bribe"),
        ({"target": "y" * 5_000}, "target is 'yyy.{0,60}: use one of"),
        ({"reasoning": "x" * 4_001}, "reasoning is 'xxx.{0,60}: use text of at most 4,000 char"),
        ({"reasoning": 3}, "reasoning is 3: use text"),
        ({"task_id": 3}, "action has the fields .*'task_id'.*: use a name"),
    ],
)
def test_a_field_of_another_form_is_named(changes, message):
    params, state = start()
    good = {"action_type": "spend", "target": "bribe", "reasoning": "no time"}
    assert describe.checked_action(good, state, params) == 5
    with pytest.raises(ValueError, match=f"^{message}") as error:
        describe.checked_action(good | changes, state, params)
    assert str(error.value).endswith(LEGAL)
    with pytest.raises(ValueError, match=r"^target is None"):
        describe.checked_action({"action_type": "spend"}, state, params)
    with pytest.raises(ValueError, match=r"^action has the fields"):
        describe.checked_action({"target": "bribe"}, state, params)


@pytest.mark.parametrize(
    ("before", "action", "why"),
    [
        ("hike:rest", "hike:rest", "rest was done already on the route hike"),
        ("bus:plan", "bus:plan", "the route bus is completed already"),
        ("bribe:spend", "bribe:spend", "the route bribe is closed"),  # a blind attempt
        ("wait", "hike:plan", "the route hike takes no plan"),
        ("wait", "route4:type0", "there is no such route"),
        ("wait", "hike:plan", "the route hike takes no plan"),
        ("wait", "route3:type12", "the route hike takes no type12"),
        ("wait", "inspect:weather", "weather is shown already"),
        ("inspect:noise", "inspect:noise", "noise is shown already"),
        ("wait", "inspect:key11", "there is no such key"),
        ("inspect:noise", "rollback", "the last action was none that can be undone"),
        ("rollback", "rollback", "the one rollback of the episode is used up"),
    ],
)
def test_an_illegal_action_is_refused_with_the_reason_and_told_in_the_outcome(before, action, why):
    params, state = start(guard="strict-and-secret")
    _, state = play(params, state, "wait", before)
    with pytest.raises(ValueError, match=f"^{action} is not legal: {why}; legal here: ") as error:
        describe.checked_action(action, state, params)
    assert f"{action};" not in str(error.value).replace(":", " ")
    text, state = take(params, state, action)
    assert text == f"{words.OUTCOMES['invalid']} It was {action}: {why}. Reward +0.000."
    assert describe.observation(state, params)["last_action"] is None


@pytest.mark.parametrize("action", [79, 2**31 - 1, -1])
def test_an_action_out_of_range_is_told_as_such(action):
    text, _ = take(*start(), action)
    why = f"It was {action}, which is no action. Reward +0.000."
    assert text == f"{words.OUTCOMES['invalid']} {why}"


def test_legal_actions_are_those_of_the_mask_and_all_are_in_a_finished_episode():
    params, state = start(guard="bribable")
    for name in ("hike:rest", "bribe:spend", "bribe:communicate"):
        mask, names = ENV.action_mask(state, params), describe.action_names(params)
        legal = [name for name, ok in zip(names, mask, strict=True) if ok]
        assert describe.legal_actions(state, params) == legal
        _, state = take(params, state, name)
    assert describe.legal_actions(state, params) == list(names)
    assert describe.checked_action("rollback", state, params) == 78
    with pytest.raises(ValueError, match="legal here: all, for the episode is over"):
        describe.checked_action("no", state, params)


@pytest.mark.parametrize(
    ("outcome", "path", "text"),
    [
        ("waited", ["wait"], "Nothing was done, and a step passed."),
        ("rolled_back", ["wait", "rollback"], words.OUTCOMES["rolled_back"]),
        ("inspected", ["inspect:noise"], "noise was inspected: it is 1.5."),
        ("inspected", ["inspect:stamp"], "stamp was inspected: it is absent."),
        ("inspected", ["inspect:guard"], 'guard was inspected: it is "strict-and-secret".'),
        ("progressed", ["hike:rest"], "hike:rest was done: the route still takes sing."),
        ("completed", ["hike:rest", "hike:sing"], "hike:sing was done: the route is complete."),
        ("closed", [*["wait"] * 4, "hike:rest"], "hike:rest was blocked: an event has just"),
        (
            "unknown",
            ["bribe:spend"],
            "bribe:spend was blocked by something that has not been inspected: the route is "
            "closed now.",
        ),
        (
            "precondition",
            ["inspect:guard", "bribe:spend"],
            'bribe:spend was blocked: the route needs guard = "bribable".',
        ),
        (
            "precondition",
            ["queue:wait"],
            "queue:wait was blocked: the route needs something that is not visible to be "
            "otherwise.",
        ),
        (
            "precondition",
            ["inspect:office", "queue:wait"],
            'queue:wait was blocked: the route needs office = "open".',
        ),
        ("precondition", [*["wait"] * 4, "bus:plan"], "bus:plan was blocked: the route needs seat"),
    ],
)
def test_outcome_and_observation_tell_the_same_of_every_outcome(outcome, path, text):
    params, state = start(guard="strict-and-secret")
    told, state = play(params, state, *path)
    assert OUTCOMES[int(state.last_outcome)] == outcome
    assert told.startswith(text)
    sentence = describe.observation(state, params)["last_action_outcome"]
    assert told.startswith(f"{sentence} ") and sentence.startswith(text)


def test_outcome_of_a_budget():
    params, state = start(guard="bribable")
    text, _ = play(params, state, "bus:plan", "bribe:spend", "bribe:communicate")
    told = "bribe:communicate was blocked: the route costs 60, and 30 is left. Reward +0.000."
    assert text == told


def test_every_outcome_has_its_words():
    assert tuple(words.OUTCOMES) == tables.OUTCOMES


def test_outcome_tells_events_milestones_and_what_a_rollback_takes_back():
    params, state = start()
    text, state = take(params, state, "bus:plan", ALWAYS)
    assert text == (
        "bus:plan was done: the route is complete. Event rumour: People talk. "
        "Milestone m1: The stamp is got. Milestone m2. Reward +2.300."
    )
    text, state = take(params, state, "rollback", ALWAYS)
    assert text == f"{words.OUTCOMES['rolled_back']} No longer reached: m1, m2. Reward -2.300."
    assert describe.observation(state, params)["earned"] == 0


def test_outcome_tells_the_end():
    params, state = start(guard="bribable")
    text, state = play(params, state, "bribe:spend", "bribe:communicate")
    assert text.endswith("Milestone m2. Reward +3.000. Success: that was the end.")
    text, after = take(params, state, "wait")
    assert text == words.ALREADY_OVER
    assert describe.paragraph(after, params) == describe.paragraph(state, params)
    params, state = start()
    text, _ = play(params, state, *["wait"] * 8)
    assert "Event gale. Reward" in text
    assert text.endswith(
        'Failure, since the deadline has passed and weather = "storm": that was the end.'
    )


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        ({"key": "noise", "op": "gt", "value": 2}, "something that is not visible came to be"),
        ({"key": "seats", "op": "lt", "value": 2}, "seats = 0"),
        ({"key": "guard", "value": "never-told"}, "something that is not visible came to be"),
        (None, None),
    ],
)
def test_why_an_episode_failed_is_told_of_what_is_visible(failure, why):
    params, state = start(crisis(constraints={}, failure_conditions=[failure] if failure else []))
    while not ENV.is_terminal(state, params):
        text, state = take(params, state, "wait", ALWAYS)
    assert text.endswith(f"Failure, since {why}: that was the end." if why else words.LAST_STEP)


def test_a_deadline_that_passes_in_the_same_step_is_told_right():
    late = [route("late", "plan", {"missed_deadline": True, "weather": "dry"}, {"across": True})]
    changes = {"constraints": {"deadline_step": 1}, "failure_conditions": [], "milestones": []}
    task = crisis(viable_routes=late, event_schedule=[], **changes)
    task.visible_world["missed_deadline"] = False
    params, state = start(task)
    text, state = take(params, state, "late:plan")
    assert "blocked: the route needs missed_deadline = true" in text
    assert describe.observation(state, params)["known"]["missed_deadline"] is True
    assert "the deadline has passed" in describe.paragraph(state, params)


def test_grade_components_add_up_to_the_grade():
    params, state = start(guard="bribable")
    _, state = play(params, state, "bus:plan")
    parts = describe.grade_components(state, params)
    assert parts == {
        "route:bribe": {"weight": 0.5, "value": 0},
        "route:queue": {"weight": 0.2, "value": 0},
        "route:bus": {"weight": 0.16, "value": 1},
        "milestone:m1": {"weight": 0.2, "value": 1},
        "milestone:m2": {"weight": 0.1, "value": 1},
    }
    total = sum(part["weight"] * part["value"] for part in parts.values())
    assert total == pytest.approx(float(ENV.grade(state, params)), abs=1e-6)


HIDDEN = {"guard": ("bribable", "strict-and-secret"), "office": ("open-then-shut", "never-open")}
SECRETS = "strict-and-secret|never-|open-then-shut|9.5"  # values that no public rule names


def secretive():
    """The task, where an event has another value for the office."""
    shut = ExoEvent(9, 1, "end", "", {"office": "never-open"}, {}, [])
    return crisis(event_schedule=[*crisis().event_schedule, shut])


def everything(state, params):
    """All texts about a state."""
    errors = []
    for action in [*range(-1, ENV.num_actions, 7), "nonsense", {"action_type": "x"}]:
        try:
            errors.append(describe.checked_action(action, state, params))
        except ValueError as error:
            errors.append(str(error))
    asked = (describe.observation, describe.paragraph, describe.legal_actions)
    told = [ask(state, params) for ask in (*asked, describe.grade_components)]
    return json.dumps([errors, *told])


@pytest.mark.parametrize("key", HIDDEN)
@pytest.mark.parametrize("seed", range(4))
def test_no_text_tells_a_value_before_it_is_inspected(key, seed):
    params, state = start(secretive())
    twins = [with_values(state, params, **{key: value}) for value in HIDDEN[key]]
    random = np.random.default_rng(seed)
    text = other_text = ""
    while True:
        one, other = (everything(twin, params) for twin in twins)
        assert (one, text) == (other, other_text)
        assert not re.search(SECRETS, one + text)
        if ENV.is_terminal(twins[0], params):
            break
        # To try a route that needs a value is a public test of it.
        revealing = ("bribe", "queue", "inspect:guard", "inspect:office", "inspect:noise")
        legal = describe.legal_actions(twins[0], params)
        action = str(random.choice([name for name in legal if not name.startswith(revealing)]))
        draws = random.random(5, np.float32)
        (text, one), (other_text, other) = (take(params, x, action, draws) for x in twins)
        twins = [one, other]


@pytest.mark.parametrize("key", HIDDEN)
def test_an_inspection_tells_the_value_and_so_it_stays(key):
    params, state = start(secretive())
    for value in HIDDEN[key]:
        text, after = take(params, with_values(state, params, **{key: value}), f"inspect:{key}")
        assert f'it is "{value}"' in text
        _, after = take(params, after, "wait")
        assert describe.observation(after, params)["known"][key] == value
        assert f'{key} = "{value}"' in describe.paragraph(after, params)


def test_a_blind_attempt_tells_nothing_but_that_it_failed():
    params, state = start()
    told = []
    for value in ("strict-and-secret", "never-told"):
        text, after = take(params, with_values(state, params, guard=value), "bribe:spend")
        told.append(text + everything(after, params))
        assert routes(after, params)["bribe"]["status"] == "closed"
    assert told[0] == told[1] and not re.search(SECRETS, told[0])


def test_a_generated_task_is_told_in_numbers():
    generated = jax.jit(generate.generate, static_argnums=1)
    env, params = LifeStack(generate.CAPACITY), generated(rng.root_key(1), generate.Knobs())
    _, state = env.reset(rng.root_key(2), params)
    assert describe.action_names(params) == env.action_names
    seen = describe.observation(state, params)
    assert json.loads(json.dumps(seen, allow_nan=False)) == seen
    assert (seen["task_id"], seen["goal"]) == ("task", words.GOAL)
    assert seen["can_inspect"] == ["key10"] and "key10" not in seen["known"]
    assert {type(value) for value in seen["known"].values()} == {int}
    (gated,) = (x for x in seen["routes"] if x["preconditions"])
    assert len(seen["routes"]) == 5 and list(gated["preconditions"]) == ["key10"]
    mask = env.action_mask(state, params)
    legal = [name for name, ok in zip(env.action_names, mask, strict=True) if ok]
    assert describe.legal_actions(state, params) == legal
    kind = gated["actions_left"][0]
    asked = {"action_type": kind, "target": gated["id"]}
    index = describe.checked_action(asked, state, params)
    assert env.action_names[index] == f"{gated['id']}:{kind}"
    with pytest.raises(ValueError, match="use one of type0, type1, type2, type3, inspect, wait"):
        describe.checked_action({"action_type": "run"}, state, params)
    step = env.advance(state, np.int32(index), env.draw(rng.root_key(3)), params)
    assert f"{gated['id']}:{kind} was " in describe.outcome(state, index, step, params)
    assert "Task task: Complete routes" in describe.paragraph(step.state, params)


def test_a_task_of_another_process_is_told_in_numbers(monkeypatch):
    unusual = start()
    params = compile_task(crisis(), best_return=5.0)
    _, state = LifeStack().reset(rng.root_key(0), params)
    monkeypatch.setattr(texts, "of", lambda number: None)
    assert describe.action_names(params) == LifeStack().action_names
    assert [x["id"] for x in describe.observation(state, params)["routes"]][-1] == "route3"
    params, state = unusual
    assert [x["id"] for x in describe.observation(state, params)["routes"]][-1] == "route3"


def test_labels_leave_out_padding():
    own = labels.of(start()[0])
    assert (len(own.routes), len(own.keys), len(own.milestones), len(own.events)) == (4, 8, 2, 4)
    assert own.target(13 * 5) == (-1, -1, 0) and own.target(14) == (1, 1, -1)
    assert own.target(77) == own.target(-1) == (-1, -1, -1)
