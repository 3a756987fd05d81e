import re
from functools import partial

import chex
import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import lifedrift_jax
from lifedrift_jax.wrappers import AutoReset
from lifedrift_jax.wrappers.gymnasium import GymnasiumEnv, GymnasiumVectorEnv, make_vector

ID = "life_drift/drift_correction-v0"
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


def assert_same_info(ours, theirs, path="info"):
    """Equal entries, values and masks; dtypes may differ."""
    assert ours.keys() == theirs.keys(), path
    for name, value in theirs.items():
        if isinstance(value, dict):
            assert_same_info(ours[name], value, f"{path}/{name}")
        elif value.dtype == object:
            for a, b in zip(ours[name], value, strict=True):
                assert (a is None) == (b is None), f"{path}/{name}"
                np.testing.assert_array_equal(a, b, err_msg=f"{path}/{name}")
        else:
            # A double made of a float32, as in the single env's info, is equal to it.
            np.testing.assert_array_equal(ours[name], value, err_msg=f"{path}/{name}")


@pytest.mark.parametrize("mode", MODES)
def test_it_equals_gymnasiums_own_vector_env_over_single_ones(walk, mode):
    seeds = [3, 5, 7, 11]
    ours = GymnasiumVectorEnv(*walk, num_envs=4, autoreset_mode=mode)
    theirs = SyncVectorEnv([partial(GymnasiumEnv, *walk)] * 4, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"] is mode
    for space in ("action_space", "observation_space"):
        assert getattr(ours, space) == getattr(theirs, space)
        assert getattr(ours, f"single_{space}") == getattr(theirs, f"single_{space}")
    (obs, info), (their_obs, their_info) = ours.reset(seed=seeds), theirs.reset(seed=seeds)
    rng, ends = np.random.default_rng(0), 0
    for t in range(50):
        np.testing.assert_array_equal(obs, their_obs)
        assert obs.dtype == np.float32 and obs in ours.observation_space
        info = dict(info)
        assert info.pop("_reset_step").all() and info.pop("reset_step").shape == (4,)
        assert_same_info(info, their_info)
        if t == 30:
            (obs, info), (their_obs, their_info) = ours.reset(), theirs.reset()
            continue
        actions = rng.integers(0, 2, 4)
        obs, *results, info = ours.step(actions)
        their_obs, *their_results, their_info = theirs.step(actions)
        chex.assert_trees_all_equal(results, their_results)
        ends += int(results[1].sum())
    assert ends > 4


def test_an_int_seed_gives_env_i_every_num_envs_th_episode(walk):
    envs = GymnasiumVectorEnv(*walk, num_envs=3)
    single = GymnasiumEnv(*walk)
    for lap in range(3):
        obs, info = envs.reset(seed=9) if lap == 0 else envs.reset()
        np.testing.assert_array_equal(info["seed"], [9] * 3)
        np.testing.assert_array_equal(info["episode_index"], np.arange(3) + 3 * lap)
        single.reset(seed=9)
        starts = [single.reset(seed=9)[0], *(single.reset()[0] for _ in range(8))]
        np.testing.assert_array_equal(obs, starts[3 * lap : 3 * lap + 3])


def test_neighbouring_seeds_share_no_stream():
    envs = make_vector(ID, num_envs=64)

    def first_steps(seed):
        envs.reset(seed=seed)
        return {row.tobytes() for row in envs.step(np.zeros(64, int))[0]}

    zero, one = first_steps(0), first_steps(1)
    assert len(zero) == len(one) == 64 and not zero & one
    assert first_steps(0) == zero


def test_an_env_of_a_list_of_seeds_can_be_played_alone():
    envs, alone = make_vector(ID, num_envs=3), make_vector(ID, num_envs=1)
    envs.reset(seed=[3, 5, 7])
    alone.reset(seed=[5])
    for _ in range(25):
        together, single = envs.step([0, 1, 2]), alone.step([1])
        for a, b in zip(together[:4], single[:4], strict=True):
            np.testing.assert_array_equal(a[1], b[0])


def test_the_step_after_the_end_ignores_the_action_and_is_marked():
    envs = make_vector(ID, num_envs=2)
    first, info = envs.reset(seed=0)
    assert not info["reset_step"].any()
    for _ in range(9):
        _, _, terminated, _, info = envs.step([1, 1])
        assert not terminated.any() and not info["reset_step"].any()
    _, _, terminated, truncated, info = envs.step([1, 1])
    assert terminated.all() and not truncated.any() and not info["reset_step"].any()
    assert "final_obs" not in info and (info["score"] > 0.9).all()
    after = []
    for action in (1, "no such action"):
        envs.reset(seed=0)
        for _ in range(10):
            envs.step([1, 1])
        after.append(envs.step([action, action]))
    obs, reward, terminated, truncated, info = after[0]
    np.testing.assert_array_equal(obs, first)
    assert not reward.any() and not terminated.any() and not truncated.any()
    assert info["reset_step"].all() and not info["step"].any()
    np.testing.assert_array_equal(info["episode_index"], [2, 3])
    chex.assert_trees_all_equal(after[0], after[1])
    assert not envs.step([1, 1])[-1]["reset_step"].any()


def test_in_same_step_mode_no_step_is_lost():
    envs = make_vector(ID, num_envs=2, autoreset_mode="SameStep")
    first, _ = envs.reset(seed=0)
    for episode in range(3):
        for t in range(10):
            obs, reward, terminated, _, info = envs.step([1, 1])
            assert not info["reset_step"].any() and reward.all()
            assert terminated.all() == ("final_obs" in info) == (t == 9)
        np.testing.assert_array_equal(obs, first)
        assert (np.stack(info["final_obs"])[:, 6] == 1).all()
        final = info["final_info"]
        np.testing.assert_array_equal(final["episode_index"], [2 * episode, 2 * episode + 1])
        assert (final["step"] == 10).all() and (final["score"] > 0.9).all()
        assert (info["score"] < 0.5).all() and not info["step"].any()


@pytest.mark.parametrize("mode", MODES)
def test_as_many_resets_as_done_flags_over_three_horizons(mode):
    envs = make_vector(ID, num_envs=4, autoreset_mode=mode)
    obs, _ = envs.reset(seed=0)
    fraction, done = [obs[:, 6]], []
    for _ in range(33):
        obs, _, terminated, truncated, _ = envs.step([0, 1, 2, 3])
        fraction.append(obs[:, 6])
        done.append(terminated | truncated)
    resets = (np.diff(fraction, axis=0) < 0).sum()
    assert resets == np.sum(done) == 12


def test_gymnasiums_statistics_wrapper_agrees_with_the_score_keeping(walk):
    envs = RecordEpisodeStatistics(gymnasium.make_vec(f"lifedrift/{ID.replace('/', '.')}", 2))
    envs.reset(seed=0)
    total = np.zeros(2)
    for _ in range(10):
        _, reward, _, _, info = envs.step(np.array([1, 2]))
        total += reward
    np.testing.assert_array_equal(info["episode"]["l"], [10, 10])
    np.testing.assert_allclose(info["episode"]["r"], total, rtol=1e-6)


def test_make_vec_takes_a_limit_and_overrides():
    envs = gymnasium.make_vec(
        f"lifedrift/{ID.replace('/', '.')}", 2, max_episode_steps=4, max_steps=5
    )
    assert isinstance(envs, GymnasiumVectorEnv) and envs.num_envs == 2
    envs.reset(seed=0)
    flags = [tuple(x.all() for x in envs.step([0, 0])[2:4]) for _ in range(4)]
    assert flags == [(False, False)] * 3 + [(False, True)]


@pytest.mark.parametrize("wrong", [6, -1, 2.7, float("nan"), "6", True, None])
def test_a_wrong_action_names_its_env_and_changes_nothing(wrong):
    envs = make_vector(ID, num_envs=3)
    envs.reset(seed=0)
    before = envs.state
    with pytest.raises(ValueError, match=re.escape(f"env 1: action is {wrong!r}: use")):
        envs.step([0, wrong, 0])
    assert envs.state is before
    got = envs.step(["suggest_task", 1, np.int64(2)])
    envs.reset(seed=0)
    chex.assert_trees_all_equal(got, envs.step(np.array([0, 1, 2])))


@pytest.mark.parametrize("kind", [list, np.array, jax.numpy.array])
def test_an_action_outside_the_mask_of_its_env_is_refused(walk, kind):
    envs = GymnasiumVectorEnv(*walk, num_envs=8)
    obs, info = envs.reset(seed=0)
    leap = info["action_mask"][:, 2]
    np.testing.assert_array_equal(leap, obs[:, 0] < 0.5)
    assert 0 < leap.sum() < 8
    first = int(np.flatnonzero(leap == 0)[0])
    with pytest.raises(ValueError, match=rf"env {first}: action is .*use .* of 0 left, 1 right$"):
        envs.step(kind([2] * 8))
    _, reward, *_ = envs.step(kind([2 if legal else 0 for legal in leap]))
    np.testing.assert_array_equal(reward > 0, leap == 1)


@pytest.mark.parametrize("actions", [[0], [0, 0, 0], np.int64(0), 0, np.zeros((2, 2), int)])
def test_actions_of_another_shape_are_refused(actions):
    envs = make_vector(ID, num_envs=2)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"give one for each of 2 envs|env 0: action is"):
        envs.step(actions)


