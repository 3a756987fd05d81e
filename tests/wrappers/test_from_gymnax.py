import importlib
import sys
from functools import partial

import chex
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnax.environments import environment, spaces
from gymnax.wrappers import LogWrapper

import lifedrift_jax
from lifedrift_jax import rollout, testing
from lifedrift_jax.baselines import simple
from lifedrift_jax.core import Policy
from lifedrift_jax.registry import override
from lifedrift_jax.rng import episode_key, root_key
from lifedrift_jax.spaces import Box, Discrete
from lifedrift_jax.sweep import sweep
from lifedrift_jax.wrappers import BatchAutoReset, Checked, EpisodeStats
from lifedrift_jax.wrappers.from_gymnax import from_gymnax

LIMIT = "task.max_steps_in_episode"
CARTPOLE = {"return_range": (0.0, 500.0), "reward_range": (0.0, 1.0)}
BALANCE = Policy(
    "balance",
    lambda key, params: (),
    lambda key, obs, mask, carry: ((3 * obs[2] + obs[3] > 0).astype(jnp.int32), carry),
)


@pytest.fixture
def cartpole():
    return from_gymnax("CartPole-v1", **CARTPOLE)


@pytest.mark.relaxed
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype int64")  # FrozenLake's under x64
@pytest.mark.parametrize(
    "env_id", ["CartPole-v1", "Breakout-MinAtar", "FourRooms-misc", "FrozenLake-misc"]
)
def test_every_step_is_gymnaxs_own_step_with_the_same_key(env_id):
    env, params = from_gymnax(env_id, return_range=(0, 500))
    theirs, defaults = gymnax.make(env_id)
    their_reset, their_step = jax.jit(theirs.reset_env), jax.jit(theirs.step_env)
    choice = np.random.default_rng(0)
    for episode in range(2):
        key = jax.random.key(episode)
        obs, state = env.reset(key, params)
        with jax.enable_x64(False):  # with 64 bits gymnax draws other numbers
            their_obs, their_state = their_reset(key, defaults)
        total = 0.0
        for t in range(30):
            np.testing.assert_array_equal(obs, their_obs)
            chex.assert_trees_all_equal(state.env_state, their_state)
            if bool(env.is_terminal(state, params)):
                break
            key, action = jax.random.key(100 + t), np.int32(choice.integers(env.num_actions))
            obs, state, reward, terminated, truncated, info = env.step(key, state, action, params)
            with jax.enable_x64(False):
                their_obs, their_state, their_reward, their_end, _ = their_step(
                    key, their_state, action, defaults
                )
            total += float(their_reward)
            assert float(reward) == float(their_reward) and float(state.episode_return) == total
            assert bool(terminated) == bool(their_end) and not truncated
            assert not info["invalid_action"]
        assert t > 2  # something was compared


def test_cartpole_keeps_every_promise_of_the_contract(cartpole):
    testing.check_env(*cartpole, num_steps=8)


def test_an_env_cut_by_its_limit_keeps_every_promise_but_that_it_never_truncates():
    env, params = from_gymnax("MountainCar-v0", return_range=(-200, 0))
    trial = testing.Trial(env, override(params, **{LIMIT: 5}), seed=0, num_steps=7)
    broken = {
        testing.check_end: "truncated is True: only an outside limit truncates",
        testing.check_absorbing: "terminated is False after the end",
    }
    for check in testing.CHECKS:
        if check in broken:
            with pytest.raises(testing.ConformanceError, match=broken[check]):
                check(trial)
        else:
            check(trial)


def test_the_time_limit_truncates_and_does_not_terminate(cartpole):
    env, params = cartpole
    outcome, steps = rollout.episode(jax.random.key(0), env, BALANCE, params)
    assert int(outcome.length) == 500 and bool(outcome.finished)
    assert float(outcome.episode_return) == 500 and float(outcome.score) == 1
    assert not steps.terminated.any() and bool(outcome.events[0])
    np.testing.assert_array_equal(steps.state.truncated, np.arange(1, 501) == 500)


def test_an_end_of_the_task_at_the_limit_is_terminated_alone(cartpole):
    env, params = cartpole
    outcome, _ = rollout.episode(jax.random.key(0), env, simple.constant(1), params, 50)
    length = int(outcome.length)
    assert length < 20 and not outcome.events[0]  # the pole falls
    for limit, flags in {length: (True, False), length - 1: (False, True)}.items():
        at_limit = override(params, **{LIMIT: limit})
        outcome, steps = rollout.episode(jax.random.key(0), env, simple.constant(1), at_limit, 50)
        last = steps.state.terminated[limit - 1], steps.state.truncated[limit - 1]
        assert int(outcome.length) == limit and tuple(map(bool, last)) == flags


