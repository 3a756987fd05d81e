"""What holds in every state: bounds, ends of items, legality, symmetry of the slots."""

from dataclasses import fields, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifedrift_jax.rng import root_key
from lifedrift_jax.task_flow import tables
from lifedrift_jax.task_flow.env import make
from lifedrift_jax.task_flow.types import Noise, State

TASKS = [jax.device_get(make(f"task_flow/{tier}-v0")[1]) for tier in tables.TASKS]
ENV = make("task_flow/easy-v0")[0]
EPISODES = 384  # of a chunk, the three tiers in turn
ITEM_FIELDS = [f.name for f in fields(State)][:10]
OUT_OF_RANGE = (-1, 48, 99, -(2**31))
TRIED = np.array([*range(48), *OUT_OF_RANGE], np.int32)
UNIT = st.floats(0, 1, width=32)
DRAWS = st.lists(UNIT, min_size=50, max_size=50)
ANY_ACTION = st.integers(-(2**31), 2**31 - 1) | st.integers(-1, 48)
# Status -> what an item can be a step later; those left out keep theirs for good.
FOLLOWING = {
    tables.PENDING: set(range(tables.PENDING, tables.FAILED + 1)),
    tables.HELD: {tables.PENDING, tables.HELD, tables.LATE},
    tables.LATE: {tables.LATE, tables.FAILED},
}
OUTCOME = {name: code for code, name in enumerate(tables.OUTCOMES)}
# Action type -> what an action of it comes to, where legal.
OUTCOMES = {
    tables.EXECUTE: ("completed", "failed", "absent", "too_late"),
    tables.DEFER: ("deferred",),
    tables.DELEGATE: ("delegated", "closed"),
    tables.OPTIMIZE: ("optimized",),
}


def take(tree, index):
    return jax.tree.map(lambda x: x[index], tree)


def assert_same_bits(got, right):
    jax.tree.map(np.testing.assert_array_equal, got, right)


def advance(params, state, action, noise):
    return ENV.advance(state, action, noise, params)


def assert_in_range(params, before, after):
    assert (after.energy >= 0).all() and (after.energy <= params.energy).all()
    assert (after.budget >= 0).all() and (after.budget <= before.budget).all()
    assert (after.health >= 0).all() and (after.health <= before.health).all()
    assert (before.health <= 1).all() and (before.budget <= params.budget).all()
    for number in (after.priority, after.uncertainty):
        assert (number >= 0).all() and (number <= 1).all()


@lru_cache(maxsize=1)
def chunk(play, seed):
    """4,608 transitions, [N, ...] leaves: (params, seen, live: the episode was not over)."""
    params = [TASKS[i % 3] for i in range(EPISODES)]
    seen = play(params, seed)
    steps = seen.action.shape[1]
    params = jax.tree.map(lambda *x: np.repeat(np.stack(x), steps, axis=0), *params)
    seen = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), seen)
    return params, seen, seen.step.state.step > seen.before.step


@pytest.fixture
def chunks(play, full_size):
    """10^6 transitions at full size, else one chunk."""
    return (chunk(play, seed) for seed in range(217 if full_size else 1))


@pytest.mark.slow
def test_resources_and_health_stay_in_range_and_only_energy_comes_back(chunks):
    for params, seen, _ in chunks:
        assert_in_range(params, seen.before, seen.step.state)
        assert (seen.grade >= 0).all() and (seen.grade <= 1).all()


@pytest.mark.slow
def test_items_are_conserved_and_empty_slots_stay_empty(chunks):
    for params, seen, _ in chunks:
        state = seen.step.state
        used = np.arange(tables.SLOTS) < params.items[:, None]
        assert ((state.status != tables.EMPTY) == used).all()
        for name in ITEM_FIELDS:
            assert (getattr(state, name)[~used] == 0).all(), name


@pytest.mark.slow
def test_items_move_only_forward_and_keep_their_numbers_once_out_of_time(chunks):
    moves = np.zeros((len(tables.STATUSES),) * 2, bool)
    for _, seen, _ in chunks:
        before, after = seen.before, seen.step.state
        moves[before.status, after.status] = True
        out = (before.status != tables.PENDING) & (before.status != tables.HELD)
        for name in ITEM_FIELDS[1:]:
            assert (getattr(before, name) == getattr(after, name))[out].all(), name
    for status in range(len(tables.STATUSES)):
        assert set(np.flatnonzero(moves[status])) <= FOLLOWING.get(status, {status}), status
    assert moves.sum() >= 14  # all but an item that stays held


