from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import task_flow as reference
from reference.task_flow_search import Search

import lifedrift_jax as ld
from lifedrift_jax import rollout, task_flow
from lifedrift_jax.baselines.task_flow import planner, state_from_observation
from lifedrift_jax.registry import override

ENV = task_flow.TaskFlow()


def small(tier, max_steps):
    """A tier of 4 items in which only executions are left to chance."""
    still = {"drift": (0, 0), "hurry_chance": 0, "spike_chance": 0}
    return override(task_flow.task_params(tier), items=4, max_steps=max_steps, **still)


@partial(jax.jit, static_argnames="num_steps")
@partial(jax.vmap, in_axes=(0, None, None))
def play_planner(key, params, num_steps):
    """The planner's episodes: states before each step, and its actions."""
    _, seen = rollout.episode(key, ENV, planner(), params, num_steps)
    start = ENV.start(ld.reset_key(key), params)
    before = jax.tree.map(lambda x, y: jnp.concatenate([x[None], y[:-1]]), start, seen.state)
    return before, seen.action, seen.valid


def as_episode(state, rules):
    """A state of numpy leaves as an episode of the restatement."""
    names = ("domain", "priority", "deadline", "uncertainty", "value")
    names += ("energy_cost", "budget_cost", "optimized")
    columns = {name: getattr(state, name).tolist() for name in names}
    columns["status"] = [reference.STATUSES[i] for i in state.status]
    rows = zip(*columns.values(), strict=True)
    episode = reference.Episode(
        rules, [reference.Item(**dict(zip(columns, row, strict=True))) for row in rows]
    )
    episode.energy, episode.budget = float(state.energy), float(state.budget)
    episode.health = float(state.health)
    episode.outcomes = ["none"] * int(state.step)
    return episode


# What play loses is the sum over its steps of what the choice loses: so measured, a few
# episodes tell what a comparison of mean grades would need thousands for.
@pytest.mark.slow
@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_the_planner_loses_less_than_a_hundredth_to_exact_search(tier, rules_of, full_size):
    if not full_size:
        pytest.skip("compiling the planner and the search take minutes")
    params, count = small(tier, 4), 24
    rules, search = rules_of(jax.device_get(params)), Search(rules_of(jax.device_get(params)))
    keys = jax.vmap(ld.episode_key, (None, 0))(ld.root_key(1), jnp.arange(count))
    before, actions, valid = jax.device_get(play_planner(keys, params, int(params.max_steps)))
    lost = np.zeros(count)
    for i, t in np.argwhere(valid):
        episode = as_episode(jax.tree.map(lambda x, i=i, t=t: x[i, t], before), rules)
        values = search.values_of_actions(episode)
        lost[i] += max(values.values()) - values[int(actions[i, t])]
    assert 0 <= lost.mean() < 0.01


def test_the_search_weighs_what_an_execution_may_come_to(rules_of):
    rules = rules_of(jax.device_get(small("medium", 1)))
    audit = list(task_flow.DOMAINS).index("security_audit")
    item = reference.Item("pending", audit, 0.5, 3, 0.6, 1.0, 1.0, 5.0)
    empty = [reference.Item("empty", 0, 0.0, 0, 0.0, 0.0, 0.0, 0.0) for _ in range(11)]
    values = Search(rules).values_of_actions(reference.Episode(rules, [item, *empty]))
    chance = 1.15 * 0.6**2 * 0.3
    energy, budget = rules.energy - 1, rules.budget * (1 - rules.upkeep) - 5
    done = reference.grade(rules, 1, 0, 1, energy, budget, 1.0)
    lost = reference.grade(rules, 0, 0, 1, energy, budget, 1 - rules.failure_health)
    assert values[0] == pytest.approx((1 - chance) * done + chance * lost, rel=1e-6)
    assert sorted(values) == [0, 12, 24, 36]


@pytest.mark.parametrize("tier", ["easy", "medium", "hard"])
def test_a_state_from_an_observation_goes_on_like_the_one_observed(tier, play):
    params = jax.device_get(task_flow.task_params(tier))
    seen = play([params] * 40, 3)

    @jax.jit
    @partial(jax.vmap, in_axes=0)
    @partial(jax.vmap, in_axes=0)
    def both(state):
        obs = ENV.observe(state, params)
        other = state_from_observation(obs, params)
        again = ENV.observe(other, params), ENV.grade(other, params)
        return (obs, ENV.grade(state, params)), again, ENV.action_mask(other, params)

    first, again, mask = both(seen.before)
    for x, y in zip(first, again, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=2e-6)
    np.testing.assert_array_equal(mask, seen.mask)
