import json
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax import record, rng, rollout
from lifedrift_jax.baselines import simple
from lifedrift_jax.life_stack import (
    Capacity,
    ExoEvent,
    LifeStack,
    Milestone,
    Route,
    Task,
    compile_task,
    describe,
)
from lifedrift_jax.life_stack.play import LifeStackEnv, PlayStep

# As it stands in the LifeStack text, but for the import.
SOURCE_EXAMPLE = """
from lifedrift_jax.life_stack import Task, Route, Milestone, ExoEvent

my_task = Task(
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
        Route(id="r1", name="Route One", description="...",
              required_action_types=["execute"],
              preconditions={}, consequences={"done": True},
              closes_routes=[], milestones_unlocked=[], final_reward=1.0)
    ],
    milestones=[],
    horizon=20,
    difficulty=2,
    domain_metadata={"story": "A short story about the crisis."}
)

env = LifeStackEnv()
obs = env.reset(task=my_task)
"""


def gamble(**changes):
    """A task with draws at reset and in steps."""
    routes = [
        Route("ask", "", "", ["communicate"], {"mood": "good"}, {"a": True}, [], [], 1.0),
        Route("wait_out", "", "", ["rest", "plan"], {"calm": True}, {"b": True}, [], ["m"], 0.7),
    ]
    fields = {
        "constraints": {"deadline_step": 6},
        "hidden_state": {"mood": "good"},
        "mutable_world": {"calm": True},
        "visible_world": {},
        "success_conditions": [{"key": "a", "value": True}],
        "failure_conditions": [{"key": "missed_deadline", "value": True}],
        "event_schedule": [ExoEvent(-1, 0.3, "storm", "It storms.", {"calm": False}, {}, [])],
        "viable_routes": routes,
        "milestones": [Milestone("m", "", "b", True, 0.3)],
        "hidden_prior": {"mood": [["good", 1], ["bad", 1]]},
    }
    about = {"id": "gamble", "domain": "", "goal": "Dare.", "difficulty": 1, "domain_metadata": {}}
    return Task(**about | fields | {"horizon": 8} | changes)


def same(one, other):
    """Whether two trees have the same bits."""
    return all(map(np.array_equal, jax.tree.leaves(one), jax.tree.leaves(other)))


def test_the_sources_example_runs_and_is_won_in_one_step():
    names = {"LifeStackEnv": LifeStackEnv}
    exec(SOURCE_EXAMPLE, names)
    env, obs = names["env"], names["obs"]
    assert obs.startswith("Task my_task: Do the thing\nA short story about the crisis.\n")
    assert env.legal_actions == [
        *("r1:execute", "inspect:secret_key", "inspect:done", "inspect:missed_deadline", "wait")
    ]
    assert env.score == 0
    step = env.step({"action_type": "execute", "target": "r1", "reasoning": "it is the only one"})
    assert isinstance(step, PlayStep)
    assert (step.reward, step.terminated, step.truncated) == (1.0, True, False)
    assert [type(x) for x in step] == [str, float, bool, bool, dict]
    assert list(step.info) == ["outcome", "score", "view", "legal_actions"]
    assert step.info["score"] == env.score == 1.0
    told = "r1:execute was done: the route is complete. Reward +1.000. Success: that was the end."
    assert step.info["outcome"] == told


def test_a_step_tells_what_describe_tells():
    env = LifeStackEnv()
    first = env.reset(gamble(), seed=4)
    assert first == describe.paragraph(env.state, env.params)
    step = env.step("wait_out:rest")
    assert step.observation == describe.paragraph(env.state, env.params) != first
    assert step.info["view"] == describe.observation(env.state, env.params)
    assert step.info["legal_actions"] == describe.legal_actions(env.state, env.params)
    assert step.info["legal_actions"] == env.legal_actions


def test_a_played_episode_is_episode_0_of_its_seed_bit_for_bit():
    env, params = LifeStackEnv(), compile_task(gamble())
    lengths = set()
    for seed in (0, 1, 2, 3, 2**32 - 1):
        key = rng.episode_key(rng.root_key(seed), jnp.uint32(0))
        outcome, seen = rollout.episode(key, env.env, simple.random(), params)
        env.reset(gamble(), seed=seed)
        _, state = env.env.reset(rng.reset_key(key), params)
        assert same(env.state, state) and same(env.params, params)
        for number, action in enumerate(np.asarray(seen.action)[: int(outcome.length)]):
            expected = env.env.step(rng.step_key(key, number), state, action, params)
            state, step = expected.state, env.step(int(action))
            assert same(env.state, state)
            assert step.reward == expected.reward and step.terminated == expected.terminated
        assert step.terminated and step.info["score"] == outcome.score == env.score
        lengths.add(int(outcome.length))
    assert len(lengths) > 1


