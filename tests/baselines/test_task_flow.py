from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lifedrift_jax as ld
from lifedrift_jax import rollout, task_flow
from lifedrift_jax.baselines import make_policy, policy_names
from lifedrift_jax.baselines.task_flow import heuristic
from lifedrift_jax.task_flow import ACTION_TYPES, DOMAINS, SOURCE, STATUSES, TASKS

ENV = task_flow.TaskFlow()
ROOT = ld.root_key(3)
NAMES = [
    "heuristic",
    "heuristic_without_aether",
    "heuristic_without_raptor",
    "heuristic_without_awfro_x",
    "earliest_deadline",
    "delegate_all",
]
MEANS = {"heuristic", "random", "earliest_deadline", "delegate_all"}


@partial(jax.jit, static_argnames=("policy", "num_steps"))
def play(indices, params, policy, num_steps=10):
    """Outcomes and mean rewards of a step, [N]; and how many actions were invalid."""

    def one(index):
        key = ld.episode_key(ROOT, index)
        outcome, seen = rollout.episode(key, ENV, policy, params, num_steps)
        return outcome.score, outcome.episode_return / outcome.length, jnp.sum(seen.invalid)

    return jax.vmap(one)(indices)


@pytest.fixture(scope="module")
def scores(request):
    """(policy, tier) -> [N] scores and [N] mean rewards of a step."""
    count = 100_000 if request.config.getoption("--slow") else 6_000
    found = {}
    for name in [*NAMES, "random"]:
        for tier in TASKS:
            params, policy = task_flow.task_params(tier), make_policy(name, ENV)
            got = jax.device_get(play(jnp.arange(count, dtype=jnp.uint32), params, policy))
            assert got[2].sum() == 0
            found[name, tier] = got[:2]
    return found


def interval(values):
    half = 1.96 * values.std() / np.sqrt(len(values))
    return values.mean() - half, values.mean() + half


def test_all_baselines_have_names():
    assert {*NAMES, "planner"} < set(policy_names(ENV))
    for name in NAMES:
        assert make_policy(name, ENV) is make_policy(name, ENV)
        assert make_policy(name, ENV).name == name


@pytest.mark.slow
@pytest.mark.parametrize("tier", TASKS)
@pytest.mark.parametrize("policy", SOURCE)
def test_figures_are_those_of_the_source_within_the_bars(policy, tier, scores):
    score, reward = scores[policy, tier]
    source = SOURCE[policy][tier]
    for values, right, bar in ((score, source.score, 0.03), (reward, source.step_reward, 0.05)):
        low, high = interval(values)
        assert right - bar <= high and low <= right + bar


@pytest.mark.slow
@pytest.mark.parametrize("tier", TASKS)
@pytest.mark.parametrize("policy", ["earliest_deadline", "delegate_all", "random"])
def test_naive_policies_stay_below_the_heuristic(policy, tier, scores, full_size):
    gain = scores["heuristic", tier][0] - scores[policy, tier][0]  # the same episodes
    assert interval(gain)[0] > 0 or (not full_size and gain.mean() > 0)


# Where a part that is left out is missed, as the docs say.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "tiers"),
    [
        ("aether", ["easy", "medium", "hard"]),
        ("raptor", ["easy", "hard"]),
        ("awfro_x", ["medium", "hard"]),
    ],
)
def test_every_part_of_the_heuristic_brings_something(part, tiers, scores):
    for tier in tiers:
        without = interval(scores[f"heuristic_without_{part}", tier][0])
        assert without[1] < interval(scores["heuristic", tier][0])[0]


def item(**changes):
    """A pending item: status, domain by name, and columns of the state."""
    plain = {"status": "pending", "domain": "security_audit", "priority": 0.5, "deadline": 3}
    plain |= {"uncertainty": 0.1, "value": 1.0, "energy_cost": 1.0, "budget_cost": 2.0}
    return plain | {"optimized": 0} | changes


def seen(*items, **changes):
    """Observation, mask and params of a hard state that holds these items."""
    params = task_flow.task_params("hard")
    state = ENV.start(ROOT, params)
    rows = [*items, *[item(status="empty")] * (12 - len(items))]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    columns["status"] = [STATUSES.index(name) for name in columns["status"]]
    columns["domain"] = [list(DOMAINS).index(name) for name in columns["domain"]]
    typed = {k: jnp.asarray(np.asarray(v, getattr(state, k).dtype)) for k, v in columns.items()}
    state = replace(state, **typed | {k: jnp.float32(v) for k, v in changes.items()})
    return ENV.observe(state, params), ENV.action_mask(state, params), params


