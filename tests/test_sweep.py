"""Sweeps: the same episodes for any chunking, honest statistics, files that survive kills."""

import dataclasses
import json
import subprocess
import sys

import chex
import jax
import numpy as np
import pyarrow.parquet
import pytest

import lifedrift_jax
from lifedrift_jax import summary
from lifedrift_jax.baselines.simple import constant, random
from lifedrift_jax.chunk import play_chunk
from lifedrift_jax.rng import uniform_pair
from lifedrift_jax.sweep import outcomes, sweep
from lifedrift_jax.wrappers import AutoReset, TimeLimit

ID = "life_drift/energy_balance-v0"


@pytest.fixture(scope="module")
def task():
    return lifedrift_jax.make(ID)


def rows(folder):
    table = pyarrow.parquet.read_table(folder / "episodes").to_pydict()
    return {name: np.asarray(column) for name, column in table.items()}


@pytest.mark.parametrize("chunk_size", [1, 7, 64, 333])
def test_every_episode_is_the_same_for_any_chunk_size(task, chunk_size):
    env, params = task
    count = 40 if chunk_size == 1 else 1_000
    reference = outcomes(env, random(), params, seeds=5, num_episodes=1_000)
    chunked = outcomes(env, random(), params, 5, count, chunk_size=chunk_size)
    chex.assert_trees_all_equal(chunked, jax.tree.map(lambda x: x[:count], reference))


DEVICES = """
import sys, jax, lifedrift_jax
from lifedrift_jax.baselines.simple import random
from lifedrift_jax.sweep import sweep
env, params = lifedrift_jax.make(sys.argv[1])
assert jax.local_device_count() == 4
for count in (1, 2, 4):
    sweep(env, random(), params, 5, 1_000, chunk_size=333, out=f"{sys.argv[2]}/{count}",
          rows=True, devices=jax.devices()[:count])
sweep(env, random(), params, 5, 1_000, chunk_size=333, out=f"{sys.argv[2]}/all", rows=True)
"""


def test_every_episode_is_the_same_on_1_2_and_4_devices(task, tmp_path, clean_environ):
    env, params = task
    environ = clean_environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    command = [sys.executable, "-W", "error", "-c", DEVICES, ID, str(tmp_path)]
    subprocess.run(command, check=True, env=environ)
    reference = outcomes(env, random(), params, seeds=5, num_episodes=1_000)
    for name in ("1", "2", "4", "all"):
        table = rows(tmp_path / name)
        np.testing.assert_array_equal(table["index"], np.arange(1_000))
        np.testing.assert_array_equal(table["score"], reference.score)
        np.testing.assert_array_equal(table["episode_return"], reference.episode_return)


def test_an_array_of_seeds_plays_episode_0_of_each(task):
    env, params = task
    several = outcomes(env, random(), params, seeds=[3, 5, 7, 2**32 - 1])
    for i, seed in enumerate((3, 5, 7, 2**32 - 1)):
        alone = outcomes(env, random(), params, seeds=seed, num_episodes=1)
        chex.assert_trees_all_equal(jax.tree.map(lambda x, i=i: x[i : i + 1], several), alone)
    assert len(set(several.score)) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": -1}, "seed is -1"),
        ({"seeds": 2**32}, "seed is 4294967296"),
        ({"seeds": [0, 2**32]}, "4294967296"),
        ({"seeds": 0.5}, "seed is 0.5"),
        ({"seeds": [1, 2], "num_episodes": 3}, "num_episodes is 3 but seeds has 2"),
        ({"seeds": []}, "seeds has shape"),
        ({"num_episodes": 0}, "num_episodes is 0"),
        ({"num_episodes": 2**32 + 1}, "num_episodes is 4294967297"),
        ({"num_episodes": 8, "chunk_size": 0}, "chunk_size is 0"),
        ({"num_episodes": 8, "num_steps": 0}, "num_steps is 0"),
        ({"num_episodes": 8, "rows": True}, "out is None"),
    ],
)
def test_wrong_arguments_are_refused_by_name(task, arguments, message):
    env, params = task
    with pytest.raises(ValueError, match=message):
        sweep(env, random(), params, **arguments)


def test_statistics_equal_those_of_the_episodes(task):
    env, params = task
    played = outcomes(env, random(), params, seeds=1, num_episodes=5_000)
    found = sweep(env, random(), params, 1, 5_000, chunk_size=777)
    for name, values in (("score", played.score), ("episode_return", played.episode_return)):
        estimate, values = getattr(found, name), values.astype(np.float64)
        assert estimate.count == 5_000
        np.testing.assert_allclose(estimate.mean, values.mean(), atol=1e-6)
        np.testing.assert_allclose(estimate.sd, values.std(ddof=1), rtol=1e-5)
        np.testing.assert_allclose(estimate.standard_error, estimate.sd / 5_000**0.5)
        assert estimate.low == values.min() and estimate.high == values.max()
        for level, value in estimate.quantiles.items():
            gap = abs(value - np.quantile(values, float(level)))
            assert gap <= estimate.quantile_error
    assert found.events["cascade"].count == played.events[0].sum()
    assert sum(found.histograms["score"]["counts"]) == 5_000
    np.testing.assert_allclose(sum(found.actions.values()), 1)


