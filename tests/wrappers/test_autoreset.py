import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lifedrift_jax
from lifedrift_jax.rng import reset_key
from lifedrift_jax.wrappers import AutoReset, BatchAutoReset, EpisodeStats, TimeLimit

STEP_FRACTION = 6  # of Life Drift's observation


def plain_steps(env, params, reset_keys, step_keys, actions):
    """Steps of plain envs, one compiled call each: a list over time of [B] steps."""
    _, state = jax.vmap(env.reset, (0, None))(reset_keys, params)
    steps = []
    for keys, action in zip(step_keys, actions, strict=True):
        result = jax.vmap(env.step, (0, 0, 0, None))(keys, state, action, params)
        state = result.state
        steps.append(result)
    return steps


def test_the_step_that_ends_an_episode_returns_the_next_ones_first_state(play_batch, inputs):
    env, params = lifedrift_jax.make("life_drift/energy_balance-v0")
    reset_keys, step_keys, actions = inputs(15, 4, num_actions=6)
    plain = plain_steps(env, params, reset_keys, step_keys, actions)[-1]
    first, steps = play_batch(AutoReset(EpisodeStats(env)), params, reset_keys, step_keys, actions)
    last = jax.tree.map(lambda x: x[-1], steps)
    chex.assert_trees_all_equal(last.obs, first[0], strict=True)
    chex.assert_trees_all_equal(last.reward, plain.reward, strict=True)
    chex.assert_trees_all_equal(last.info["final_observation"], plain.obs, strict=True)
    assert plain.obs[0, STEP_FRACTION] == 1 and last.obs[0, STEP_FRACTION] == 0
    np.testing.assert_array_equal(last.terminated, [True] * 4)
    np.testing.assert_array_equal(last.truncated, [False] * 4)
    np.testing.assert_array_equal(last.info["episode_length"], [15] * 4)
    grades = jax.vmap(env.grade, (0, None))(plain.state, params)
    chex.assert_trees_all_equal(last.info["score"], grades, strict=True)
    np.testing.assert_array_equal(steps.info["final_valid"][:-1], np.zeros((14, 4), bool))


def test_exactly_the_envs_that_ended_are_valid_and_begin_anew(walk, play_batch, inputs):
    env, params = walk
    reset_keys, step_keys, actions = inputs(12, 256)
    plain = plain_steps(env, params, reset_keys, step_keys, actions)
    _, steps = play_batch(AutoReset(env), params, reset_keys, step_keys, actions)
    over = np.zeros(256, bool)  # after its first end an auto-reset env is in another episode
    ends = set()
    for t, expected in enumerate(plain):
        now = jax.tree.map(lambda x, t=t: x[t], steps)
        ended = np.asarray(expected.terminated)
        np.testing.assert_array_equal(now.info["final_valid"][~over], ended[~over])
        for got, want in (
            (now.info["final_observation"], expected.obs),
            (now.reward, expected.reward),
            (now.terminated, expected.terminated),
        ):
            np.testing.assert_array_equal(got[~over], want[~over])
        going_on = ~over & ~ended
        np.testing.assert_array_equal(now.obs[going_on], expected.obs[going_on])
        np.testing.assert_array_equal(now.state.time[~over & ended], 0)
        ends |= {t} if (~over & ended).any() else set()
        over |= ended
    assert over.all() and len(ends) > 2


def test_between_ends_the_final_observation_is_the_returned_one(walk, play_batch, inputs):
    env, params = walk
    _, steps = play_batch(AutoReset(env), params, *inputs(36, 8))
    same = np.all(steps.obs == steps.info["final_observation"], axis=-1)
    np.testing.assert_array_equal(same, ~np.asarray(steps.info["final_valid"]))


def test_the_new_episode_is_reset_with_the_reset_key_of_the_step_key(walk):
    env, params = walk
    auto, key = AutoReset(TimeLimit(env, 1)), jax.random.key(5)
    _, state = auto.reset(jax.random.key(1), params)
    step = auto.step(key, state, jnp.int32(0), params)
    assert bool(step.truncated)
    chex.assert_trees_all_equal(
        (step.obs, step.state.env_state), env.reset(reset_key(key), params), strict=True
    )