@pytest.mark.slow
def test_late_items_pay_nothing_and_no_item_pays_in_full_twice(chunks):
    for _, seen, live in chunks:
        slot = np.maximum(seen.action, 0) % tables.SLOTS
        status = np.take_along_axis(seen.before.status, slot[:, None], axis=1)[:, 0]
        late = live & ~seen.step.info["invalid_action"] & (status == tables.LATE)
        assert late.sum() > 100 and (seen.step.reward[late] == 0).all()
        ends = seen.step.state.status.reshape(EPISODES, -1, tables.SLOTS)[:, -1]
        outcome = np.where(live, seen.step.state.last_outcome, OUTCOME["none"])
        for name in ("completed", "delegated"):
            times = (outcome == OUTCOME[name]).reshape(EPISODES, -1).sum(axis=1)
            assert (times == (ends == tables.STATUSES.index(name)).sum(axis=1)).all(), name


# Legality, by trying every action in every state.


class Tried(NamedTuple):
    """What each of TRIED came to in a state: leaves [N, 52]."""

    same: Any  # all but the action and outcome last taken are as after action -1
    outcome: Any
    reward: Any
    invalid: Any


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, 0))
def try_all(params, state, noise):
    idle = ENV.advance(state, jnp.int32(-1), noise, params).state

    def one(action):
        step = ENV.advance(state, action, noise, params)
        last = {"last_item": idle.last_item, "last_outcome": idle.last_outcome}
        equal = jax.tree.map(lambda x, y: jnp.all(x == y), replace(step.state, **last), idle)
        same = jax.tree.reduce(jnp.logical_and, equal)
        return Tried(same, step.state.last_outcome, step.reward, step.info["invalid_action"])

    return jax.vmap(one)(TRIED)


@pytest.mark.slow
def test_the_mask_is_the_set_of_actions_that_have_their_effect(chunks):
    for params, seen, live in chunks:
        tried = take(jax.device_get(try_all(params, seen.before, seen.noise)), live)
        legal = np.pad(seen.mask, ((0, 0), (0, len(OUT_OF_RANGE))))[live]
        assert seen.mask[~live].all() and legal.any(axis=1).all()
        assert (tried.invalid == ~legal).all()
        assert (tried.outcome == OUTCOME["invalid"])[~legal].all()
        assert (tried.same & (tried.reward == 0))[~legal].all()
        # Whoever is absent leaves no trace but the outcome.
        no_effect = tried.same & (tried.reward == 0)
        assert (no_effect == (tried.outcome == OUTCOME["absent"]))[legal].all()
        for kind, outcomes in OUTCOMES.items():
            columns = slice(kind * tables.SLOTS, (kind + 1) * tables.SLOTS)
            seen_outcomes = tried.outcome[:, columns][legal[:, columns]]
            assert set(np.unique(seen_outcomes)) == {OUTCOME[name] for name in outcomes}


@pytest.mark.slow
def test_after_an_illegal_action_only_the_world_has_moved(chunks):
    for params, seen, live in chunks:
        rows = live & seen.step.info["invalid_action"]
        params, before, step, action = take((params, seen.before, seen.step, seen.action), rows)
        after = step.state
        assert set(OUT_OF_RANGE) < set(action.tolist())
        assert (step.reward == 0).all() and (after.reward_sum == before.reward_sum).all()
        assert (after.step == before.step + 1).all() and (after.last_item == -1).all()
        rested = before.energy + params.recovery * params.energy
        np.testing.assert_allclose(after.energy, np.minimum(rested, params.energy), rtol=1e-6)
        kept = np.maximum(before.budget - params.upkeep * params.budget, 0)
        np.testing.assert_allclose(after.budget, kept, rtol=0, atol=1e-5)
        waits = (before.status == tables.PENDING) | (before.status == tables.HELD)
        sooner = before.deadline - after.deadline
        assert ((sooner == 1) | (sooner == 2))[waits].all()
        assert ((after.status == tables.LATE) == (after.deadline == 0))[waits].all()
        assert (after.status <= tables.LATE)[waits].all()
        late = waits & (after.status == tables.LATE)
        lost = late.sum(axis=1) * params.failure_health
        expected = np.maximum(before.health - lost, 0)
        np.testing.assert_allclose(after.health, expected, rtol=0, atol=1e-6)