def test_step_statistics_equal_those_of_the_trajectories(task):
    env, params = task
    keys = [lifedrift_jax.episode_key(lifedrift_jax.root_key(1), i) for i in range(200)]
    play = jax.vmap(lambda k: lifedrift_jax.rollout.episode(k, env, random(), params))
    _, steps = play(jax.numpy.stack(keys))
    found = sweep(env, random(), params, 1, 200, chunk_size=77)
    for name in env.variable_names:
        values = np.asarray(getattr(steps.state, name), np.float64)
        assert found.steps[name]["count"] == [200] * 16
        np.testing.assert_allclose(found.steps[name]["mean"][1:], values.mean(0), atol=1e-6)
        np.testing.assert_allclose(found.steps[name]["sd"][1:], values.std(0, ddof=1), atol=1e-5)
        start = params.start[env.variable_names.index(name)]
        np.testing.assert_allclose(found.steps[name]["mean"][0], start, atol=1e-6)
        np.testing.assert_allclose(found.steps[name]["sd"][0], 0, atol=1e-3)
    chosen = np.bincount(np.asarray(steps.action).ravel(), minlength=6) / steps.action.size
    np.testing.assert_allclose(list(found.actions.values()), chosen, atol=1e-12)


def test_unfinished_episodes_are_counted_and_left_out(task):
    env, params = task
    found = sweep(env, random(), params, 0, 50, num_steps=8)
    assert (found.episodes, found.finished, found.unfinished) == (50, 0, 50)
    assert found.score.mean is None and found.episode_return.interval is None
    assert found.mean_length is None and found.events["cascade"].share is None
    json.dumps(found.to_dict(), allow_nan=False)


def test_one_episode_has_a_mean_and_no_spread(task):
    env, params = task
    found = sweep(env, random(), params, 0, 1)
    assert found.score.count == 1 and found.score.mean is not None and found.score.sd is None


def test_one_program_serves_all_chunks_and_all_params(task):
    env, _ = task
    before = play_chunk._cache_size()
    for threshold in (0.8, 0.9):
        _, params = lifedrift_jax.make(ID, cascade_threshold=threshold)
        sweep(env, random(), params, 0, 1_000, chunk_size=321)
    assert play_chunk._cache_size() == before + 1


class KilledError(Exception):
    pass


def stop_after(chunks):
    def progress(done, total):
        nonlocal chunks
        chunks -= 1
        if not chunks:
            raise KilledError

    return progress


