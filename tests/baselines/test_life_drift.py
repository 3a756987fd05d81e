from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lifedrift_jax import life_drift, rollout
from lifedrift_jax.baselines.life_drift import greedy, rule_based, state_from_observation
from lifedrift_jax.life_drift import ACTIONS, TASKS, VARIABLES
from lifedrift_jax.rng import episode_key, root_key

ENV = life_drift.LifeDrift()
MASK = np.ones(len(ACTIONS), bool)


def observation(values, step=0, task="long_term_stability"):
    params = life_drift.task_params(task)
    values = dict(zip(VARIABLES, map(np.float32, values), strict=True))
    state = replace(life_drift.initial_state(params), step=jnp.int32(step), **values)
    return state, ENV.observe(state, params), params


def choice(policy, values, **where):
    _, obs, params = observation(values, **where)
    carry = policy.init(root_key(0), params)
    return ACTIONS[int(jax.jit(policy.act)(root_key(0), obs, MASK, carry)[0])]


# The first rule that holds decides; each row shows a rule at work and its bounds.
@pytest.mark.parametrize(
    ("values", "action"),
    [
        ([0.4, 0.5, 0.50, 0.76, 0.5], "insert_break"),
        ([0.4, 0.5, 0.29, 0.50, 0.5], "insert_break"),
        ([0.4, 0.5, 0.30, 0.75, 0.5], "prioritize_goal"),
        ([0.49, 0.41, 0.5, 0.70, 0.5], "prioritize_goal"),
        ([0.50, 0.41, 0.5, 0.70, 0.5], "suggest_task"),
        ([0.40, 0.40, 0.5, 0.70, 0.5], "reduce_difficulty"),
        ([0.50, 0.40, 0.5, 0.56, 0.5], "reduce_difficulty"),
        ([0.50, 0.40, 0.5, 0.55, 0.5], "suggest_task"),
    ],
)
def test_rule_based_policy_follows_its_rules_in_order(values, action):
    assert choice(rule_based(), values) == action


def test_observation_gives_back_the_state_for_every_horizon_and_step():
    steps, horizons = np.meshgrid(np.arange(200), np.arange(1, 201))
    pairs = [x[steps < horizons].astype(np.int32) for x in (steps, horizons)]
    values = np.random.default_rng(0).random((len(pairs[0]), 5), np.float32)
    params = life_drift.task_params("energy_balance")

    @jax.jit
    @jax.vmap
    def there_and_back(step, max_steps, values):
        task = replace(params, max_steps=max_steps)
        variables = dict(zip(VARIABLES, values, strict=True))
        state = replace(life_drift.initial_state(task), step=step, **variables)
        back = state_from_observation(ENV.observe(state, task), task)
        return back.step, jnp.stack(ENV.variables(back, task))

    seen_steps, seen_values = there_and_back(*pairs, values)
    assert (np.asarray(seen_steps) == pairs[0]).all()
    assert (np.asarray(seen_values) == values).all()


def expected_rewards(state, params, samples=20_000):
    """Mean reward of each action over pseudo-random draws, and its standard errors."""
    uniforms = np.random.default_rng(1).random((samples, 8), np.float32)

    def rewards(action):
        def one(u):
            noise = life_drift.noise_from_uniforms(u)
            return life_drift.transition(state, action, noise, params)[1]

        return jax.vmap(one)(uniforms)

    drawn = np.asarray(jax.jit(jax.vmap(rewards))(jnp.arange(6, dtype=jnp.int32)), np.float64)
    return drawn.mean(axis=1), drawn.std(axis=1) / np.sqrt(samples)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("step", [0, 4, 8])
def test_greedy_picks_an_action_of_the_largest_expected_reward(task, step):
    values = np.random.default_rng(step).uniform(0.1, 0.9, 5)
    state, _, params = observation(values, step, task)
    means, errors = expected_rewards(state, params)
    chosen = ACTIONS.index(choice(greedy(), values, step=step, task=task))
    assert means[chosen] >= means.max() - 0.002 - 3 * errors.max()


def test_greedy_sees_the_day_phase():
    # Fatigue .815 and .01 to .03 by nature stay below the cascade; late in the day .02 more
    # often does not, unless the action itself brings fatigue down.
    values = [0.75, 0.1, 0.5, 0.815, 0.5]
    assert choice(greedy(), values, step=10) == "reschedule_task"
    assert choice(greedy(), values, step=11) == "reduce_difficulty"


@pytest.mark.parametrize("policy", [rule_based(), greedy(32)], ids=lambda policy: policy.name)
def test_policies_play_alike_alone_and_in_a_batch(policy):
    params = life_drift.task_params("energy_balance")
    keys = jax.vmap(episode_key, in_axes=(None, 0))(root_key(3), jnp.arange(5))
    _, batch = jax.vmap(lambda key: rollout.episode(key, ENV, policy, params))(keys)
    for i in range(len(keys)):
        _, alone = rollout.episode(keys[i], ENV, policy, params)
        assert (alone.action == batch.action[i]).all()
        assert (alone.reward == batch.reward[i]).all()


@pytest.mark.parametrize("policy", [rule_based(), greedy(32)], ids=lambda policy: policy.name)
def test_policies_play_alike_with_x64_on_and_off(policy):
    params = life_drift.task_params("drift_correction")
    outcome, steps = rollout.episode(episode_key(root_key(5), 0), ENV, policy, params)
    with jax.enable_x64(True):
        same, again = rollout.episode(episode_key(root_key(5), 0), ENV, policy, params)
        assert again.action.dtype == np.int32
    assert (steps.action == again.action).all()
    assert outcome.episode_return == same.episode_return


def test_greedy_takes_float64_params():
    _, obs, _ = observation([0.4, 0.6, 0.5, 0.5, 0.5], task="drift_correction")
    with jax.enable_x64(True):
        params = life_drift.task_params("drift_correction", np.float64)
        action, _ = jax.jit(greedy().act)(root_key(0), obs, MASK, params)
    assert action.dtype == np.int32
    assert ACTIONS[int(action)] == choice(
        greedy(), [0.4, 0.6, 0.5, 0.5, 0.5], task="drift_correction"
    )


def test_equal_arguments_give_the_same_policy():
    assert rule_based() is rule_based()
    assert greedy() is greedy(64) is greedy(num_points=np.int64(64))
    assert greedy(32) is not greedy()
    assert greedy(32).name != greedy().name == "greedy"


@pytest.mark.parametrize("num_points", [0, 1, 16, 48, -64, 64.5, "64", None, True])
def test_a_number_of_points_that_gives_no_lattice_is_refused(num_points):
    with pytest.raises(ValueError, match=r"num_points is .*power of two"):
        greedy(num_points)