def test_arguments_that_make_no_sense_are_named(walk):
    envs = GymnasiumVectorEnv(*walk, num_envs=3)
    with pytest.raises(ResetNeeded):
        envs.step([0, 0, 0])
    assert envs.state is None
    for seed, message in (
        ([1, 2], "seed has 2 entries: it must have num_envs = 3"),
        ([1, 2, -3], "seed is -3"),
        ([1, None, 3], "seed is None"),
        (2**32, "seed is 4294967296"),
    ):
        with pytest.raises(ValueError, match=message):
            envs.reset(seed=seed)
    with pytest.raises(ValueError, match="options has 'sede'"):
        envs.reset(options={"sede": 1})
    for kwargs, message in (
        ({"num_envs": 0}, "num_envs is 0"),
        ({"autoreset_mode": "Disabled"}, "use 'NextStep' or 'SameStep'"),
        ({"autoreset_mode": AutoresetMode.DISABLED}, "use 'NextStep' or 'SameStep'"),
        ({"render_mode": "human"}, "render_mode is 'human'"),
    ):
        with pytest.raises(ValueError, match=message):
            GymnasiumVectorEnv(*walk, **kwargs)
    with pytest.raises(ValueError, match="AutoReset resets by itself"):
        GymnasiumVectorEnv(AutoReset(walk[0]), walk[1])


