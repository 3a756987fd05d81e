import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax import life_drift
from lifedrift_jax.life_drift import ACTIONS, PHASES, TASKS, VARIABLES, describe, words

ENV = life_drift.LifeDrift()
HALVES = life_drift.noise_from_uniforms(np.full(8, 0.5, np.float32))
OUT_OF_RANGE = (6, -1, 99, -7)
NO_NAMES = ("6", "2", "", "do nothing", "Do_nothing", b"do_nothing")
NO_INTEGERS = (2.7, 2.0, float("nan"), True, False, np.bool_(True), np.array([1]), None)
FIELDS = {
    "goal_alignment_score": float,
    "drift_score": float,
    "energy_level": float,
    "fatigue": float,
    "focus_score": float,
    "goals": list,
    "recent_actions": list,
    "time_of_day": str,
    "step_number": int,
    "max_steps": int,
    "task_id": str,
    "task_description": str,
}


def play(task, actions, **changes):
    """(params, state after the actions), every draw 1/2."""
    params = replace(life_drift.task_params(task), **changes)
    state = life_drift.initial_state(params)
    for action in actions:
        state = ENV.advance(state, np.int32(action), HALVES, params).state
    return params, state


@pytest.mark.parametrize("task", TASKS)
def test_first_observation_has_the_fields_of_the_source_in_plain_python(task):
    params, state = play(task, [])
    seen = describe.observation(state, params)
    assert {name: type(value) for name, value in seen.items()} == FIELDS
    assert json.loads(json.dumps(seen)) == seen
    shown = [seen[f] for f in list(FIELDS)[:5]]
    assert shown == [float(getattr(state, name)) for name in VARIABLES]
    assert seen["goals"] == list(TASKS[task].goals)
    assert seen["recent_actions"] == list(TASKS[task].habits)
    assert (seen["time_of_day"], seen["step_number"]) == ("morning", 0)
    assert seen["max_steps"] == TASKS[task].max_steps
    assert (seen["task_id"], seen["task_description"]) == (task, TASKS[task].description)