def choice(policy, *items, **changes):
    obs, mask, params = seen(*items, **changes)
    action, _ = jax.jit(policy.act)(ROOT, obs, mask, policy.init(ROOT, params))
    assert mask[action]
    return f"{ACTION_TYPES[int(action) // 12]} {int(action) % 12}"


PIPELINE = {"domain": "data_pipeline"}  # fails most


@pytest.mark.parametrize(
    ("items", "resources", "action"),
    [
        ([item()], {}, "execute 0"),
        ([item(energy_cost=9.0)], {}, "defer 0"),
        ([item(energy_cost=9.0, deadline=2)], {}, "delegate 0"),
        ([item(energy_cost=9.0, domain="compliance_check")], {}, "delegate 0"),
        ([item(energy_cost=0.5)], {"energy": 0.7}, "delegate 0"),
        ([item(uncertainty=0.3, **PIPELINE)], {}, "optimize 0"),
        ([item(uncertainty=0.3, optimized=1, **PIPELINE)], {}, "execute 0"),
        ([item(uncertainty=0.3, deadline=1, **PIPELINE)], {}, "execute 0"),
        ([item(uncertainty=0.9, deadline=1, **PIPELINE)], {}, "defer 0"),
        ([item(uncertainty=0.9, optimized=1, **PIPELINE)], {}, "delegate 0"),
        ([item(status="late")], {}, "delegate 0"),
        ([item(status="late"), item()], {}, "execute 1"),
        ([item(status="held"), item()], {}, "execute 1"),
        ([item(deadline=4), item(deadline=1), item(deadline=2)], {}, "execute 1"),
        ([item(priority=0.2), item(priority=0.9)], {}, "execute 1"),
        ([item(), item(uncertainty=0.0)], {}, "execute 1"),
        ([item(value=0.5), item(value=1.5)], {}, "execute 1"),
        ([item(budget_cost=9.0), item()], {}, "execute 1"),
    ],
)
def test_the_heuristic_follows_its_rules(items, resources, action):
    assert choice(heuristic(), *items, **resources) == action


def test_parts_left_out_do_not_decide():
    late_first = [item(status="late", deadline=0), item(deadline=2), item(deadline=1)]
    assert choice(heuristic(), *late_first) == "execute 2"
    assert choice(heuristic(aether=False), *late_first) == "execute 1"
    assert choice(heuristic(awfro_x=False), *late_first[:2]) == "delegate 0"
    risky = item(uncertainty=0.9, deadline=1, **PIPELINE)
    assert choice(heuristic(raptor=False), risky) == "execute 0"
    assert choice(heuristic(awfro_x=False), risky) == "delegate 0"


def test_weights_move_towards_what_earned_more_than_before():
    obs, mask, params = seen(item(priority=0.2), item(priority=0.9))
    policy = heuristic()
    carry, weights = policy.init(ROOT, params), []
    column = ENV.observation_names.index("reward_sum")
    # The item of high priority is chosen each time; the last reward is above all others.
    for total in (0.0, 0.2, 0.5, 0.7, 1.7):
        scaled = obs.at[:, column].set(total / 20)
        action, carry = policy.act(ROOT, scaled, mask, carry)
        assert int(action) % 12 == 1
        weights.append(np.asarray(carry.weights))
    moved = weights[-1] - weights[-2]
    assert moved[0] > 0 and np.abs(moved[1:]).max() < 1e-6  # the items differ in priority alone
    np.testing.assert_array_equal(weights[0], weights[2])  # two rewards teach nothing


def test_naive_policies_do_what_their_names_say():
    items = [item(deadline=3), item(deadline=1, energy_cost=9.0), item(status="late")]
    assert choice(make_policy("earliest_deadline", ENV), *items) == "delegate 1"
    assert choice(make_policy("earliest_deadline", ENV), items[0], items[2]) == "execute 0"
    assert choice(make_policy("delegate_all", ENV), *items) == "delegate 1"
