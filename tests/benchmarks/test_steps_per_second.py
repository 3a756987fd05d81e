"""The speed benchmark runs, and what it compares with ours computes the same."""

import ctypes
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import lifedrift_jax
from benchmarks import numpy_life_drift
from benchmarks.contestants import GCC
from lifedrift_jax.life_drift import noise_from_uniforms, tables

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parents[1] / "golden" / "life_drift_reference.json"
needs_gcc = pytest.mark.skipif(shutil.which(GCC[0]) is None, reason="no gcc on the path")

# Group -> mean score of random play and its tolerance, where it is not Life Drift that is played.
SCORES = {"TaskFlow": (0.035, 0.02), "LifeStack": (0.36, 0.06)}

# Plays episodes of limit.c with given actions and draws: all lanes alike, lane 0 is kept.
REPLAY = """
#include "limit.c"
void replay(int num, const int *actions, const float *draws, const float *weights,
            float *values, float *rewards, float *grades)
{
    fill_tables();
    for (int e = 0; e < num; e++) {
        State s, next;
        Record r;
        vi tired;
        start(&s, &r);
        for (int step = 1; step <= STEPS; step++, actions++, draws += 8, values += AXES) {
            vf u[8];
            for (int j = 0; j < 8; j++) u[j] = splat(draws[j] * 65536);
            Draws d = {u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7]};
            next = move(s, change((vi){0} + *actions, d), step, &tired);
            vf paid = reward(s, next);
            r = record(r, next, tired, paid), s = next;
            float seen[AXES] = {s.align[0], s.drift[0], s.energy[0], s.fatigue[0], s.focus[0]};
            memcpy(values, seen, sizeof seen), *rewards++ = paid[0];
        }
        grades[e] = grade(r, s, weights)[0];
    }
}
"""


@pytest.mark.slow
def test_the_benchmark_writes_positive_figures_for_all_that_is_there(
    tmp_path, clean_environ, full_size
):
    gymnax, gcc = importlib.util.find_spec("gymnax"), shutil.which(GCC[0])
    against = ["NumPy"] + ["Breakout-MinAtar"] * bool(gymnax) + ["C limit"] * bool(gcc)
    reduced = [] if full_size else ["--against", *against]
    script = [sys.executable, str(ROOT / "benchmarks" / "steps_per_second.py")]
    size = ["--envs", "256", "--runs", "1", "--seconds", "0.01", "--out", str(tmp_path)]
    done = subprocess.run(
        [*script, *size, *reduced], env=clean_environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

    report = json.loads((tmp_path / "steps_per_second.json").read_text())
    assert {"command", "commit", "cpu", "cores", "device", "versions"} <= set(report)
    assert {"envs", "runs", "results", "ratios", "bars", "notes"} <= set(report)
    assert {r["group"] for r in report["results"]} >= {"ours", *against}
    assert not gymnax or {"TaskFlow", "LifeStack"} <= {r["group"] for r in report["results"]}
    for result in report["results"]:
        assert len(result["seconds"]) == 1
        assert min(result["seconds"]) > 0 and result["first_call_seconds"] > 0
        assert result["best"] >= result["median"] > 0
        if "gymnax" not in result["name"]:  # the same game: mean score .56, sd .05 / sqrt(256)
            mean, tolerance = SCORES.get(result["group"], (0.56, 0.02))
            assert result["mean_score_and_return"][0] == pytest.approx(mean, abs=tolerance)
    assert {r["envs"] for r in report["ratios"]} == {256, "best of each"}
    assert all(r["ratio"] > 0 for r in report["ratios"])
    measured = {r["group"] for r in report["results"]}
    assert len(report["bars"]) == 4
    assert all(
        (b["met"] is not None) == ({b["ours"], b["theirs"]} <= measured) for b in report["bars"]
    )
    assert (tmp_path / "steps_per_second.png").read_bytes().startswith(b"\x89PNG")


def test_a_number_of_environments_that_lanes_do_not_divide_is_refused(clean_environ):
    script = [sys.executable, str(ROOT / "benchmarks" / "steps_per_second.py")]
    done = subprocess.run(
        [*script, "--envs", "100"], env=clean_environ, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "--envs has 100: use multiples of 32" in done.stderr


@pytest.mark.parametrize("task", tables.TASKS)
def test_numpy_restatement_agrees_with_ours_on_the_same_draws(task):
    env, params = lifedrift_jax.make(f"life_drift/{task}-v0")
    num_envs, generator = 64, np.random.default_rng(7)
    restated = numpy_life_drift.Episodes(task, num_envs)
    advance = jax.jit(jax.vmap(env.advance, in_axes=(0, 0, 0, None)))
    _, start = env.reset(jax.random.key(0), params)
    state = jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], num_envs, axis=0), start)
    total = np.zeros(num_envs, np.float32)
    for _ in range(int(params.max_steps)):
        action = generator.integers(0, 6, num_envs, dtype=np.int32)
        uniforms = generator.random((8, num_envs), dtype=np.float32)
        paid = restated.step(action, uniforms)
        step = advance(state, action, noise_from_uniforms(uniforms), params)
        state, total = step.state, total + step.reward
        np.testing.assert_allclose(restated.x, np.stack(env.variables(state, params)), atol=2e-6)
        np.testing.assert_allclose(paid, step.reward, atol=2e-6)
    np.testing.assert_allclose(restated.returns, total, atol=1e-5)
    np.testing.assert_array_equal(restated.cascade_steps, state.cascade_steps)
    grades = jax.vmap(env.grade, in_axes=(0, None))(state, params)
    np.testing.assert_allclose(restated.grade(), grades, atol=2e-6)


@needs_gcc
def test_c_limit_agrees_with_the_recorded_episodes(tmp_path):
    _, params = lifedrift_jax.make("life_drift/long_term_stability-v0")
    recorded = [e for e in json.loads(GOLDEN.read_text()) if e["task"] == "long_term_stability"]
    actions = np.array(
        [[tables.ACTIONS.index(a) for a in e["actions"]] for e in recorded], np.int32
    )
    draws = np.array([e["draws"] for e in recorded], np.float32)
    (tmp_path / "replay.c").write_text(REPLAY)
    library = tmp_path / "replay.so"
    source = [f"-I{ROOT / 'benchmarks'}", str(tmp_path / "replay.c"), "-o", str(library)]
    subprocess.run([*GCC, "-Wall", "-Werror", *source], check=True)

    values = np.zeros((*actions.shape, 5), np.float32)
    rewards, grades = np.zeros(actions.shape, np.float32), np.zeros(len(recorded), np.float32)
    arrays = (actions, draws, np.asarray(params.grade_weights), values, rewards, grades)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in arrays]
    ctypes.CDLL(str(library)).replay(len(recorded), *pointers)
    states = np.array([e["states"] for e in recorded])[:, 1:]
    np.testing.assert_allclose(values, states, atol=2e-6)
    np.testing.assert_allclose(rewards, [e["rewards"] for e in recorded], atol=2e-6)
    np.testing.assert_allclose(grades, [e["grade"] for e in recorded], atol=2e-6)
