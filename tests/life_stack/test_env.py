"""What must hold of LifeStack in every play: of random tasks, and of the built-in ones."""

from copy import deepcopy
from dataclasses import replace
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from life_stack.random_tasks import compilable

import lifedrift_jax
from lifedrift_jax import rng, rollout
from lifedrift_jax.baselines import random
from lifedrift_jax.life_stack import Capacity, LifeStack, compile_task
from lifedrift_jax.life_stack.library import build
from lifedrift_jax.life_stack.types import World

ENV = LifeStack()
BUILT_IN = [i for i in lifedrift_jax.registered() if i.startswith("life_stack/")]


def stacked(params):
    return jax.tree.map(lambda *x: np.stack(x), *params)


@partial(jax.jit, static_argnames=("env", "steps"))
def play(key, params, env=ENV, steps=12):
    """Random play of stacked tasks, one episode of each: outcomes and transitions."""
    keys = jax.vmap(partial(rng.episode_key, key))(
        jnp.arange(params.max_steps.shape[0], dtype=jnp.uint32)
    )
    episode = partial(rollout.episode, env=env, policy=random(), num_steps=steps)
    return jax.vmap(lambda k, p: episode(k, params=p))(keys, params)


@pytest.fixture(scope="module")
def tasks():
    generator = np.random.default_rng(3)
    return compilable(generator, 300, partial(compile_task, best_return=5.0))


@pytest.fixture(scope="module")
def played(tasks):
    return jax.device_get(play(rng.root_key(2), stacked([params for _, params in tasks])))


def members(sets, count):
    return (np.asarray(sets)[..., None] >> np.arange(count, dtype=np.uint32)) & 1 == 1


def test_nothing_is_had_twice_and_what_is_closed_stays_so(tasks, played):
    _, seen = played
    params = stacked([params for _, params in tasks])
    world: World = seen.state.world
    closed, completed = (members(x, 8) for x in (world.closed, world.completed))
    undone = seen.action == ENV.num_actions - 1
    lost = (closed[:, :-1] & ~closed[:, 1:]).any(-1) | (completed[:, :-1] & ~completed[:, 1:]).any(
        -1
    )
    assert not (lost & ~undone[:, 1:]).any()
    new = completed[:, 1:] & ~completed[:, :-1]
    assert not (new & closed[:, :-1])[~undone[:, 1:]].any()
    cost = np.where(completed, params.routes.cost[:, None], 0).sum(-1)
    assert (cost <= params.budget[:, None] + 1e-3).all()
    kinds = np.asarray(world.used)
    assert not (kinds & ~params.routes.types[:, None]).any()
    whole = (kinds == params.routes.types[:, None]) & (params.routes.types[:, None] != 0)
    assert (whole == completed).all()


def test_returns_are_what_was_reached_and_completed(tasks, played):
    outcome, seen = played
    params = stacked([params for _, params in tasks])
    last = jax.tree.map(lambda x: x[:, -1], seen.state.world)
    earned = np.where(members(last.completed, 8), params.routes.reward, 0).sum(-1)
    earned = earned + np.where(members(last.reached, 8), params.milestones.reward, 0).sum(-1)
    np.testing.assert_allclose(outcome.episode_return, earned, atol=1e-4)
    np.testing.assert_allclose(outcome.score, np.clip(earned / 5, 0, 1), atol=1e-5)
    np.testing.assert_allclose(seen.reward.sum(1), earned, atol=1e-4)


def test_one_fact_of_each_key_holds(tasks, played):
    _, seen = played
    facts = np.asarray(seen.state.world.facts)
    for (_, params), states in zip(tasks[:60], facts[:60], strict=True):
        for key in np.asarray(params.keys):
            if key.any():
                held = np.bitwise_count(states & key).sum(-1)
                assert (held == 1).all()


def test_a_hidden_value_is_not_seen_before_it_is_inspected():
    """Episodes that differ in a hidden value alone look alike until it shows in what happens."""
    task = build("train_delay")
    (key,) = task.hidden_prior  # true or false
    params = compile_task(task, best_return=5.0)
    _, state = ENV.reset(rng.root_key(0), params)
    values = np.asarray(params.hidden) & np.array([0, *[2**32 - 1] * 3], np.uint32)
    swapped = np.asarray(state.world.facts) ^ values
    world = replace(state.world, facts=jnp.asarray(swapped))
    twin = replace(state, world=world, undo=world)
    assert isinstance(task.hidden_state[key], bool)
    observe = jax.jit(ENV.observe)
    inspect = np.flatnonzero(ENV.action_mask(state, params))
    on_routes = ENV.capacity.routes * ENV.capacity.types
    keys = [a for a in inspect if on_routes <= a < on_routes + ENV.capacity.keys]
    assert (observe(state, params) == observe(twin, params)).all()
    differs = []
    for action in keys:
        after = [ENV.step(rng.root_key(1), s, jnp.int32(action), params) for s in (state, twin)]
        chex.assert_trees_all_equal(after[0].reward, after[1].reward)
        differs.append(bool((after[0].obs != after[1].obs).any()))
    assert sum(differs) == 1


