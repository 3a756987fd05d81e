"""The items an episode is dealt: ranges, uniform draws, independence, empty slots."""

from dataclasses import fields, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax.rng import episode_key, reset_key, root_key, step_key
from lifedrift_jax.task_flow import tables
from lifedrift_jax.task_flow.generate import WORDINGS, initial_state
from lifedrift_jax.task_flow.types import State, task_params

KEYS = 4_000
ITEM_FIELDS = [f.name for f in fields(State)][:10]
# A range of the tier -> the domain's column that scales it.
FACTORS = {"priority": None, "uncertainty": None} | {
    "value": "value",
    "energy_cost": "energy",
    "budget_cost": "budget",
}


@partial(jax.jit, static_argnums=0)
def deal(child_key, params):
    """First states of KEYS episodes, whose keys follow from the root by `child_key`."""
    keys = jax.vmap(child_key, (None, 0))(root_key(0), jnp.arange(KEYS, dtype=jnp.int32))
    return jax.vmap(initial_state, (0, None))(jax.vmap(reset_key)(keys), params)


@pytest.fixture(scope="module", params=tables.TASKS)
def dealt(request):
    """(params, states, items: name -> [all items], flat) of a tier, as numpy."""
    params = jax.device_get(task_params(request.param))
    states = jax.device_get(deal(episode_key, params))
    items = {name: getattr(states, name)[:, : params.items].ravel() for name in ITEM_FIELDS}
    return params, states, items


def shares(params, items):
    """Where each drawn number lies in its range, from 0 to 1: name -> [items]."""
    for name, factor in FACTORS.items():
        low, high = getattr(params, name)
        column = 1 if factor is None else getattr(params.domains, factor)[items["domain"]]
        yield name, (items[name] / column - low) / (high - low)


def test_numbers_lie_in_the_ranges_of_the_tier_and_are_uniform(dealt):
    params, _, items = dealt
    for name, share in shares(params, items):
        assert share.min() > -1e-5 and share.max() < 1 + 1e-5, name
        counts = np.histogram(share, bins=10, range=(-1e-5, 1 + 1e-5))[0]
        assert (abs(counts / len(share) - 0.1) < 0.02).all(), name


def test_whole_numbers_take_each_value_equally_often(dealt):
    params, _, items = dealt
    first, last = params.deadline
    legal = {"domain": (0, 6), "wording": (0, WORDINGS - 1), "deadline": (first, last)}
    for name, (low, high) in legal.items():
        values, counts = np.unique(items[name], return_counts=True)
        assert values.tolist() == list(range(low, high + 1)), name
        assert (abs(counts / counts.sum() * len(values) - 1) < 0.15).all(), name


def test_the_numbers_of_an_item_and_of_other_items_are_independent(dealt):
    params, _, items = dealt
    whole = [items[name] for name in ("domain", "wording", "deadline")]
    numbers = np.stack([*whole, *dict(shares(params, items)).values()])
    neighbours = numbers.reshape(len(numbers), KEYS, -1)
    pairs = np.concatenate([neighbours[..., 0], neighbours[..., 1]])  # of slots 0 and 1
    for sample in (numbers, pairs):
        between = np.corrcoef(sample) - np.eye(len(sample))
        assert abs(between).max() < 5 / np.sqrt(sample.shape[1])


def test_an_episode_starts_with_pending_items_then_empty_slots_and_full_resources(dealt):
    params, states, items = dealt
    assert (items["status"] == tables.PENDING).all()
    for name in ITEM_FIELDS:
        assert (getattr(states, name)[:, params.items :] == 0).all(), name
    assert (items["optimized"] == 0).all()
    start = {"energy": params.energy, "budget": params.budget, "health": 1, "step": 0}
    start |= {"reward_sum": 0, "last_item": -1, "last_outcome": tables.OUTCOMES.index("none")}
    for name, value in start.items():
        assert (getattr(states, name) == value).all(), name


@pytest.mark.parametrize("child_key", [episode_key, step_key])
def test_different_episodes_are_dealt_different_items(child_key):
    """Also those that an automatic reset begins, whose keys are those of steps."""
    params = task_params("hard")
    states = jax.device_get(deal(child_key, params))
    drawn = [states.priority, states.value, states.energy_cost, states.budget_cost]
    items = np.stack(drawn, axis=-1).reshape(-1, len(drawn))
    assert len(np.unique(items, axis=0)) == len(items) == 12 * KEYS


def test_an_item_does_not_depend_on_the_number_of_items(dealt):
    params, states, _ = dealt
    for items in (1, 4, 11, 12):
        others = jax.device_get(deal(episode_key, replace(params, items=np.int32(items))))
        same = min(items, params.items)
        for name in ITEM_FIELDS:
            one, other = getattr(states, name), getattr(others, name)
            np.testing.assert_array_equal(one[:, :same], other[:, :same], err_msg=name)
            assert (other[:, items:] == 0).all()
