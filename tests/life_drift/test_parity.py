"""The compiled env against recorded episodes and against the plain-Python restatement."""

import functools
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import life_drift as reference

from lifedrift_jax import life_drift
from lifedrift_jax.life_drift import ACTIONS, PHASES, TASKS, VARIABLES

ENV = life_drift.LifeDrift()
GOLDEN = Path(__file__).parents[1] / "golden" / "life_drift_reference.json"
TOLERANCES = {np.float32: 1e-6, np.float64: 1e-12}
PADDING = (0, (0.5,) * 8)  # action and draws of steps after the end


class Replay(NamedTuple):
    """What is seen after each step; leading axes [episodes, steps]."""

    states: np.ndarray  # [..., 5]
    rewards: np.ndarray
    phases: np.ndarray  # index into PHASES
    cascade_steps: np.ndarray  # so far
    invalid: np.ndarray
    terminated: np.ndarray
    grades: np.ndarray  # unclamped, of the episode so far
    clamped_grades: np.ndarray


@jax.jit
@jax.vmap
def _replay(params, actions, uniforms):
    def step(state, given):
        action, draws = given
        moved = ENV.advance(state, action, life_drift.noise_from_uniforms(draws), params)
        state = moved.state
        seen = Replay(
            states=jnp.stack(ENV.variables(state, params)),
            rewards=moved.reward,
            phases=life_drift.day_phase(state.step, params.max_steps),
            cascade_steps=state.cascade_steps,
            invalid=moved.info["invalid_action"],
            terminated=moved.terminated,
            grades=life_drift.unclamped_grade(state, params),
            clamped_grades=ENV.grade(state, params),
        )
        return state, seen

    return jax.lax.scan(step, life_drift.initial_state(params), (actions, uniforms))[1]


@functools.cache
def task_params(task, dtype):
    """numpy Params of a task; float64 needs x64."""
    return jax.device_get(life_drift.task_params(task, dtype))


def replay(params, episodes, num_steps, dtype):
    """Play the (actions, draws) of each episode with its params, padded to `num_steps`."""
    padded = [
        [*zip(actions, draws, strict=True), *[PADDING] * (num_steps - len(actions))]
        for actions, draws in episodes
    ]
    actions = np.array([[action for action, _ in steps] for steps in padded], np.int32)
    draws = np.array([[draws for _, draws in steps] for steps in padded], dtype)
    stacked = jax.tree.map(lambda *x: np.stack(x), *params)
    return jax.tree.map(np.asarray, _replay(stacked, actions, draws))


# Recorded episodes.


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_every_recorded_step_and_grade_is_reproduced(golden, dtype):
    episodes = [([ACTIONS.index(a) for a in e["actions"]], e["draws"]) for e in golden]
    with jax.enable_x64(dtype is np.float64):
        params = [task_params(e["task"], dtype) for e in golden]
        seen = replay(params, episodes, 20, dtype)
    assert seen.states.dtype == seen.rewards.dtype == seen.grades.dtype == dtype
    close = {"rtol": 0, "atol": TOLERANCES[dtype]}
    for i, episode in enumerate(golden):
        n = len(episode["actions"])
        np.testing.assert_allclose(seen.states[i, :n], episode["states"][1:], **close)
        np.testing.assert_allclose(seen.rewards[i, :n], episode["rewards"], **close)
        assert [PHASES[phase] for phase in seen.phases[i, :n]] == episode["time_of_day"]
        np.testing.assert_allclose(seen.grades[i, -1], episode["grade_unclamped"], **close)
        np.testing.assert_allclose(seen.clamped_grades[i, -1], episode["grade"], **close)


