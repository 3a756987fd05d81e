"""The exact search: against the restatement played out in full, and against the env itself."""

from functools import cache

import jax
import numpy as np
import pytest
from life_stack.random_tasks import compilable
from reference.life_stack import Episode

import lifedrift_jax
from lifedrift_jax.baselines import make_policy
from lifedrift_jax.baselines.life_stack import greedy, optimal
from lifedrift_jax.life_stack import Capacity, LifeStack, compile_task, generate, solve
from lifedrift_jax.life_stack.library import build
from lifedrift_jax.sweep import sweep

ENV = LifeStack()


def best_with_hindsight(task, hidden):
    """The most that any play of the restatement earns, when nothing is left to chance."""

    @cache
    def best(history):
        episode = Episode(task, hidden)
        for action in history:
            episode.step(action, [0.5] * len(task.event_schedule))
        if episode.finished:
            return 0.0
        # An inspection only tells what is known here.
        choices = [a for a in episode.legal() if a.kind != "inspect"]
        values = []
        for action in choices:
            after = Episode(task, hidden)
            for earlier in history:
                after.step(earlier, [0.5] * len(task.event_schedule))
            reward = after.step(action, [0.5] * len(task.event_schedule))
            values.append(reward + best((*history, action)))
        return max(values)

    return best(())


def certain(task):
    """The task, short, and with no event left to chance."""
    task.horizon = min(task.horizon, 3)
    for event in task.event_schedule:
        event.probability = 1.0 if event.probability >= 0.5 else 0.0
    task.hidden_prior = {}
    return task


@pytest.mark.slow
def test_the_value_is_that_of_trying_everything(full_size):
    count = 60 if full_size else 20
    made = compilable(
        np.random.default_rng(5), count, lambda task: compile_task(certain(task), best_return=1.0)
    )
    values = []
    for task, params in made:
        solution = solve(params, ENV.capacity)
        assert solution.exact and solution.expected_return == pytest.approx(
            best_with_hindsight(task, {}), abs=1e-4
        )
        values.append(solution.expected_return)
    assert len(set(values)) > count // 6


@pytest.mark.slow
def test_what_the_plan_is_worth_is_what_it_earns(full_size):
    names = ("code_merge_crisis", "car_breakdown", "train_delay", "relationships")
    for name in names if full_size else names[:2]:
        env, params = lifedrift_jax.make(f"life_stack/{name}-v0")
        solution = solve(params, env.capacity)
        played = sweep(env, optimal(env, params), params, 3, 20_000, steps=False)
        low, high = played.episode_return.interval
        assert low - 0.01 <= solution.expected_return <= high + 0.01
        low, high = played.events["success"].interval
        assert low - 0.01 <= solution.success <= high + 0.01


def test_bounds_hold_when_states_are_left_out():
    params = compile_task(build("car_breakdown", 5), best_return=1.0)
    whole = solve(params, ENV.capacity)
    assert whole.exact and whole.expected_return == whole.upper_return
    for most in (1, 20, 100, 400):
        part = solve(params, ENV.capacity, max_states=most)
        assert not part.exact
        assert part.expected_return <= whole.expected_return + 1e-5 <= part.upper_return + 2e-5
    with pytest.warns(
        UserWarning, match=r"more than 20 states: whether it can be solved is unknown"
    ):
        compile_task(build("car_breakdown", 5), max_states=20)


def test_what_is_known_later_or_never_is_worth_no_more():
    for name in ("train_delay", "finances", "mental_wellbeing"):
        solution = solve(compile_task(build(name), best_return=1.0), ENV.capacity)
        assert solution.without_inspection < solution.expected_return <= solution.with_hindsight


def test_policies_that_need_the_task_are_made_once_for_it():
    env, params = lifedrift_jax.make("life_stack/train_delay-v0")
    policy = make_policy("optimal", env, params)
    assert make_policy("optimal", env, params) is policy and policy.name == "optimal"
    with pytest.raises(ValueError, match="'optimal' is of one task: make_policy needs its params"):
        make_policy("optimal", env)


def test_greedy_takes_what_pays_most_for_an_action():
    env, params = lifedrift_jax.make("life_stack/flight_crisis-v0")
    played = sweep(env, greedy(), params, 0, 16)
    assert played.score.mean == 1.0 and played.invalid_actions == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "knobs",
    [
        generate.Knobs(),
        generate.Knobs(routes=6, decoys=0, hidden=2, events=3, closing=0.4),
        generate.Knobs(routes=3, decoys=0, hidden=0, events=1, horizon=12),
    ],
)
def test_generated_tasks_know_their_optimum(knobs, full_size):
    count = 1_000 if full_size else 12
    keys = jax.random.split(jax.random.key(7), count)
    tasks = jax.jit(jax.vmap(lambda key: generate.generate(key, knobs)))(keys)
    for number in range(count):
        params = jax.tree.map(lambda x, i=number: x[i], tasks)
        solution = solve(params, generate.CAPACITY)
        assert solution.exact and solution.upper_success > 0
        assert solution.expected_return == pytest.approx(float(params.best_return), abs=1e-4)


def test_knobs_out_of_range_are_refused():
    for name, value in (
        ("routes", 3),
        ("hidden", 3),
        ("decoys", 5),
        ("closing", 1.5),
        ("events", 9),
    ):
        with pytest.raises(ValueError, match=rf"{name} is {value}: it must be in \["):
            generate.Knobs(**{name: value})
    assert Capacity() != generate.CAPACITY