def test_empty_slots_change_nothing():
    roomy = LifeStack(Capacity(routes=10, milestones=10, events=12, types=18, words=5))
    for name in ("flight_crisis", "career"):
        task = build(name)
        small, large = (compile_task(task, env.capacity) for env in (ENV, roomy))
        assert small.best_return == large.best_return
        for env, params in ((ENV, small), (roomy, large)):
            _, state = env.reset(rng.root_key(0), params)
            assert int(np.sum(env.action_mask(state, params))) == int(
                np.sum(ENV.action_mask(*reversed((small, ENV.reset(rng.root_key(0), small)[1]))))
            )


def test_permuting_routes_permutes_what_happens():
    task = build("transit_strike")
    turned = deepcopy(task)
    turned.viable_routes = [*turned.viable_routes[1:], turned.viable_routes[0]]
    count = len(task.viable_routes)
    values = [compile_task(t) for t in (task, turned)]
    assert values[0].best_return == values[1].best_return
    kinds = ENV.capacity.types
    (_, one), (_, two) = (ENV.reset(rng.root_key(0), params) for params in values)
    for action in np.flatnonzero(ENV.action_mask(one, values[0]))[:6]:
        route, kind = divmod(int(action), kinds)
        if route >= count:
            continue
        twin = (route - 1) % count * kinds + kind
        a = ENV.step(rng.root_key(1), one, jnp.int32(action), values[0])
        b = ENV.step(rng.root_key(1), two, jnp.int32(twin), values[1])
        assert a.reward == b.reward and a.terminated == b.terminated
        chex.assert_trees_all_equal(a.state.world.facts.shape, b.state.world.facts.shape)
        assert (np.roll(a.state.world.used[:count], -1) == b.state.world.used[:count]).all()


def test_tasks_of_one_capacity_share_one_program():
    step = chex.assert_max_traces(lambda *x: ENV.step(*x), n=1)
    jitted = jax.jit(step)
    for env_id in BUILT_IN[:4]:
        env, params = lifedrift_jax.make(env_id)
        assert env == ENV
        _, state = env.reset(rng.root_key(0), params)
        jitted(rng.root_key(1), state, jnp.int32(160), params)


@pytest.mark.parametrize("horizon", [1, 10, 15, 20])
def test_a_horizon_is_so_many_steps(horizon):
    task = build("flight_crisis")
    task.horizon, task.constraints = horizon, {}
    task.failure_conditions = []
    params = compile_task(task, best_return=3.5)
    _, state = ENV.reset(rng.root_key(0), params)
    for number in range(horizon):
        assert not ENV.is_terminal(state, params)
        step = ENV.step(rng.step_key(rng.root_key(0), number), state, jnp.int32(160), params)
        state = step.state
    assert step.terminated and not step.truncated


def test_difficulty_is_an_option_of_make():
    _, params = lifedrift_jax.make("life_stack/train_delay-v0", difficulty=5)
    assert params.max_steps == build("train_delay", 5).horizon
    with pytest.raises(ValueError, match="difficulty is 9: it must be a whole number from 1 to 5"):
        lifedrift_jax.make("life_stack/train_delay-v0", difficulty=9)
    with pytest.raises(ValueError, match="no parameter 'difficult'"):
        lifedrift_jax.make("life_stack/train_delay-v0", difficult=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.viable_routes[0].consequences.clear(), "success_conditions cannot all be met"),
        (lambda t: t.mutable_world.update(flight_rebooked=True), "may all hold at reset"),
        (
            lambda t: t.failure_conditions.append({"key": "caught_up", "value": False}),
            r"failure_conditions\[1\] is .*: it may hold at reset",
        ),
        (
            lambda t: (
                t.viable_routes[1].consequences.clear()
                or t.viable_routes[1].milestones_unlocked.clear()
            ),
            r"milestones\[1\].condition_value",
        ),
    ],
)
def test_senseless_tasks_are_refused(change, message):
    task = build("flight_crisis")
    change(task)
    if message.startswith("success_conditions cannot"):
        task.milestones = task.milestones[1:]
        task.viable_routes[0].milestones_unlocked.clear()
    with pytest.raises(ValueError, match=message):
        compile_task(task)


def test_what_does_not_fit_is_refused_by_name():
    for change, message in (
        (
            {"routes": 1},
            r"viable_routes: 2 do not fit, at most 1 .*Capacity of more routes",
        ),
        ({"keys": 3}, "known keys: 5 do not fit"),
        ({"events": 1}, "event_schedule: 2 do not fit"),
        ({"milestones": 1}, "milestones: 2 do not fit"),
        ({"rewards": 2}, r"sum of all rewards: 6\.1 do not fit"),
    ):
        with pytest.raises(ValueError, match=message):
            compile_task(build("flight_crisis"), Capacity(**change))