def test_starts_differ_from_episode_to_episode(walk, play_batch, inputs):
    env, params = walk
    _, steps = play_batch(AutoReset(TimeLimit(env, 1)), params, *inputs(200, 1))
    starts = np.asarray(steps.obs[:, 0, 0])
    assert bool(steps.info["final_valid"].all())
    assert len(np.unique(starts)) > 195
    assert abs(starts.mean() - 0.5) < 0.05 and abs(starts.std() - 0.5 / 12**0.5) < 0.02


def test_draws_differ_between_episodes_that_start_alike(play_batch, inputs):
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0", max_steps=1)
    reset_keys, step_keys, actions = inputs(200, 1)
    _, steps = play_batch(AutoReset(env), params, reset_keys, step_keys, jnp.zeros_like(actions))
    assert len(np.unique(steps.info["final_observation"][:, 0, 0])) > 195


@pytest.mark.parametrize("horizon", [1, 10, 15, 20])
def test_horizons_in_a_row_have_as_many_resets_as_done_flags(horizon, play_batch, inputs):
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0", max_steps=horizon)
    first, steps = play_batch(AutoReset(env), params, *inputs(60, 4, num_actions=6))
    # A reset shows in the observations alone: the share of steps taken does not grow.
    fraction = np.concatenate([first[0][None, :, STEP_FRACTION], steps.obs[..., STEP_FRACTION]])
    resets = np.diff(fraction, axis=0) <= 0
    np.testing.assert_array_equal(resets, steps.terminated | steps.truncated)
    expected = np.arange(1, 61) % horizon == 0
    np.testing.assert_array_equal(resets, np.broadcast_to(expected[:, None], resets.shape))
    assert not steps.truncated.any()


def test_an_explicit_reset_starts_a_whole_episode():
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0")
    auto = AutoReset(env)
    _, state = auto.reset(jax.random.key(0), params)
    for t in range(4):
        state = auto.step(jax.random.key(t), state, jnp.int32(1), params).state
    obs, state = auto.reset(jax.random.key(1), params)
    assert obs[STEP_FRACTION] == 0 and obs[STEP_FRACTION - 1] == 0
    done = []
    for t in range(10):
        step = auto.step(jax.random.key(t), state, jnp.int32(1), params)
        state = step.state
        done.append(bool(step.terminated))
    assert done == [False] * 9 + [True]


@pytest.mark.parametrize("limit", [1, 5, 30])
def test_a_batch_equals_single_envs_bit_for_bit(walk, play, play_batch, inputs, limit):
    (env, params), given = walk, inputs(40, 16)
    inner = EpisodeStats(TimeLimit(env, limit))
    singles = play_batch(AutoReset(inner), params, *given)
    chex.assert_trees_all_equal(play(BatchAutoReset(inner), params, *given), singles, strict=True)


def test_a_batch_of_life_drift_equals_single_envs_bit_for_bit(play, play_batch, inputs):
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0")
    inner, given = EpisodeStats(TimeLimit(env, 7)), inputs(25, 16, num_actions=6)
    singles = play_batch(AutoReset(inner), params, *given)
    chex.assert_trees_all_equal(play(BatchAutoReset(inner), params, *given), singles, strict=True)


def test_one_env_a_loop_of_calls_and_a_scan_agree_bit_for_bit(play, play_batch, inputs):
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0")
    auto, (reset_keys, step_keys, actions) = AutoReset(EpisodeStats(env)), inputs(25, 2)
    _, batched = play_batch(auto, params, reset_keys, step_keys, actions)
    (_, state), scanned = play(auto, params, reset_keys[1], step_keys[:, 1], actions[:, 1])
    chex.assert_trees_all_equal(scanned, jax.tree.map(lambda x: x[:, 1], batched), strict=True)
    for t in range(25):
        step = auto.step(step_keys[t, 1], state, actions[t, 1], params)
        expected = jax.tree.map(lambda x, t=t: x[t], scanned)
        chex.assert_trees_all_equal(step, expected, strict=True)
        state = step.state


def test_the_batch_resets_under_one_conditional_for_all(walk, inputs):
    env, params = walk
    reset_keys, step_keys, actions = inputs(1, 8)
    _, state = BatchAutoReset(env).reset(reset_keys, params)
    jaxpr = jax.make_jaxpr(BatchAutoReset(env).advance)(
        state, actions[0], BatchAutoReset(env).draw(step_keys[0]), params
    )
    (call,) = jaxpr.eqns
    conds = [eqn for eqn in call.params["jaxpr"].eqns if eqn.primitive.name == "cond"]
    assert [eqn.invars[0].aval.shape for eqn in conds] == [()]


