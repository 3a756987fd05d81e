"""The compiled env against the plain-Python restatement, step by step, in float64."""

from dataclasses import fields, replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from reference import task_flow as reference

from lifedrift_jax.task_flow import tables
from lifedrift_jax.task_flow.types import Domains, Params, task_params

ITEM_FIELDS = [field.name for field in fields(reference.Item)]
# Bounds of the numbers that `changed` redraws; those of the others are 0 and 1.
BOUNDS = {
    "max_steps": (1, 12),
    "items": (1, 12),
    "priority": (0.05, 1),
    "deadline": (1, 6),
    "energy_cost": (0, 3),
    "budget_cost": (0, 10),
    "energy": (1, 8),
    "budget": (5, 40),
    "priority_low": (0.01, 1),
    "failure_health": (0, 0.2),
    "failure_scale": (0, 2),
    "optimize_cost": (0, 1.5),
    "defer_extension": (0, 4),
    "upkeep": (0, 0.1),
}


def changed(params, generator):
    """`params` with every number redrawn."""

    def redrawn(name, old):
        if name in ("grade_weights", "resource_shares"):
            return generator.dirichlet(np.ones(old.size))
        low, high = BOUNDS.get(name, (0, 1))
        if old.dtype == np.int32:
            new = generator.integers(low, high + 1, old.shape)
        else:
            new = generator.uniform(low, high, old.shape)
        return np.sort(new, axis=None).reshape(old.shape).astype(old.dtype)

    columns = {field.name: generator.uniform(0, 2, 7) for field in fields(Domains)}
    columns["absence"] = generator.uniform(0, 0.5, 7)
    columns["deferrable"] = generator.integers(0, 2, 7).astype(np.float64)
    own = [field.name for field in fields(Params) if field.name not in ("tier", "domains")]
    numbers = {name: redrawn(name, getattr(params, name)) for name in own}
    new = replace(params, domains=Domains(**columns), **numbers)
    new.validate()
    return new


def cases(seed):
    """Params of 300 episodes: 60 of each tier, and 40 of each with other numbers."""
    generator = np.random.default_rng(seed)
    for tier in tables.TASKS:
        params = jax.device_get(task_params(tier, np.float64))
        yield from [params] * 60
        yield from (changed(params, generator) for _ in range(40))


def first_items(state):
    """The items of a state of numpy leaves, all in their first status."""
    columns = {name: getattr(state, name).tolist() for name in ITEM_FIELDS}
    columns["status"] = [reference.STATUSES[i] for i in columns["status"]]
    rows = zip(*columns.values(), strict=True)
    return [reference.Item(**dict(zip(columns, row, strict=True))) for row in rows]


def look(episode):
    """Every number of an episode after a step, by its name in `State` or `Step`."""
    columns = {name: [getattr(item, name) for item in episode.slots] for name in ITEM_FIELDS}
    record = episode.rules, episode.outcomes, episode.energy, episode.budget, episode.health
    return columns | {
        "status": [reference.STATUSES.index(status) for status in columns["status"]],
        "energy": episode.energy,
        "budget": episode.budget,
        "health": episode.health,
        "step": episode.steps,
        "reward_sum": sum(episode.rewards),
        "last_item": -1 if episode.outcomes[-1] == "invalid" else episode.actions[-1] % 12,
        "last_outcome": reference.OUTCOMES.index(episode.outcomes[-1]),
        "terminated": episode.over,
        "grade": episode.grade(),
        "grade_of_record": reference.grade_of_record(*record),
    }


def restated(rules, seen, i):
    """What the restatement makes of episode i: name -> [steps, ...]."""
    start, noise = (jax.tree.map(lambda x: x[i], x) for x in (seen.before, seen.noise))
    episode = reference.Episode(rules, first_items(jax.tree.map(lambda x: x[0], start)))
    draws = {name: draws.tolist() for name, draws in noise._asdict().items()}
    rows = []
    for t, action in enumerate(seen.action[i].tolist()):
        mask = [episode.legal(a) for a in range(48)]
        invalid = not episode.over and not episode.legal(action)
        reward = episode.step(action, SimpleNamespace(**{k: v[t] for k, v in draws.items()}))
        rows.append(look(episode) | {"mask": mask, "invalid": invalid, "reward": reward})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def compiled(seen):
    """The same names and numbers from the compiled env: name -> [episodes, steps, ...]."""
    state = {field.name: getattr(seen.step.state, field.name) for field in fields(seen.before)}
    return state | {
        "terminated": seen.step.terminated,
        "grade": seen.grade,
        "grade_of_record": seen.grade,
        "mask": seen.mask,
        "invalid": seen.step.info["invalid_action"],
        "reward": seen.step.reward,
    }


@pytest.fixture(scope="module")
def played(play):
    """`played(seed)`: (params, steps in float64) of 300 episodes."""

    def played(seed):
        strict = jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict")
        with jax.enable_x64(True), strict[0], strict[1]:
            params = list(cases(seed))
            return params, play(params, seed, 13)

    return played


def test_the_restatement_has_the_names_of_the_tables():
    assert list(tables.STATUSES) == reference.STATUSES
    assert list(tables.OUTCOMES) == reference.OUTCOMES
    assert list(tables.ACTION_TYPES) == reference.ACTION_TYPES
    assert reference.SLOTS == tables.SLOTS


@pytest.mark.slow
def test_random_episodes_agree_with_the_restatement_step_by_step(played, rules_of, full_size):
    outcomes = np.zeros(len(tables.OUTCOMES), int)
    for seed in range(34 if full_size else 1):
        params, seen = played(seed)
        got = compiled(seen)
        episodes = [restated(rules_of(x), seen, i) for i, x in enumerate(params)]
        assert got["energy"].dtype == got["reward"].dtype == got["grade"].dtype == np.float64
        assert (got.pop("wording") == seen.before.wording).all()
        assert got.keys() == episodes[0].keys()
        for name, numbers in got.items():
            expected = np.stack([episode[name] for episode in episodes])
            told = f"{name}, seed {seed}"
            np.testing.assert_allclose(numbers, expected, rtol=0, atol=1e-12, err_msg=told)
        live = got["step"] > seen.before.step
        outcomes += np.bincount(got["last_outcome"][live], minlength=len(outcomes))
    assert outcomes[0] == 0
    assert (outcomes[1:] >= 10).all(), dict(zip(tables.OUTCOMES, outcomes, strict=True))