def test_a_finished_episode_stays_as_it_is_and_pays_nothing(cartpole):
    env, params = cartpole
    for limited in (override(params, **{LIMIT: 3}), params):  # cut; fallen
        _, steps = rollout.episode(jax.random.key(0), env, simple.constant(1), limited, 30)
        end = int(steps.valid.sum()) - 1
        assert end < 20 and (steps.reward[: end + 1] == 1).all()
        last = jax.tree.map(lambda x, end=end: x[end], steps.state)
        after = env.step(jax.random.key(1), last, jnp.int32(0), limited)
        chex.assert_trees_all_equal(after.state, last, strict=True)
        assert after.reward == 0 and bool(env.is_terminal(last, limited))
        assert (after.terminated, after.truncated) == (last.terminated, last.truncated)


@pytest.mark.parametrize("action", [-1, 2, 99])
def test_an_action_out_of_range_has_no_effect_pays_nothing_and_takes_a_step(cartpole, action):
    env, params = cartpole
    obs, state = env.reset(jax.random.key(0), params)
    step = env.step(jax.random.key(1), state, jnp.int32(action), params)
    waited = state.env_state.replace(time=jnp.int32(1))
    chex.assert_trees_all_equal(step.state, state._replace(env_state=waited), strict=True)
    np.testing.assert_array_equal(step.obs, obs)
    assert step.reward == 0 and bool(step.info["invalid_action"])
    once = override(params, **{LIMIT: 1})
    assert bool(env.step(jax.random.key(1), state, jnp.int32(action), once).truncated)


def test_a_batch_goes_on_with_fresh_random_starts_and_tells_both_kinds_of_end(cartpole, inputs):
    env, params = cartpole
    envs, params = BatchAutoReset(EpisodeStats(env)), override(params, **{LIMIT: 12})
    reset_keys, step_keys, actions = inputs(60, 16, num_actions=2)
    first, state = envs.reset(reset_keys, params)

    def step(state, given):
        after = envs.step(given[0], state, given[1], params)
        return after.state, after

    _, steps = jax.jit(lambda s: jax.lax.scan(step, s, (step_keys, actions)))(state)
    ended, cut = (np.asarray(x) for x in (steps.info["final_valid"], steps.truncated))
    assert cut.sum() > 16 and steps.terminated.sum() > 4
    np.testing.assert_array_equal(ended, cut ^ np.asarray(steps.terminated))
    starts = np.concatenate([np.asarray(first), np.asarray(steps.obs)[ended]])
    assert (np.abs(starts) <= 0.05).all() and len(np.unique(starts, axis=0)) == len(starts)
    length = np.asarray(steps.info["episode_length"])
    assert (length[cut] == 12).all() and (length[ended & ~cut] <= 12).all()
    np.testing.assert_array_equal(steps.info["episode_return"][ended], length[ended])
    # The true last observation of a fallen pole is beyond the threshold, no first one is.
    fallen = np.asarray(steps.info["final_observation"])[np.asarray(steps.terminated)]
    assert (np.abs(fallen[:, 2]) > 0.2).all()


def test_a_sweep_plays_the_episodes_of_a_rollout(cartpole):
    env, params = cartpole
    found = sweep(env, simple.random(), params, 7, 20, num_steps=100)
    keys = jax.vmap(episode_key, (None, 0))(root_key(7), jnp.arange(20))
    outcome, _ = jax.vmap(lambda k: rollout.episode(k, env, simple.random(), params, 100))(keys)
    assert found.finished == 20 and len(np.unique(outcome.length)) > 5
    assert found.episode_return.mean == pytest.approx(float(outcome.episode_return.mean()))
    assert found.score.mean == pytest.approx(found.episode_return.mean / 500)
    assert found.mean_length == pytest.approx(found.episode_return.mean)
    assert found.events["truncated"].count == 0
    assert found.histograms["episode_return"]["high"] == 100


def test_the_score_is_the_returns_place_in_the_range_clipped(cartpole):
    env, params = cartpole
    _, state = env.reset(jax.random.key(0), params)
    for low, high, total, score in [
        (0, 500, 125, 0.25),
        (-200, 0, -200, 0),
        (-200, 0, 0, 1),
        (10, 20, 5, 0),
        (10, 20, 25, 1),
    ]:
        scaled = override(params, return_range=(low, high))
        at = state._replace(episode_return=jnp.float32(total))
        assert float(env.grade(at, scaled)) == pytest.approx(score)


def test_one_id_gives_one_env_that_is_compiled_once():
    traced = []

    @partial(jax.jit, static_argnums=0)
    def first_step(env, key, params):
        traced.append(env)
        _, state = env.reset(key, params)
        return env.step(key, state, jnp.int32(0), params)

    (one, its_params), (other, params) = (from_gymnax("CartPole-v1", **CARTPOLE) for _ in range(2))
    assert one == other and hash(one) == hash(other) and one is not other
    first_step(one, jax.random.key(0), its_params)
    first_step(other, jax.random.key(1), override(params, **{"task.gravity": 5.0}))
    assert traced == [one]