def test_a_killed_sweep_resumes_to_the_same_bytes_and_redoes_nothing(task, tmp_path):
    env, params = task
    arguments = {"seeds": 9, "num_episodes": 1_000, "chunk_size": 64, "rows": True}
    sweep(env, random(), params, out=tmp_path / "whole", **arguments)
    for chunks in (3, 5, 1):
        with pytest.raises(KilledError):
            progress = stop_after(chunks)
            sweep(env, random(), params, out=tmp_path / "cut", progress=progress, **arguments)
        assert not (tmp_path / "cut/summary.json").exists()
    done = []
    sweep(
        env, random(), params, out=tmp_path / "cut", progress=lambda *x: done.append(x), **arguments
    )
    assert len(done) == 16 - 9 and done[-1] == (1_000, 1_000)
    for name in ("summary.json", "sweep.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    for name, column in rows(tmp_path / "whole").items():
        np.testing.assert_array_equal(rows(tmp_path / "cut")[name], column)


def test_a_finished_sweep_is_not_played_again(task, tmp_path):
    env, params = task
    first = sweep(env, random(), params, 0, 300, chunk_size=100, out=tmp_path)
    done = []
    again = sweep(
        env, random(), params, 0, 300, chunk_size=100, out=tmp_path,
        progress=lambda *x: done.append(x),
    )  # fmt: skip
    assert again.to_dict() == first.to_dict() and done == []


def test_a_folder_of_another_sweep_is_refused_and_left_alone(task, tmp_path):
    env, params = task
    sweep(env, random(), params, 0, 100, out=tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(ValueError, match="policy was 'random', now 'constant:2'"):
        sweep(env, constant(2), params, 0, 100, out=tmp_path)
    with pytest.raises(ValueError, match="num_episodes was 100, now 200"):
        sweep(env, random(), params, 0, 200, out=tmp_path)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_damaged_totals_are_named(task, tmp_path):
    env, params = task
    sweep(env, random(), params, 0, 100, out=tmp_path)
    (tmp_path / "totals.npz").write_bytes(b"half a file")
    with pytest.raises(ValueError, match=r"totals\.npz is damaged"):
        sweep(env, random(), params, 0, 100, out=tmp_path)


def test_summary_holds_no_clock_times(task, tmp_path):
    env, params = task
    sweep(env, random(), params, 0, 100, out=tmp_path)
    assert "seconds" not in (tmp_path / "summary.json").read_text()
    assert json.loads((tmp_path / "timing.json").read_text())["seconds"] > 0


def test_moments_of_parts_merge_to_those_of_the_whole():
    values = np.random.default_rng(0).normal(5, 0.1, 1_000)

    def of(x):
        return summary.Moments(np.int64(len(x)), x.mean(), ((x - x.mean()) ** 2).sum())

    nothing = summary.Moments(np.int64(0), np.float64(0), np.float64(0))
    merged = summary.merge_moments(summary.merge_moments(nothing, of(values[:10])), of(values[10:]))
    np.testing.assert_allclose(merged, of(values), rtol=1e-12)


def test_wilson_interval_of_a_known_case():
    """8 of 10: Wilson's 95% interval is (.4902, .9433) (Newcombe 1998, method 3)."""
    found = summary.share(8, 10)
    np.testing.assert_allclose(found.interval, (0.4902, 0.9433), atol=1e-4)
    assert summary.share(0, 0).share is None and summary.share(0, 5).interval[0] == 0


def test_a_policy_that_changed_under_its_name_is_another_sweep(task, tmp_path):
    env, params = task

    def always(action):
        return lifedrift_jax.Policy(
            "mine", lambda key, params: (), lambda key, obs, mask, carry: (action, carry)
        )

    sweep(env, always(jax.numpy.int32(4)), params, 0, 50, out=tmp_path)
    with pytest.raises(ValueError, match="holds another sweep: program was"):
        sweep(env, always(jax.numpy.int32(2)), params, 0, 50, out=tmp_path)


def test_an_env_of_another_size_is_another_sweep(task, tmp_path):
    env, params = task
    short = sweep(TimeLimit(env, 5), random(), params, 0, 50, out=tmp_path)
    assert short.mean_length == 5
    with pytest.raises(ValueError, match="holds another sweep: program was"):
        sweep(TimeLimit(env, 8), random(), params, 0, 50, out=tmp_path)


def test_invalid_choices_are_counted_and_are_no_action(task):
    env, params = task
    found = sweep(env, constant(9), params, 0, 50)
    assert found.invalid_actions == 1 and set(found.actions.values()) == {0}
    assert sweep(env, random(), params, 0, 50).invalid_actions == 0


def test_an_env_without_variables_or_events_is_swept():
    found = sweep(*bare(), 0, 200)
    assert found.steps == {} and found.events == {} and found.score.count == 200


@dataclasses.dataclass(frozen=True)
class Coin(lifedrift_jax.Env):
    """Three tosses; the score is the share of heads. Nothing to plot."""

    observation_names = ("time",)
    action_names = ("toss",)

    def start(self, key, params):
        return {"time": jax.numpy.int32(0), "heads": jax.numpy.float32(0)}

    def draw(self, key):
        return uniform_pair(key, 0)[0]

    def transition(self, state, action, noise, params):
        head = (noise < 0.5).astype(jax.numpy.float32)
        return {"time": state["time"] + 1, "heads": state["heads"] + head}, head

    def is_terminal(self, state, params):
        return state["time"] >= params.max_steps

    def observe(self, state, params):
        return state["time"].astype(jax.numpy.float32)[None]

    def score(self, state, params):
        return state["heads"] * (1 / 3)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CoinParams:
    max_steps: jax.Array


def bare():
    return Coin(), random(), CoinParams(jax.numpy.int32(3))


def test_what_has_no_episodes_of_its_own_is_refused(task):
    env, params = task
    with pytest.raises(ValueError, match="resets by itself: sweep the env inside"):
        sweep(AutoReset(env), random(), params, 0, 10)
    stacked = jax.tree.map(lambda *x: jax.numpy.stack(x), params, params)
    with pytest.raises(ValueError, match=r"params are stacked, max_steps has shape \(2,\)"):
        sweep(env, random(), stacked, 0, 10)


def test_lost_or_damaged_rows_are_named(task, tmp_path):
    env, params = task
    arguments = {"seeds": 0, "num_episodes": 60, "chunk_size": 20, "rows": True, "out": tmp_path}
    sweep(env, random(), params, **arguments)
    (tmp_path / "episodes/000000000020.parquet").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"000000000020\.parquet is lost or damaged"):
        sweep(env, random(), params, **arguments)
    (tmp_path / "episodes/000000000020.parquet").unlink()
    with pytest.raises(ValueError, match=r"000000000020\.parquet is lost or damaged"):
        sweep(env, random(), params, **arguments)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"null", b"{"])
def test_a_damaged_description_is_named(task, tmp_path, content):
    env, params = task
    (tmp_path / "sweep.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"sweep\.json is damaged"):
        sweep(env, random(), params, 0, 10, out=tmp_path)


def test_a_description_written_in_another_style_is_the_same_sweep(task, tmp_path):
    env, params = task
    first = sweep(env, random(), params, 0, 50, out=tmp_path)
    file = tmp_path / "sweep.json"
    file.write_text(json.dumps(json.loads(file.read_text())))
    assert sweep(env, random(), params, 0, 50, out=tmp_path) == first
