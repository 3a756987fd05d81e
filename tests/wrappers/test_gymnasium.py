import importlib
import re
import sys
from dataclasses import replace

import chex
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import lifedrift_jax
from lifedrift_jax import rollout
from lifedrift_jax.baselines import simple
from lifedrift_jax.rng import episode_key, root_key
from lifedrift_jax.wrappers import AutoReset, EpisodeStats, TimeLimit
from lifedrift_jax.wrappers.gymnasium import GymnasiumEnv, make, register_all

IDS = register_all()
WRONG_ACTIONS = [6, -1, 99, -7, 2.7, float("nan"), "6", "idle", True, np.True_, None, [1], 2**70]


@pytest.fixture(scope="module")
def adapter():
    return make("life_drift/drift_correction-v0")


@pytest.fixture(scope="module")
def recorded():
    """`recorded(seed, index)`: an episode of drift_correction played by `rollout`."""
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0")

    def play(seed: int, index: int):
        key = episode_key(root_key(seed), index)
        return rollout.episode(key, env, simple.random(), params)

    return play


def assert_plays(adapter, recorded, first_obs):
    """The episode that `adapter` is at the start of equals the recorded one."""
    outcome, transitions = recorded
    obs = first_obs
    total = np.float32(0)
    for t, action in enumerate(np.asarray(transitions.action)):
        np.testing.assert_array_equal(obs, transitions.obs[t])
        obs, reward, terminated, truncated, info = adapter.step(action)
        total += np.float32(reward)
        assert reward == transitions.reward[t]
        assert terminated == bool(transitions.terminated[t]) and truncated is False
        state = jax.tree.map(lambda x, t=t: x[t], transitions.state)
        chex.assert_trees_all_equal(adapter.state, state, strict=True)
    assert terminated and info["score"] == outcome.score
    assert total == outcome.episode_return and info["step"] == outcome.length


@pytest.mark.parametrize("gymnasium_id", IDS)
def test_gymnasiums_checker_passes_without_a_warning(gymnasium_id):
    check_env(gymnasium.make(gymnasium_id).unwrapped)


def test_ids_hold_the_family_and_can_be_made_by_naming_the_module():
    ours = lifedrift_jax.registered()
    assert list(IDS) == [f"lifedrift/{env_id.replace('/', '.')}" for env_id in ours]
    gymnasium_id = "lifedrift/life_drift.long_term_stability-v0"
    assert gymnasium_id in IDS and gymnasium_id in gymnasium.registry
    env = gymnasium.make(f"lifedrift_jax.wrappers.gymnasium:{gymnasium_id}", max_steps=3)
    env.reset(seed=0)
    ends = [env.step(5)[2] for _ in range(3)]
    assert ends == [False, False, True]


def test_a_new_id_is_registered_by_a_second_call(monkeypatch):
    monkeypatch.setattr(lifedrift_jax.registry, "_REGISTRY", dict(lifedrift_jax.registry._REGISTRY))
    lifedrift_jax.register("my_family/drift_correction-v3", "lifedrift_jax.life_drift:make")
    assert "lifedrift/my_family.drift_correction-v3" in register_all()
    spec = gymnasium.registry.pop("lifedrift/my_family.drift_correction-v3")
    assert spec.kwargs == {"env_id": "my_family/drift_correction-v3"}


def test_overrides_are_checked_as_in_make():
    with pytest.raises(ValueError, match="did you mean 'cascade_threshold'"):
        gymnasium.make(IDS[0], cascade_treshold=0.9)


def test_reset_with_a_seed_plays_episode_0_and_later_resets_the_next_ones(adapter, recorded):
    for _ in range(2):
        for index in range(3):
            obs, info = adapter.reset(seed=7) if index == 0 else adapter.reset()
            assert (info["seed"], info["episode_index"], info["step"]) == (7, index, 0)
            assert_plays(adapter, recorded(7, index), obs)