def test_an_object_of_gymnax_is_taken_with_its_params():
    theirs, defaults = gymnax.make("Catch-bsuite")
    env, params = from_gymnax(
        theirs, defaults.replace(max_steps_in_episode=4), return_range=(-1, 1)
    )
    assert env == from_gymnax(theirs, return_range=(-1, 1))[0]
    assert env != from_gymnax("Catch-bsuite", return_range=(-1, 1))[0]
    assert env != from_gymnax(theirs, return_range=(-1, 2))[0]
    assert params.max_steps == 4 and params.max_steps.dtype == jnp.int32
    assert (env.action_names, env.observation_names) == (("0", "1", "2"), ())
    obs, _ = env.reset(jax.random.key(0), params)
    assert obs.dtype == jnp.float32  # where gymnax's space says int32
    assert env.observation_space(params) == Box(0.0, 1.0, (10, 5))


def test_spaces_are_gymnaxs_with_one_pair_of_bounds(cartpole):
    env, params = cartpole
    largest = float(np.finfo(np.float32).max)
    assert env.observation_space(params) == Box(-largest, largest, (4,))
    assert env.observation_names == ("0", "1", "2", "3")
    lake, params = from_gymnax("FrozenLake-misc", return_range=(0, 1))
    assert lake.observation_space(params) == Discrete(16) and lake.num_actions == 4
    obs, _ = lake.reset(jax.random.key(0), params)
    assert obs.dtype == jnp.int32 and obs.shape == ()


def test_the_reward_range_defaults_to_zero_and_the_bounds_of_returns():
    for given, expected in {(0, 500): (0, 500), (-200, -90): (-200, 0), (-1, 1): (-1, 1)}.items():
        assert from_gymnax("CartPole-v1", return_range=given)[0].reward_range == expected


def test_a_checked_env_names_a_bad_action_and_a_reward_out_of_range():
    env, params = from_gymnax("CartPole-v1", return_range=(0, 1), reward_range=(0, 0.5))
    _, state = Checked(env).reset(jax.random.key(0), params)
    with pytest.raises(ValueError, match=r"reward is 1\.0: it must be in \[0\.0, 0\.5\]"):
        Checked(env).step(jax.random.key(0), state, "1", params)
    with pytest.raises(ValueError, match="one of 0 0, 1 1"):
        Checked(env).step(jax.random.key(0), state, 2, params)


def test_an_env_made_while_tracing_can_be_used_after():
    made = []

    def trace():
        made.append(from_gymnax("Asterix-MinAtar", return_range=(0, 10))[0])
        return 0

    jax.jit(trace)()
    env, params = from_gymnax("Asterix-MinAtar", return_range=(0, 10))
    assert env == made[0]
    assert env.reset(jax.random.key(0), params)[0].shape == (10, 10, 4)


class TwoArrays(environment.Environment):
    def action_space(self, params):
        return spaces.Discrete(2)

    def observation_space(self, params):
        return spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2)))


def test_what_is_no_env_of_this_contract_is_refused():
    with pytest.raises(ValueError, match=r"Pendulum-v1 has actions in Box\(.*must be Discrete"):
        from_gymnax("Pendulum-v1", return_range=(0, 1))
    with pytest.raises(ValueError, match=r"TwoArrays has observations in Tuple\(.*use a Box or"):
        from_gymnax(TwoArrays(), return_range=(0, 1))
    with pytest.raises(ValueError, match=r"'CartPole-v2' \(did you mean 'CartPole-v1'\?\): use"):
        from_gymnax("CartPole-v2", return_range=(0, 1))
    wrapped = LogWrapper(gymnax.make("CartPole-v1")[0])
    for env in (wrapped, gymnax.make("CartPole-v1"), None, lifedrift_jax.Env()):
        with pytest.raises(TypeError, match=r"env is .*: it must be an Environment of gymnax"):
            from_gymnax(env, return_range=(0, 1))


@pytest.mark.parametrize(
    "bounds",
    [(500, 0), (1, 1), (0, np.inf), (np.nan, 1), (0, 1e39), (0, 1, 2), 5, None, "ab", (0, "x")],
)
def test_a_range_that_is_not_two_rising_numbers_is_refused(bounds):
    with pytest.raises(ValueError, match=r"return_range is .*: use two finite numbers, the lower"):
        from_gymnax("CartPole-v1", return_range=bounds)
    if bounds is not None:
        with pytest.raises(ValueError, match=r"reward_range is .*: use two finite numbers"):
            from_gymnax("CartPole-v1", return_range=(0, 1), reward_range=bounds)


def test_params_are_checked_when_replaced(cartpole):
    with pytest.raises(ValueError, match=r"return_range is .*: use two finite numbers"):
        override(cartpole[1], return_range=(1, 0))
    with pytest.raises(ValueError, match=r"did you mean 'task.gravity'"):
        override(cartpole[1], **{"task.gravit": 1.0})


def test_a_missing_gymnax_gives_one_line_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnax", None)
    monkeypatch.delitem(sys.modules, "lifedrift_jax.wrappers.from_gymnax")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'lifedrift_jax\[gymnax\]'$"):
        importlib.import_module("lifedrift_jax.wrappers.from_gymnax")