def test_observation_follows_the_episode():
    actions = [0, 1, 2, 3, 4, 5, 0]
    for n in range(len(actions) + 1):
        params, state = play("drift_correction", actions[:n], max_steps=jnp.int32(7))
        seen = describe.observation(state, params)
        assert (seen["step_number"], seen["max_steps"]) == (n, 7)
        assert seen["time_of_day"] == PHASES[min(5 * n // 7, 4)]
        # Habits first; then what was done, each in the wording of the steps taken before it.
        rows = (words.BEHAVIOURS[ACTIONS[a]] for a in actions[:n])
        done = [row[i % len(row)].format(goal="") for i, row in enumerate(rows)]
        assert seen["recent_actions"] == [*TASKS["drift_correction"].habits, *done][-3:]


def test_a_task_id_is_reported_as_given():
    params, state = play("drift_correction", [])
    name = "life_drift/drift_correction-v0"
    assert describe.observation(state, params, task_id=name)["task_id"] == name


def test_target_goals_appear_with_the_actions_they_were_named_with():
    params, state = play("long_term_stability", [0, 1, 2, 4])
    goals = ["study", "side_project", None, 3]
    told = describe.observation(state, params, goals)["recent_actions"]
    assert "for side project" in told[0]
    assert "for" not in told[1].split()
    assert "for networking" in told[2]
    assert told == describe.observation(state, params, goals[-3:])["recent_actions"]


def test_a_target_goal_of_one_action_belongs_to_the_latest():
    params, state = play("long_term_stability", [0, 0])
    *_, before, latest = describe.observation(state, params, ["study"])["recent_actions"]
    assert "for study" in latest
    assert "for study" not in before


def test_an_invalid_action_is_told_as_a_request_that_made_no_sense():
    params, state = play("drift_correction", [0, 99])
    told = describe.observation(state, params)["recent_actions"]
    assert told[2] == words.BEHAVIOURS["invalid_action"][0]
    assert told[1] == words.BEHAVIOURS["suggest_task"][0].format(goal="")


def test_a_batch_is_refused_with_the_way_out():
    params, state = play("drift_correction", [])
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    with pytest.raises(ValueError, match=r"batch of shape \(2,\).*take one episode"):
        describe.observation(batch, params)


def test_every_action_has_three_or_four_wordings_that_take_a_goal():
    assert list(words.BEHAVIOURS) == [*ACTIONS, "invalid_action"]
    texts = [text for action in ACTIONS for text in words.BEHAVIOURS[action]]
    assert len(set(texts)) == len(texts)
    assert all(len(words.BEHAVIOURS[action]) in (3, 4) for action in ACTIONS)
    for action in ACTIONS:
        assert any("{goal}" in text for text in words.BEHAVIOURS[action])
    for text in texts:
        assert "{" not in text.format(goal="")


def test_paragraph_reads_as_text_and_holds_every_number():
    params, state = play("energy_balance", [0, 2], cascade_threshold=jnp.float32(0.75))
    text = describe.paragraph(state, params, ["side_project", "fitness"], "an/id-v0")
    seen = describe.observation(state, params, ["side_project", "fitness"])
    assert text.startswith(f"Task an/id-v0. {TASKS['energy_balance'].description} 2 of 15 steps")
    for field in list(FIELDS)[:5]:
        assert f"({seen[field]:.2f})" in text
    for behaviour in seen["recent_actions"]:
        assert behaviour in text
    assert "fitness, study and side project" in text
    assert "above 0.75" in text
    assert not {"_", "{", "}"} & set(text.replace("an/id-v0", ""))


@pytest.mark.parametrize(
    ("value", "word"),
    [(0.0, "very low"), (0.2, "low"), (0.5, "middling"), (0.6, "high"), (1.0, "very high")],
)
def test_paragraph_says_how_high_a_value_is(value, word):
    params, state = play("long_term_stability", [])
    state = replace(state, focus=jnp.float32(value))
    assert f"focus is {word} ({value:.2f})" in describe.paragraph(state, params)


def test_paragraph_says_late_morning_in_two_words():
    params, state = play("drift_correction", [0, 0])
    assert "it is late morning." in describe.paragraph(state, params)


@pytest.mark.parametrize("index", range(len(ACTIONS)))
def test_actions_are_known_by_name_and_by_index(index):
    for action in (ACTIONS[index], index, np.int64(index), jnp.int32(index), np.uint8(index)):
        result = describe.checked_action(action)
        assert (result, type(result)) == (index, int)


@pytest.mark.parametrize("action", [*OUT_OF_RANGE, *NO_NAMES, *NO_INTEGERS])
def test_no_other_action_is_accepted_and_the_error_lists_the_legal_ones(action):
    params, state = play("drift_correction", [])
    with pytest.raises(ValueError) as error:
        describe.checked_action(action, state, params)
    assert repr(action) in str(error.value)
    assert all(name in str(error.value) for name in describe.legal_actions(state, params))


def test_all_six_actions_are_legal_everywhere():
    for actions in ([], [0] * 10):
        params, state = play("drift_correction", actions)
        legal = describe.legal_actions(state, params)
        mask = ENV.action_mask(state, params)
        assert legal == [name for name, ok in zip(ACTIONS, mask, strict=True) if ok]


@pytest.mark.parametrize("task", TASKS)
def test_goals_are_known_by_name_and_by_index(task):
    for index, goal in enumerate(TASKS[task].goals):
        assert describe.checked_goal(task, goal) == goal
        assert describe.checked_goal(task, index) == goal


@pytest.mark.parametrize("goal", ["networking", "sleep", "0", 3, -1, True, 1.0, None])
def test_a_goal_of_another_task_is_refused_with_the_legal_ones(goal):
    with pytest.raises(ValueError, match=r"goal of energy_balance.*fitness.*study.*side_project"):
        describe.checked_goal("energy_balance", goal)


def test_a_mistyped_goal_or_task_gets_a_hint():
    params, state = play("energy_balance", [0])
    with pytest.raises(ValueError, match="did you mean 'fitness'"):
        describe.observation(state, params, ["fitnes"])
    with pytest.raises(ValueError, match=r"no task 'energy_blance'.*'energy_balance'"):
        describe.checked_goal("energy_blance", "study")


@pytest.mark.parametrize("task", TASKS)
def test_grade_components_add_up_to_the_grade(task):
    params, state = play(task, [1, 2, 0, 5])
    parts = describe.grade_components(state, params)
    assert {name: part["weight"] for name, part in parts.items()} == pytest.approx(
        TASKS[task].weights
    )
    total = sum(part["weight"] * part["value"] for part in parts.values())
    assert total == pytest.approx(float(life_drift.unclamped_grade(state, params)), abs=1e-6)
    assert json.loads(json.dumps(parts)) == parts


def told(state, action, params, draws=HALVES):
    step = ENV.advance(state, np.int32(action), draws, params)
    return describe.outcome(state, action, step, params), step


def test_outcome_tells_the_largest_changes_and_the_reward():
    params, state = play("drift_correction", [])
    text, step = told(state, ACTIONS.index("insert_break"), params)
    # Energy +.15 - .02, fatigue -1.1 * .15 + .02.
    assert text == (
        "After insert_break, fatigue fell by 0.15 and energy rose by 0.13. "
        f"Reward {float(step.reward):+.3f}."
    )


def test_outcome_tells_the_cascade_and_the_last_step():
    params, state = play("energy_balance", [5] * 14)
    state = replace(state, fatigue=jnp.float32(0.9))
    text, _ = told(state, ACTIONS.index("suggest_task"), params)
    assert "The burnout cascade struck." in text
    assert text.endswith("That was the last step.")
    text, _ = told(replace(state, fatigue=jnp.float32(0.5)), 0, params)
    assert "cascade" not in text


def test_outcome_tells_when_little_changed():
    params, state = play("drift_correction", [])
    step = ENV.advance(state, np.int32(0), HALVES, params)
    step = step._replace(state=replace(state, step=step.state.step))
    text = describe.outcome(state, 0, step, params)
    assert text.startswith("After suggest_task, little changed. Reward")


def test_outcome_tells_an_invalid_action_and_an_episode_that_was_over():
    params, state = play("drift_correction", [])
    text, _ = told(state, 99, params)
    assert text == "Action 99 is not legal: the user's state stayed as it was. Reward +0.000."
    params, state = play("drift_correction", [0] * 10)
    text, _ = told(state, 0, params)
    assert text == "The episode was over already: nothing changed."