def test_a_reset_in_mid_episode_begins_a_whole_one(adapter, recorded):
    adapter.reset(seed=1)
    for _ in range(4):
        adapter.step(1)
    obs, info = adapter.reset()
    assert info["episode_index"] == 1
    assert_plays(adapter, recorded(1, 1), obs)


def test_seeds_give_other_draws_and_the_same_seed_the_same():
    def first_obs(seed):
        env = make("life_drift/drift_correction-v0")
        env.reset(seed=seed)
        return env.step(0)[0].tobytes()

    seen = [first_obs(seed) for seed in range(16)]
    assert len(set(seen)) == 16
    assert [first_obs(seed) for seed in range(4)] == seen[:4]


def test_without_any_seed_one_is_drawn_and_told(adapter, recorded):
    seeds = []
    for _ in range(3):
        env = make("life_drift/drift_correction-v0")
        obs, info = env.reset()
        seeds.append(info["seed"])
        assert_plays(env, recorded(info["seed"], 0), obs)
    assert len(set(seeds)) == 3


def test_two_adapters_share_nothing(recorded):
    one, two = (make("life_drift/drift_correction-v0") for _ in range(2))
    obs, _ = one.reset(seed=3)
    two.reset(seed=4)
    for _ in range(5):
        two.step(2)
    two.reset()
    assert_plays(one, recorded(3, 0), obs)


@pytest.mark.parametrize("seed", [-1, 2**32, 2**40, 1.5, "7", True, float("nan")])
def test_a_seed_outside_32_bits_is_refused_and_changes_nothing(adapter, recorded, seed):
    first, _ = adapter.reset(seed=11)
    with pytest.raises(ValueError, match=re.escape(f"seed is {seed!r}")):
        adapter.reset(seed=seed)
    assert_plays(adapter, recorded(11, 0), first)
    _, info = adapter.reset()
    assert (info["seed"], info["episode_index"]) == (11, 1)


def test_an_unknown_keyword_or_option_is_refused(adapter):
    with pytest.raises(TypeError, match="sede"):
        adapter.reset(sede=3)
    with pytest.raises(ValueError, match="options has 'sede'"):
        adapter.reset(options={"sede": 3})
    adapter.reset(seed=0, options={})


def test_results_are_python_values_and_observations_fresh_copies(adapter):
    obs, info = adapter.reset(seed=0)
    result = adapter.step(0)
    assert len(result) == 5
    after, reward, terminated, truncated, step_info = result
    assert type(reward) is float and type(terminated) is bool and type(truncated) is bool
    for x in (obs, after):
        assert type(x) is np.ndarray and x.dtype == np.float32 and x in adapter.observation_space
    kept = obs.copy()
    after[:] = -1
    np.testing.assert_array_equal(obs, kept)
    assert adapter.step(0)[0].min() >= 0
    assert info.keys() == step_info.keys()
    assert {name: type(x) for name, x in info.items()} == {
        "invalid_action": bool,
        "seed": int,
        "episode_index": int,
        "step": int,
        "score": float,
        "action_mask": np.ndarray,
    }
    assert adapter.action_space.sample(info["action_mask"]) in adapter.action_space


@pytest.mark.parametrize(
    "action", [1, np.int64(1), np.uint8(1), np.array(1), "prioritize_goal", "jax"]
)
def test_kinds_of_the_same_action_agree(adapter, action):
    adapter.reset(seed=0)
    expected = adapter.step(1)
    adapter.reset(seed=0)
    got = adapter.step(jnp.int32(1) if action == "jax" else action)
    chex.assert_trees_all_equal(got, expected)


@pytest.mark.parametrize("action", WRONG_ACTIONS)
def test_a_wrong_action_is_an_error_with_the_legal_ones_and_changes_nothing(
    adapter, recorded, action
):
    obs, _ = adapter.reset(seed=2)
    before = adapter.state
    with pytest.raises(ValueError, match=re.escape(f"action is {action!r}")) as error:
        adapter.step(action)
    assert all(name in str(error.value) for name in adapter.env.action_names)
    assert adapter.state is before
    assert_plays(adapter, recorded(2, 0), obs)