def test_without_any_seed_one_is_drawn_and_told(walk):
    envs = GymnasiumVectorEnv(*walk, num_envs=2)
    obs, info = envs.reset()
    again, _ = envs.reset(seed=int(info["seed"][0]))
    np.testing.assert_array_equal(obs, again)
    assert GymnasiumVectorEnv(*walk, num_envs=2).reset()[1]["seed"][0] != info["seed"][0]


def test_observations_and_infos_are_fresh_copies(walk):
    envs = GymnasiumVectorEnv(*walk, num_envs=2)
    first, info = envs.reset(seed=0)
    kept = first.copy()
    obs, reward, *_, step_info = envs.step([0, 0])
    obs[:], reward[:] = -1, -1
    for value in step_info.values():
        value[:] = 0
    np.testing.assert_array_equal(first, kept)
    assert envs.step([0, 0])[0].min() >= 0
    assert info.keys() == step_info.keys()


def test_one_trace_serves_all_steps(walk):
    env, params = walk
    traces = []

    class Counted(type(env)):
        def transition(self, *args):
            traces.append(1)
            return super().transition(*args)

    for seed in (0, [1, 2]):
        envs = GymnasiumVectorEnv(Counted(), params, num_envs=2)
        for _ in range(2):
            envs.reset(seed=seed)
            for _ in range(15):
                envs.step([0, 1])
            envs.reset()
            envs.step(np.array([0, 1]))
    assert len(traces) == 1


def test_states_are_batched(walk):
    envs = GymnasiumVectorEnv(*walk, num_envs=3)
    envs.reset(seed=0)
    assert {leaf.shape for leaf in jax.tree.leaves(envs.state)} == {(3,)}
    assert lifedrift_jax.make(ID)[0] == make_vector(ID).env
