"""The compiled env against the plain-Python restatement: every flag, every reward, each step."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from life_stack.random_tasks import compilable
from reference.life_stack import Action, Episode

from lifedrift_jax import rng
from lifedrift_jax.baselines import random
from lifedrift_jax.life_stack import OUTCOMES, LifeStack, compile_task, texts

ENV = LifeStack()
STEPS = 16
# Outcomes that the restatement calls otherwise.
OTHERWISE = {"started": "none"}


class Seen(NamedTuple):
    """Steps of an episode, leaves [STEPS, ...]; `mask` of the state before, `step` after."""

    action: Any
    mask: Any
    noise: Any
    step: Any
    grade: Any


@jax.jit
@partial(jax.vmap, in_axes=(0, 0))
def play(key, params):
    """(first state, Seen) of an episode of mostly legal, partly arbitrary actions."""
    _, start = ENV.reset(rng.reset_key(key), params)

    def body(state, number):
        step_key, policy_key = rng.step_key(key, number), rng.policy_key(key, number)
        mask = ENV.action_mask(state, params)
        legal, _ = random().act(policy_key, jnp.zeros(0), mask, ())
        wild = rng.uniform_index(rng.part_key(policy_key, 1), ENV.num_actions + 4) - 2
        action = jnp.where(rng.uniform_pair(policy_key, 1)[0] < 0.1, wild, legal)
        # An event by chance fires, or not, often enough with draws far apart.
        noise = ENV.draw(step_key)
        step = ENV.advance(state, action, noise, params)
        return step.state, Seen(action, mask, noise, step, ENV.grade(step.state, params))

    _, seen = jax.lax.scan(body, start, jnp.arange(STEPS, dtype=jnp.int32))
    return start, seen


class Reader:
    """Reads the arrays of one task by its names."""

    def __init__(self, params):
        self.layout = texts.of(int(params.task))

    def action(self, index):
        """The restatement's action, None if there is no such."""
        room, layout = ENV.capacity, self.layout
        on_routes = room.routes * room.types
        if 0 <= index < on_routes:
            route, kind = divmod(index, room.types)
            if route < len(layout.routes) and kind < len(layout.types):
                return Action("route", layout.routes[route], layout.types[kind])
            return None
        key = index - on_routes
        if 0 <= key < len(layout.keys):
            return Action("inspect", layout.keys[key])
        return {room.keys: Action("wait"), room.keys + 1: Action("rollback")}.get(key)

    def values(self, facts):
        """Key -> value of a set of facts, absent keys left out."""
        numbers = set(members(facts))
        held = [fact for fact, number in self.layout.facts.items() if number in numbers]
        return {key: value for key, value in held if value is not None}

    def named(self, names, members_of):
        return {names[i] for i in members(members_of)}

    def types(self, used):
        pairs = zip(self.layout.routes, used, strict=False)
        return {route: self.named(self.layout.types, kinds) for route, kinds in pairs}


def members(words):
    data = np.atleast_1d(words).astype("<u4").view(np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little")).tolist()


def assert_same(episode, state, read, room):
    """All of a state of the restatement and of the env."""
    world, layout = state.world, read.layout
    assert read.values(world.facts) == episode.values
    assert read.named(layout.routes, world.closed) == episode.closed
    assert read.named(layout.routes, world.completed) == episode.completed
    assert read.named(layout.milestones, world.reached) == episode.reached
    assert read.types(world.used) == episode.used
    assert {layout.events[i] for i in members(state.fired)} == episode.fired
    visible = set(layout.task.visible_world)
    shown = {layout.keys[i] for i in members(state.shown[0]) if i < len(layout.keys)}
    assert shown - visible == episode.inspected - visible
    assert int(state.step) == episode.step_count
    assert OUTCOMES[int(state.last_outcome)] == OTHERWISE.get(episode.outcome, episode.outcome)


@pytest.mark.slow
def test_every_step_agrees_with_the_restatement(full_size):
    count = 10_000 if full_size else 250
    generator = np.random.default_rng(0)
    made = compilable(generator, count, partial(compile_task, best_return=5.0))
    params = jax.tree.map(lambda *x: np.stack(x), *(p for _, p in made))
    keys = jax.vmap(partial(rng.episode_key, rng.root_key(1)))(jnp.arange(count, dtype=jnp.uint32))
    start, seen = jax.device_get(play(keys, params))
    outcomes: set[str] = set()
    for number, (task, own) in enumerate(made):
        first, steps = jax.tree.map(lambda x, i=number: x[i], (start, seen))
        outcomes |= replay(task, Reader(own), first, steps)
    assert outcomes >= {*OUTCOMES} - {"none"}


def replay(task, read, first, seen):
    """The restatement through the same actions and draws; returns the outcomes it has met."""
    hidden = {key: read.values(first.world.facts)[key] for key in task.hidden_prior}
    episode, outcomes, paid = Episode(task, hidden), set(), 0.0
    assert read.values(first.world.facts) == episode.values
    for t in range(STEPS):
        step = jax.tree.map(lambda x, t=t: x[t], seen.step)
        action, finished = read.action(int(seen.action[t])), episode.finished
        legal = set(episode.legal())
        if not finished:
            masked = {read.action(i) for i in np.flatnonzero(seen.mask[t]).tolist()}
            assert masked == legal
        else:
            assert seen.mask[t].all()
        draws = np.zeros(len(task.event_schedule))
        draws[read.layout.events] = seen.noise.event[t][: len(draws)]
        reward = episode.step(action, draws.tolist())
        paid += reward
        assert step.reward == pytest.approx(reward, abs=1e-5)
        assert bool(step.terminated) == episode.finished and not step.truncated
        if not finished:
            assert bool(step.info["invalid_action"]) == (action not in legal)
        assert_same(episode, step.state, read, ENV.capacity)
        assert seen.grade[t] == pytest.approx(min(max(paid / 5, 0), 1), abs=1e-5)
        outcomes.add(episode.outcome)
    return outcomes
