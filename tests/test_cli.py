"""The command line: what it prints and writes, how it fails, and that a killed sweep resumes."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pyarrow.parquet
import pytest

import lifedrift_jax
from lifedrift_jax import terminal
from lifedrift_jax.cli import main
from lifedrift_jax.life_drift import ACTIONS, Noise
from lifedrift_jax.planning.scores import POLICIES
from lifedrift_jax.summary import Estimate

TASK = "life_drift/energy_balance-v0"
OTHER = "life_drift/drift_correction-v0"
# Short episodes, the same for all tests, so that their programs are compiled once.
SHORT = ["--set", "max_steps=5", "--set", "cascade_threshold=0.8"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Folder of a finished sweep and the command that made it: two tasks, two policies."""
    folder = tmp_path_factory.mktemp("swept")
    command = ["sweep", TASK, "life_drift/drift_correction", "--seed", "7", "--episodes", "40"]
    command += ["--policy", "random,constant:2@24", "--chunk-size", "8", "--rows"]
    command += [*SHORT, "--out", str(folder)]
    assert main(command) == 0
    return folder, command


def rows(folder):
    return pyarrow.parquet.read_table(folder / "episodes").to_pydict()


def files(folder):
    """Path -> bytes of all files below a folder but the clock times."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != "timing.json")
    return {path.relative_to(folder): path.read_bytes() for path in found}


def test_envs_lists_all_with_horizon_and_sizes(capsys):
    assert main(["envs", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [env["id"] for env in listed] == list(lifedrift_jax.registered())
    assert listed[1] == {
        "id": TASK,
        "difficulty": "medium",
        "steps": 15,
        "observation": "10",
        "actions": 6,
    }
    assert main(["envs"]) == 0
    text = capsys.readouterr().out
    assert all(env["id"] in text and env["difficulty"] in text for env in listed)


def test_policies_lists_names_and_families(capsys):
    for argv in (["policies"], ["policies", TASK]):
        assert main(argv) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        for name in ("random", "constant:ACTION", "round_robin", "rule", "greedy"):
            families = next(line[1:] for line in lines if line[0] == name)
            assert families[0].startswith("life_drift")


def test_rollout_is_the_episode_of_the_sweep_to_the_bit(swept, capsys):
    folder, _ = swept
    table = rows(folder / TASK / "random")
    assert main(["rollout", TASK, "--seed", "7", "--index", "13", "--json", *SHORT]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["score"], record["return"]) == (table["score"][13], table["episode_return"][13])
    assert record["events"] == {"cascade": table["cascade"][13]}
    assert (record["seed"], record["index"], record["policy"]) == (7, 13, "random")
    assert len(record["steps"]) == 5 and record["finished"]


def test_rollout_json_replays_from_its_own_draws(capsys):
    argv = ["rollout", "life_drift/energy_balance", "--json", *SHORT]
    assert main([*argv, "--set", "reward.on_course=0.25"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["env"] == TASK and record["params"]["reward"]["on_course"] == 0.25
    env, params = lifedrift_jax.make(record["env"])
    flat = {k: v for k, v in record["params"].items() if k != "reward"}
    flat |= {f"reward.{k}": v for k, v in record["params"]["reward"].items()}
    params = lifedrift_jax.registry.override(params, **flat)
    state, total = env.initial_state(params), np.float32(0)
    for step in record["steps"]:
        noise = Noise(**jax.tree.map(np.float32, step["draws"]))
        action = step["action_index"]
        assert env.action_names[action] == step["action"]
        after = env.advance(state, action, noise, params)
        assert float(after.reward) == step["reward"]
        seen = dict(
            zip(env.variable_names, map(float, env.variables(after.state, params)), strict=True)
        )
        assert seen == step["variables"]
        state, total = after.state, total + np.float32(step["reward"])
    assert float(env.grade(state, params)) == record["score"]
    assert float(total) == record["return"]


def test_rollout_table_has_a_row_a_step_and_the_score(capsys):
    assert main(["rollout", TASK, "--seed", "1", *SHORT]) == 0
    head, _, *lines, last = capsys.readouterr().out.splitlines()
    for column in ("step", "time of day", "action", "fatigue", "reward", "what happened"):
        assert column in head
    assert [int(line.split()[0]) for line in lines] == list(range(6))
    assert lines[0].split()[1:7] == ["morning", "0.800", "0.200", "0.300", "0.800", "0.600"]
    assert all(re.search("|".join(ACTIONS), line) for line in lines[1:])
    assert sum("first cascade" in line for line in lines) == 1
    assert re.fullmatch(r"score 0\.\d{4}, return -?\d\.\d{4}, with cascade, seed 1, index 0", last)


def test_sweep_makes_a_folder_for_each_task_and_policy(swept):
    folder, _ = swept
    for task in (TASK, OTHER):
        for policy, episodes in (("random", 40), ("constant-insert_break", 24)):
            summary = json.loads((folder / task / policy / "summary.json").read_text())
            assert summary["episodes"] == summary["finished"] == episodes
            assert summary["description"]["env"] == task
            assert summary["description"]["seeds"] == 7
            assert summary["description"]["params"]["cascade_threshold"] == pytest.approx(0.8)
            assert rows(folder / task / policy)["index"] == list(range(episodes))


def test_sweep_prints_and_writes_the_means_of_the_summaries(swept, capsys):
    folder, command = swept
    assert main(command) == 0
    printed = capsys.readouterr().out
    lines = (folder / "table.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0][2:5] == ["episodes", "mean score ± 95%", "mean return ± 95%"]
    assert cells[0][5:] == ["cascade", "median score"]
    assert len(cells) == 2 + 4
    for task, policy, episodes, score, returned, cascade, median in cells[2:]:
        name = policy.replace(":", "-")
        file = folder / "life_drift" / task / name / "summary.json"
        summary = json.loads(file.read_text())
        assert int(episodes) == summary["episodes"]
        for text, estimate in ((score, "score"), (returned, "episode_return")):
            mean, half = map(float, text.split(" ± "))
            assert mean == pytest.approx(summary[estimate]["mean"], abs=0.5 * half)
            low, high = summary[estimate]["interval"]
            assert half == pytest.approx((high - low) / 2, rel=0.06)
        assert cascade == f"{100 * summary['events']['cascade']['share']:.1f}%"
        assert float(median) == pytest.approx(summary["score"]["quantiles"]["0.5"], abs=5e-4)
        assert all(text in printed for text in (task, policy, score, returned, cascade, median))


def test_a_finished_sweep_is_not_played_again(swept, capsys):
    folder, command = swept
    before, printed = files(folder), []
    times = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    for _ in range(2):
        assert main(command) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""
    assert files(folder) == before
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")} == times


def test_plot_draws_the_sweeps_below_a_folder(swept, capsys, tmp_path):
    folder, _ = swept
    for out in (["--out", str(tmp_path / "x.png")], []):
        assert main(["plot", str(folder), *out]) == 0
        place = capsys.readouterr().out.strip()
        assert place == (out[1] if out else str(folder / "sweep.png"))
        with open(place, "rb") as picture:
            assert picture.read(8) == b"\x89PNG\r\n\x1a\n"


def test_help_and_version_exit_with_0(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lifedrift {lifedrift_jax.__version__}\n"
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for command in ("envs", "policies", "rollout", "sweep", "plot"):
        assert command in text
        assert main([command, "--help"]) == 0
        assert f"lifedrift {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ("", "envs, policies, rollout, sweep, references, plot"),
        ("swep", "swep"),
        ("envs --jsn", "--jsn"),
        ("rollout", "at least one id"),
        ("rollout life_drift/energy_blance-v0", "did you mean life_drift/energy_balance-v0"),
        (f"rollout {TASK} --seed", "--seed"),
        (f"rollout {TASK} --seed x", "--seed"),
        (f"rollout {TASK} --seed -1", "seed is -1"),
        (f"rollout {TASK} --seed 4294967296", "seed is 4294967296"),
        (f"rollout {TASK} --index -1", "index is -1"),
        (f"rollout {TASK} --index 4294967296", "index is 4294967296"),
        (f"rollout {TASK} --policy gredy", "did you mean 'greedy'"),
        (f"rollout {TASK} --policy constant:nap", "insert_break"),
        (f"rollout {TASK} --policy constant:6", "5 do_nothing"),
        (f"rollout {TASK} --set cascade_treshold=1", "did you mean 'cascade_threshold'"),
        (f"rollout {TASK} --set max_steps=0", "max_steps is 0"),
        (f"rollout {TASK} --set max_steps=2.5", "max_steps is 2.5"),
        (f"rollout {TASK} --set start=[1,2]", "start has shape (2,)"),
        (f"rollout {TASK} --set cascade_threshold=NaN", "finite"),
        (f"rollout {TASK} --set cascade_threshold", "--set cascade_threshold: use NAME=NUMBER"),
        (f"rollout {TASK} --set env_id=1", "no parameter 'env_id'"),
        ("policies life_drift/x", "no environment 'life_drift/x'"),
        ("sweep --out OUT", "at least one id"),
        (f"sweep {TASK} life_drift/energy --out OUT", "did you mean"),
        (f"sweep {TASK} --out OUT --episodes 0", "episodes is 0"),
        (f"sweep {TASK} --out OUT --episodes 4294967297", "num_episodes is 4294967297"),
        (f"sweep {TASK} --out OUT --chunk-size 0", "chunk_size is 0"),
        (f"sweep {TASK} --out OUT --seed -1", "seed is -1"),
        (f"sweep {TASK} --out OUT --policy random,rul", "did you mean 'rule'"),
        (f"sweep {TASK} --out OUT --policy rule@many", "POLICY@N"),
        (f"sweep {TASK} --out OUT --policy rule@0", "episodes is 0"),
        (f"sweep {TASK} --out OUT --policy constant:0,constant:suggest_task", "twice"),
        (f"sweep {TASK} --out FILE", "FILE"),
        (f"sweep {TASK} --out FILE/below", "FILE"),
        ("plot OUT", "no finished sweeps below"),
    ],
)
def test_an_error_is_one_line_and_leaves_nothing_behind(argv, says, tmp_path, capsys):
    file, out = tmp_path / "FILE", tmp_path / "OUT"
    file.write_text("mine")
    argv = [x.replace("OUT", str(out)).replace("FILE", str(file)) for x in argv.split()]
    assert_one_line(argv, says, capsys)
    assert file.read_text() == "mine" and not out.exists()


def assert_one_line(argv, says, capsys):
    assert main(argv) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("lifedrift: ") and printed.err.count("\n") == 1
    assert says in printed.err


def test_a_folder_of_another_sweep_is_refused_and_left_as_it_is(swept, capsys):
    folder, command = swept
    before = files(folder)
    for change, says in (
        (["--set", "cascade_threshold=0.9"], "params.cascade_threshold was 0.80"),
        (["--seed", "8"], "seeds was 7, now 8"),
        (["--episodes", "41"], "num_episodes was 40, now 41"),
    ):
        assert_one_line([*command, *change], says, capsys)
        assert files(folder) == before


@pytest.mark.parametrize("name", ["sweep.json", "totals.npz"])
def test_a_damaged_run_folder_is_named(name, swept, capsys, tmp_path):
    folder, command = swept
    run = tmp_path / TASK / "random"
    run.mkdir(parents=True)
    for file in ("sweep.json", "totals.npz"):
        text = (folder / TASK / "random" / file).read_bytes()
        (run / file).write_bytes(text[: len(text) // 2] if file == name else text)
    assert_one_line([*command, "--out", str(tmp_path)], f"{name} is damaged", capsys)


def test_a_damaged_summary_and_an_impossible_picture_are_one_line(swept, capsys, tmp_path):
    folder, _ = swept
    (tmp_path / "summary.json").write_text("{")
    assert_one_line(["plot", str(tmp_path)], "summary.json is damaged", capsys)
    for out, says in (("x.docx", "docx"), ("missing/x.png", "missing")):
        assert_one_line(["plot", str(folder), "--out", str(tmp_path / out)], says, capsys)


@pytest.mark.parametrize(
    ("package", "argv", "extra"),
    [
        ("tyro", ["envs"], "lifedrift_jax[cli]"),
        ("rich", ["envs"], "lifedrift_jax[cli]"),
        ("matplotlib.figure", ["plot", "."], "lifedrift_jax[plot]"),
    ],
)
def test_a_missing_extra_is_named(package, argv, extra, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "lifedrift_jax.plots", raising=False)
    monkeypatch.delattr(lifedrift_jax, "plots", raising=False)
    assert_one_line(argv, extra, capsys)


def test_output_that_nobody_reads_is_no_error(clean_environ):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "lifedrift_jax.cli", "--version"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=clean_environ)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_bars_on_a_terminal_show_episodes_and_speed(capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with terminal.progress_bars() as meter, meter("task policy", 3000) as report:
        report(1000, 3000)
        report(2000, 3000)
    text = capsys.readouterr().err
    assert "task policy" in text and "3,000 of 3,000" in text and " episodes/s" in text


def test_without_a_terminal_progress_is_plain_lines(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "PLAIN_SECONDS", 0)
    with terminal.progress_bars() as meter, meter("task policy", 3000) as report:
        for done in (1000, 2000, 3000):
            report(done, 3000)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("task policy: 2,000 of 3,000 episodes, ") and "s left" in first
    assert last == "task policy: 3,000 episodes done"


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (0.767123, 0.000398, "0.76712 ± 0.00040"),
        (-0.23861, 0.0289, "-0.239 ± 0.029"),
        (12.345, 1.04, "12.3 ± 1.0"),
        (1234.5, 123.4, "1234 ± 123"),
        (0.99, 0.0, "0.9900 ± 0.0000"),
        (0.99, 1e-12, "0.990000 ± 0.000000"),
    ],
)
def test_a_mean_has_the_digits_that_its_interval_knows(mean, half, text):
    interval = (mean - half, mean + half)
    assert terminal.measured(Estimate(9, mean, 1, 1, interval, 0, 1, {}, 0)) == text
    assert terminal.measured(Estimate(1, 0.5, None, None, None, 0, 1, {}, 0)) == "0.5000"


# The command line, in a process that heeds SIGINT even if a test run in the background, which
# has it ignored, hands that down.
INTERRUPTIBLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from lifedrift_jax.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupted_and_a_killed_sweep_resume_to_the_same_bytes(tmp_path, clean_environ):
    episodes, chunk = 3_000, 4
    command = ["sweep", TASK, "--policy", "random", "--rows", "--no-steps", *SHORT]
    command += ["--episodes", str(episodes), "--chunk-size", str(chunk), "--out"]
    environ = clean_environ | {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    folder, done = tmp_path / "killed", 0
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        argv = [sys.executable, "-c", INTERRUPTIBLE, *command, str(folder)]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=environ) as process:
            wait_for(lambda done=done: chunks_done(folder) > done, process)
            process.send_signal(number)
            try:
                _, said = process.communicate(timeout=3)
            except subprocess.TimeoutExpired:  # a callback of the runtime swallowed it
                process.send_signal(number)
                _, said = process.communicate()
        assert process.returncode == code, said
        if number == signal.SIGINT:
            assert said == "lifedrift: interrupted: the same command resumes the sweep\n"
        assert done < chunks_done(folder) < episodes // chunk, "it was to be stopped half-way"
        done = chunks_done(folder)
    for place in (folder, tmp_path / "whole"):
        assert main([*command, str(place)]) == 0
    whole, killed = tmp_path / "whole" / TASK / "random", folder / TASK / "random"
    assert (killed / "summary.json").read_bytes() == (whole / "summary.json").read_bytes()
    assert rows(killed) == rows(whole)
    assert rows(whole)["index"] == list(range(episodes))


def chunks_done(folder):
    file = folder / TASK / "random" / "totals.npz"
    if not file.exists():
        return 0
    with np.load(file) as totals:
        return int(totals["chunks_done"])


def wait_for(condition, process):
    while not condition():
        assert process.poll() is None, "the sweep ended by itself"
        time.sleep(0.005)


def test_a_family_stands_for_all_its_tasks_and_has_a_seed_of_its_own(capsys):
    assert main(["rollout", "task_flow", "--policy", "heuristic", "--log"]) == 0
    lines = capsys.readouterr().out.splitlines()
    starts = [line for line in lines if line.startswith("[START]")]
    assert starts == [
        f"[START] task=task_flow/{tier}-v0 env=lifedrift_jax model=heuristic seed=42"
        for tier in ("easy", "medium", "hard")
    ]
    first = lines[: lines.index(starts[1])]
    steps = [re.fullmatch(LOG_STEP, line) for line in first[1:-1]]
    assert [int(step["step"]) for step in steps] == list(range(1, len(steps) + 1))
    assert [step["done"] for step in steps] == ["false"] * (len(steps) - 1) + ["true"]
    rewards = ",".join(step["reward"] for step in steps)
    end = rf"\[END\] success=true steps={len(steps)} score=0\.\d\d rewards={rewards}"
    assert re.fullmatch(end, first[-1])


LOG_STEP = (
    r"\[STEP\] step=(?P<step>\d+) action=(execute|defer|delegate|optimize):\d+ "
    r"reward=(?P<reward>-?\d\.\d\d) done=(?P<done>true|false) error=null"
)


def test_several_rollouts_are_one_list(capsys):
    assert main(["rollout", "task_flow/easy", "task_flow/hard-v0", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["env"] for record in records] == ["task_flow/easy-v0", "task_flow/hard-v0"]
    assert {record["seed"] for record in records} == {42}


def test_a_sweep_of_task_flow_shows_the_source_beside_and_a_scale(tmp_path, capsys):
    ids = ["task_flow/easy-v0", "task_flow/medium-v0", "task_flow/hard-v0"]
    argv = ["sweep", *ids, "--policy", "heuristic", "--episodes", "64", "--no-steps"]
    assert main([*argv, "--out", str(tmp_path)]) == 0
    head, _, *rows = (tmp_path / "table.md").read_text().splitlines()
    columns = [name.strip() for name in head.strip("|").split("|")]
    for name, right in (("source: score", "0.85"), ("source: step reward", "0.606")):
        assert rows[0].strip("|").split("|")[columns.index(name)].strip() == right
    for row in rows:
        scale = row.strip("|").split("|")[columns.index("normalised")]
        assert 0.3 < float(scale) < 1.3
    changed = [*argv, "--set", "upkeep=0", "--out", str(tmp_path / "changed")]
    assert main(changed) == 0
    assert "normalised" not in capsys.readouterr().out.splitlines()[-4]


def test_references_are_measured_and_written(tmp_path, monkeypatch):
    quick = {"heuristic": "delegate_all", "optimum": "earliest_deadline"}  # to compile
    for name, policy in quick.items():
        monkeypatch.setitem(POLICIES, name, policy)
    counts = ["--episodes", "32", "--planner-episodes", "4"]
    file = tmp_path / "references.json"
    where = ["--out", str(tmp_path / "runs"), "--file", str(file)]
    assert main(["references", "task_flow/easy-v0", *counts, *where]) == 0
    entry = json.loads(file.read_text())["task_flow/easy-v0"]
    assert [entry[name]["episodes"] for name in ("random", "heuristic", "optimum")] == [32, 32, 4]
    assert entry["random"]["score"] < entry["optimum"]["score"] <= 1