def test_the_capacity_is_that_of_the_env():
    capacity = Capacity(routes=1)
    env = LifeStackEnv(capacity)
    assert env.env == LifeStack(capacity) and LifeStackEnv().env == LifeStack()
    with pytest.raises(ValueError, match=r"^viable_routes: 2 do not fit"):
        env.reset(gamble())


def test_a_record_holds_the_words():
    params, name = compile_task(gamble()), "life_stack/gamble-v0"
    played = record.episode_record(LifeStack(), simple.random(), params, 5, 0, name)
    assert json.loads(json.dumps(played, allow_nan=False)) == played
    for step in played["steps"]:
        assert step["outcome"].startswith(step["view"]["last_action_outcome"])
        assert step["view"]["task_id"] == name


def test_none_repeats_the_task_and_the_seed_the_draws():
    env = LifeStackEnv()
    env.reset(gamble(), seed=5)
    params, first = env.params, env.state
    env.step("wait")
    env.reset(seed=5)
    assert env.params is params and same(env.state, first)
    moods = set()
    for seed in range(8):
        env.reset(seed=seed)
        moods.add(env.step("inspect:mood").info["view"]["known"]["mood"])
    assert moods == {"good", "bad"}
    env.reset(gamble())
    assert env.params is params  # the same task is not compiled again
    env.reset(gamble(goal="Do not dare."))
    assert env.params is not params and "Do not dare." in env.reset()


def test_a_name_is_that_of_a_built_in_task(monkeypatch):
    asked = []

    def build(name, *difficulty):
        asked.append((name, *difficulty))
        return gamble(id=name, difficulty=difficulty[0] if difficulty else 4)

    library = "lifedrift_jax.life_stack.library"
    monkeypatch.setitem(sys.modules, library, SimpleNamespace(build=build))
    env = LifeStackEnv()
    assert env.reset().startswith("Task flight_crisis: ")
    assert env.reset("career", seed=1, difficulty=2).startswith("Task career: ")
    assert env.reset(seed=2).startswith("Task career: ")
    assert asked == [("flight_crisis",), ("career", 2)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": 3}, "the task is 3: use a Task"),
        ({"task": gamble(horizon=0)}, "horizon is 0"),
        ({"task": gamble(success_conditions=[{"key": "b", "value": "no"}])}, "success_cond"),
        ({"task": gamble(), "difficulty": 3}, "difficulty is 3: it is for a task given by"),
        ({"difficulty": 3}, "difficulty is 3: it is for a task given by"),
        ({"seed": -1}, r"seed is -1: use an integer in \[0, 2\*\*32\)"),
        ({"seed": True}, "seed is True"),
        ({"task": gamble(id="x"), "seed": 2**32}, "seed is 4294967296"),
    ],
)
def test_an_error_of_reset_leaves_all_as_it_was(arguments, message):
    env = LifeStackEnv()
    env.reset(gamble(), seed=1)
    env.step("wait")
    params, state = env.params, env.state
    with pytest.raises(ValueError, match=f"^{message}"):
        env.reset(**arguments)
    assert env.params is params and env.state is state


@pytest.mark.parametrize("action", ["rollback", "ask:spend", "nonsense", 999, None, {"target": 1}])
def test_an_error_of_step_leaves_all_as_it_was(action):
    env = LifeStackEnv()
    env.reset(gamble(), seed=1)
    state = env.state
    with pytest.raises(ValueError, match="; legal here: ask communicate; wait_out plan, rest; ins"):
        env.step(action)
    assert env.state is state
    assert env.step("wait").info["view"]["step_number"] == 1


def test_without_an_episode_there_is_nothing_to_ask():
    env = LifeStackEnv()
    for ask in (
        lambda: env.step("wait"),
        lambda: env.state,
        lambda: env.params,
        lambda: env.legal_actions,
        lambda: env.score,
    ):
        with pytest.raises(RuntimeError, match=r"^there is no episode yet: start one with reset"):
            ask()
    with pytest.raises(ValueError, match="seed"):
        env.reset(gamble(), seed=1.5)
    with pytest.raises(RuntimeError, match="no episode yet"):
        env.step("wait")


def test_a_step_after_the_end_is_an_error():
    env = LifeStackEnv()
    env.reset(gamble(horizon=1))
    assert env.step("wait").terminated
    state = env.state
    for action in ("wait", "nonsense"):
        with pytest.raises(RuntimeError, match=r"^the episode has ended: start another with reset"):
            env.step(action)
    assert env.state is state
    env.reset(seed=1)
    assert env.step("wait").terminated