def test_a_step_before_reset_or_after_the_end_is_an_error(recorded):
    env = make("life_drift/drift_correction-v0")
    assert env.state is None
    with pytest.raises(ResetNeeded, match=r"call reset\(\) before the first step"):
        env.step(0)
    obs, _ = env.reset(seed=5)
    assert_plays(env, recorded(5, 0), obs)
    before = env.state
    with pytest.raises(ResetNeeded, match="the episode has ended"):
        env.step(0)
    assert env.state is before


@pytest.mark.parametrize("gymnasium_id", IDS)
def test_terminated_comes_at_the_end_and_not_before(gymnasium_id):
    env = gymnasium.make(gymnasium_id)
    horizon = int(env.unwrapped.params.max_steps)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(5):
        flags = []
        while not flags or flags[-1] == (False, False):
            flags.append(env.step(env.action_space.sample())[2:4])
        assert flags[-1] == (True, False) and len(flags) <= horizon
        assert len(flags) == horizon or "life_drift" not in gymnasium_id
        env.reset()


def test_an_outside_limit_is_truncated():
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0")
    ours = GymnasiumEnv(EpisodeStats(TimeLimit(env, 6)), params)
    theirs = gymnasium.make(IDS[0], max_episode_steps=6)
    for limited in (ours, theirs):
        limited.reset(seed=0)
        steps = [limited.step(1) for _ in range(6)]
        assert [step[2:4] for step in steps] == [(False, False)] * 5 + [(False, True)]
        assert steps[-1][4]["step"] == 6
    with pytest.raises(ResetNeeded, match="the episode has ended"):
        ours.step(1)


def test_an_env_that_resets_by_itself_and_a_render_mode_are_refused():
    env, params = lifedrift_jax.make("life_drift/drift_correction-v0")
    with pytest.raises(ValueError, match="AutoReset resets by itself"):
        GymnasiumEnv(AutoReset(env), params)
    with pytest.raises(ValueError, match="render_mode is 'human'"):
        GymnasiumEnv(env, params, render_mode="human")


def test_observations_of_extreme_states_lie_in_the_space(adapter):
    adapter.reset(seed=0)
    env, params = adapter.env, adapter.params
    for extreme in (0.0, 1.0):
        for step in (0, 10):
            values = {name: jnp.float32(extreme) for name in env.variable_names}
            state = replace(adapter.state, **values, step=jnp.int32(step))
            assert np.array(env.observe(state, params)) in adapter.observation_space


def test_64_bit_mode_changes_nothing(recorded):
    with jax.enable_x64(True):
        env = make("life_drift/drift_correction-v0")
        env.reset(seed=8)
        obs, _ = env.reset()
        assert_plays(env, recorded(8, 1), obs)


def test_one_trace_serves_all_episodes_and_adapters(walk):
    env, params = walk
    traces = []

    class Counted(type(env)):
        def transition(self, *args):
            traces.append(1)
            return super().transition(*args)

    for seed in range(3):
        adapter = GymnasiumEnv(Counted(), params)
        for _ in range(2):
            adapter.reset(seed=seed)
            adapter.step(0)
            adapter.reset()
            adapter.step(np.int64(1))
    assert len(traces) == 1


def test_a_missing_gymnasium_gives_one_line_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "lifedrift_jax.wrappers.gymnasium")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'lifedrift_jax\[gym\]'$"):
        importlib.import_module("lifedrift_jax.wrappers.gymnasium")


def test_samples_of_the_action_space_are_legal():
    env = make("task_flow/hard-v0")
    env.action_space.seed(0)
    for seed in range(5):
        _, info = env.reset(seed=seed)
        terminated = False
        while not terminated:
            action = env.action_space.sample()
            assert info["action_mask"][action]
            _, _, terminated, _, info = env.step(action)