def test_the_batchs_other_methods_are_those_of_its_envs(walk, inputs):
    env, params = walk
    batch, (reset_keys, _, actions) = BatchAutoReset(env), inputs(1, 8)
    obs, states = batch.reset(reset_keys, params)
    for i in range(8):
        single_obs, state = env.reset(reset_keys[i], params)
        chex.assert_trees_all_equal(obs[i], single_obs)
        chex.assert_trees_all_equal(batch.grade(states, params)[i], env.grade(state, params))
        mask = batch.action_mask(states, params)[i]
        chex.assert_trees_all_equal(mask, env.action_mask(state, params))
        legal = batch.is_legal(states, actions[0], params)[i]
        assert bool(legal) == bool(mask[actions[0, i]])
        chex.assert_trees_all_equal(
            batch.variables(states, params)[0][i], env.variables(state, params)[0]
        )
        assert not batch.events(states, params)[0][i] and not batch.is_terminal(states, params)[i]
    empty = batch.empty_info(params, batch_size=8)
    step = batch.step(reset_keys, states, actions[0], params)
    chex.assert_trees_all_equal_shapes_and_dtypes(empty, step.info)


@pytest.mark.parametrize("batched", [False, True])
def test_empty_info_starts_a_scan_whose_carry_holds_info(walk, inputs, batched):
    env, params = walk
    reset_keys, step_keys, actions = inputs(12, 8)
    if batched:
        auto = BatchAutoReset(EpisodeStats(env))
        empty = auto.empty_info(params, batch_size=8)
    else:
        auto = AutoReset(EpisodeStats(env))
        reset_keys, step_keys, actions = reset_keys[0], step_keys[:, 0], actions[:, 0]
        empty = auto.empty_info(params)
    assert not empty["final_valid"].any()
    obs, state = auto.reset(reset_keys, params)

    def body(carry, given):
        step = auto.step(given[0], carry[0], given[1], params)
        return (step.state, step.obs, step.info), step.info["final_valid"]

    (_, _, info), valid = jax.lax.scan(body, (state, obs, empty), (step_keys, actions))
    assert info.keys() == empty.keys() and valid.any()


def test_a_step_keeps_shapes_and_dtypes_and_has_no_weak_types(walk):
    for env, params in (walk, lifedrift_jax.make("life_drift/drift_correction-v0")):
        auto = AutoReset(EpisodeStats(TimeLimit(env, 5)))

        def two_steps(key, params, auto=auto):
            obs, state = auto.reset(key, params)
            once = auto.step(key, state, jnp.int32(0), params)
            return (obs, state), once, auto.step(key, once.state, jnp.int32(0), params)

        first, once, twice = jax.eval_shape(two_steps, jax.random.key(0), params)
        assert first == (once.obs, once.state) and once == twice
        assert not any(x.weak_type for x in jax.tree.leaves(once))
        assert once.reward.shape == once.terminated.shape == once.truncated.shape == ()
        assert once.terminated.dtype == once.truncated.dtype == bool


def test_64_bit_mode_changes_nothing(walk, play_batch, inputs):
    for env, params in (walk, lifedrift_jax.make("life_drift/drift_correction-v0")):
        auto, given = AutoReset(EpisodeStats(TimeLimit(env, 7))), inputs(30, 4)
        narrow = play_batch(auto, params, *given)
        with jax.enable_x64(True):
            wide = play_batch(auto, params, *given)
        chex.assert_trees_all_equal(wide, narrow, strict=True)


def test_rebuilt_wrappers_and_new_numbers_share_one_trace(walk, inputs):
    env, params = walk
    traces = []

    class Counted(type(env)):
        def transition(self, *args):
            traces.append(1)
            return super().transition(*args)

    reset_keys, step_keys, actions = inputs(4, 2)

    def play_on(i: int) -> int:
        auto = AutoReset(EpisodeStats(TimeLimit(Counted(), 2)))
        changed = type(params)(jnp.int32(9 + i))
        _, state = auto.reset(reset_keys[i % 2], changed)
        auto.step(step_keys[i, 0], state, actions[i, 0], changed)
        return len(traces)

    first = play_on(0)
    assert first > 0
    assert [play_on(i) for i in (1, 2, 3)] == [first] * 3