# Symmetry.


def permuted(tree, order):
    """`tree` with slots in another order: entries [12] and rows [12, ...]."""
    return jax.tree.map(lambda x: x[order] if x.shape[:1] == (tables.SLOTS,) else x, tree)


@jax.jit
@jax.vmap
def play_permuted(params, state, action, noise, order):
    in_range = (action >= 0) & (action < ENV.num_actions)
    slot = jnp.argsort(order)[action % tables.SLOTS].astype(jnp.int32)
    moved = jnp.where(in_range, action // tables.SLOTS * tables.SLOTS + slot, action)
    state = permuted(state, order)
    step = ENV.advance(state, moved, permuted(noise, order), params)
    item = step.state.last_item
    item = jnp.where(item < 0, item, order[item])
    step = step._replace(state=replace(step.state, last_item=item))
    return permuted(step, jnp.argsort(order)), ENV.action_mask(state, params)


@pytest.mark.slow
def test_permuted_slots_give_the_permuted_step_bit_for_bit(chunks):
    generator = np.random.default_rng(0)
    for params, seen, live in chunks:
        order = np.argsort(generator.random((len(live), tables.SLOTS))).astype(np.int32)
        given = params, seen.before, seen.action, seen.noise, order
        step, mask = jax.device_get(play_permuted(*given))
        # A finished state keeps the item of its last action, which was not permuted.
        item = np.where(live, step.state.last_item, seen.before.last_item)
        step = step._replace(state=replace(step.state, last_item=item))
        assert_same_bits(step, seen.step)
        rows = seen.mask.reshape(-1, 4, tables.SLOTS)
        rows = np.take_along_axis(rows, order[:, None], axis=2)
        np.testing.assert_array_equal(mask, rows.reshape(mask.shape))


# Single steps.


@pytest.mark.slow
def test_single_compiled_steps_give_the_bits_of_the_batch(play, full_size):
    params, seen, live = chunk(play, 0)
    count = 1_000 if full_size else 100
    for i in np.random.default_rng(0).choice(np.flatnonzero(live), count, replace=False):
        one = take(params, i), take(seen.before, i), seen.action[i], take(seen.noise, i)
        assert_same_bits(jax.device_get(advance(*one)), take(seen.step, i))


@settings(deadline=None)
@given(row=st.integers(0, 4_607), action=ANY_ACTION, draws=DRAWS)
def test_any_draws_and_any_action_keep_a_state_in_range(play, row, action, draws):
    params, seen, _ = chunk(play, 0)
    params, before = take(params, row), take(seen.before, row)
    draws = np.array(draws, np.float32)
    noise = Noise(draws[0], draws[1], *draws[2:].reshape(4, tables.SLOTS))
    step = jax.device_get(advance(params, before, np.int32(action), noise))
    assert_in_range(params, before, step.state)
    legal = 0 <= action < ENV.num_actions and bool(seen.mask[row][action])
    over = bool(ENV.is_terminal(before, params))
    assert bool(step.info["invalid_action"]) == (not over and not legal)


@pytest.mark.parametrize("resource", ["energy", "budget"])
@pytest.mark.parametrize("kind", [tables.EXECUTE, tables.OPTIMIZE])
def test_an_action_is_legal_down_to_its_very_cost(kind, resource):
    params = TASKS[2]
    _, state = jax.device_get(ENV.reset(root_key(0), params))
    calm = Noise(np.float32(0.5), np.float32(1), *np.full((4, tables.SLOTS), 0.5, np.float32))
    share = np.float32(1) if kind == tables.EXECUTE else params.optimize_cost
    for slot, cost in enumerate(share * getattr(state, f"{resource}_cost")):
        action = np.int32(kind * tables.SLOTS + slot)
        step = advance(params, replace(state, **{resource: cost}), action, calm)
        assert not step.info["invalid_action"] and getattr(step.state, resource) == 0
        less = np.nextafter(cost, np.float32(0))
        assert advance(params, replace(state, **{resource: less}), action, calm).info[
            "invalid_action"
        ]