def test_the_restatement_reproduces_every_recorded_episode(golden):
    for recorded in golden:
        episode = reference.Episode(reference.rules(recorded["task"]))
        for action, draws in zip(recorded["actions"], recorded["draws"], strict=True):
            episode.step(action, draws)
        np.testing.assert_allclose(episode.states, recorded["states"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(episode.rewards, recorded["rewards"], rtol=0, atol=1e-12)
        assert episode.phases == recorded["time_of_day"]
        assert episode.grade() == pytest.approx(recorded["grade_unclamped"], rel=0, abs=1e-12)


# Random episodes.


def params_of(rules):
    """float64 Params with the numbers of restated rules; call under x64."""

    def following(name, source):
        rows = (rules["followers"].get(action, ("", "", 0.0)) for action in ACTIONS)
        return [factor if (n, s) == (name, source) else 0.0 for n, s, factor in rows]

    bounds = [[rules["effects"][a].get(v, (0.0, 0.0)) for v in VARIABLES] for a in ACTIONS]
    natural = list(rules["natural"].values())
    numbers = {
        "start": rules["start"],
        "effect_low": np.array(bounds)[..., 0],
        "effect_high": np.array(bounds)[..., 1],
        "drift_per_alignment": following("drift", "alignment"),
        "fatigue_per_energy": following("fatigue", "energy"),
        "natural_low": [low for low, _ in natural],
        "natural_high": [high for _, high in natural],
        "phase_fatigue": [rules["phases"][phase].get("fatigue", 0.0) for phase in PHASES],
        "phase_focus": [rules["phases"][phase].get("focus", 0.0) for phase in PHASES],
        "cascade_threshold": rules["threshold"],
        **{f"cascade_{name}": change for name, change in rules["cascade"].items()},
    }
    params = task_params(rules["task"], np.float64)
    window = dict(zip(("energy_low", "energy_high"), rules["energy_window"], strict=True))
    return replace(
        params,
        max_steps=np.int32(rules["max_steps"]),
        reward=replace(params.reward, **{k: np.float64(v) for k, v in window.items()}),
        **{name: np.asarray(number, np.float64) for name, number in numbers.items()},
    )


def changed(rules, generator):
    """`rules` with every number but those of the grader and the reward's terms redrawn."""

    def bounds(scale):
        return tuple(sorted(generator.uniform(-scale, scale, 2).tolist()))

    for effects in rules["effects"].values():
        effects.update({name: bounds(0.25) for name in effects})
    for action, (name, source, factor) in rules["followers"].items():
        rules["followers"][action] = (name, source, factor * generator.uniform(0, 2))
    rules["natural"] = {name: bounds(0.05) for name in rules["natural"]}
    for effects in rules["phases"].values():
        effects.update(zip(("fatigue", "focus"), generator.uniform(-0.05, 0.05, 2), strict=True))
    for name in rules["cascade"]:
        rules["cascade"][name] = generator.uniform(-0.1, 0.1)
    rules["threshold"] = generator.uniform(0.4, 0.95)
    rules["energy_window"] = tuple(sorted(generator.uniform(0, 1, 2)))
    rules["start"] = generator.uniform(0, 1, 5).tolist()
    return rules


def random_cases():
    """(rules, actions, draws) of random episodes, one action in eight invalid."""
    generator = np.random.default_rng(0)
    for task in TASKS:
        for max_steps in (1, 7, 40, TASKS[task].max_steps):
            for change in [False] * 15 + [True] * 15:
                rules = reference.rules(task) | {"max_steps": max_steps}
                rules = changed(rules, generator) if change else rules
                actions = generator.integers(0, len(ACTIONS), 40)
                bad = generator.choice([-1, 6, 99, -7, 2**31 - 1], 40)
                actions = np.where(generator.random(40) < 1 / 8, bad, actions).tolist()
                yield rules, actions, generator.random((40, 8)).tolist()


def name_of(action):
    return ACTIONS[action] if 0 <= action < len(ACTIONS) else None


@pytest.fixture(scope="module")
def random_play():
    """(cases, what the compiled env made of them, in float64)."""
    cases = list(random_cases())
    strict = jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict")
    with jax.enable_x64(True), strict[0], strict[1]:
        params = [params_of(rules) for rules, _, _ in cases]
        return cases, replay(params, [case[1:] for case in cases], 40, np.float64)


def test_restated_rules_have_the_numbers_of_the_tables():
    with jax.enable_x64(True):
        for task in TASKS:
            ours = task_params(task, np.float64)
            theirs = params_of(reference.rules(task))
            for field in fields(ours):
                mine, other = getattr(ours, field.name), getattr(theirs, field.name)
                assert jax.tree.all(jax.tree.map(lambda x, y: (x == y).all(), mine, other))


def test_random_episodes_agree_with_the_restatement_step_by_step(random_play):
    cases, seen = random_play
    close = {"rtol": 0, "atol": 1e-12}
    cascades = 0
    for i, (rules, actions, draws) in enumerate(cases):
        episode, grades = reference.Episode(rules), []
        for action, u in zip(actions, draws, strict=True):
            episode.step(name_of(action), u)
            grades.append(episode.grade())
        n = rules["max_steps"]
        assert len(episode.rewards) == n
        np.testing.assert_allclose(seen.states[i, :n], episode.states[1:], **close)
        np.testing.assert_allclose(seen.rewards[i, :n], episode.rewards, **close)
        assert [PHASES[phase] for phase in seen.phases[i, :n]] == episode.phases
        assert seen.cascade_steps[i, :n].tolist() == np.cumsum(episode.cascades).tolist()
        # From running sums there, from the history here, after every step and the end.
        np.testing.assert_allclose(seen.grades[i], grades, **close)
        np.testing.assert_allclose(seen.clamped_grades[i], np.clip(grades, 0.01, 0.99), **close)
        cascades += sum(episode.cascades)
    assert cascades > 100  # the draws reach the cascade


def test_random_episodes_end_at_their_horizon_and_pay_nothing_after(random_play):
    cases, seen = random_play
    steps = np.arange(1, 41)
    for i, (rules, actions, _) in enumerate(cases):
        n = rules["max_steps"]
        assert (seen.terminated[i] == (steps >= n)).all()
        assert (seen.rewards[i, n:] == 0).all()
        assert (seen.states[i, n:] == seen.states[i, n - 1]).all()
        illegal = np.array([name_of(action) is None for action in actions])
        assert (seen.invalid[i] == (illegal & (steps <= n))).all()
