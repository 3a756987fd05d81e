"""The command line `python -m train` and the folder it writes."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest

from lifedrift_jax import registry
from train import PPOConfig
from train import __main__ as line
from train.presets import PRESETS, preset

pytestmark = pytest.mark.relaxed

ID = "probe/match-v0"
SIZES = {
    "num_envs": 8,
    "num_steps": 6,
    "minibatches": 2,
    "epochs": 2,
    "hidden_sizes": [8],
    "total_updates": 4,
    "eval_every": 2,
    "eval_episodes": 16,
}


@pytest.fixture(autouse=True)
def probe(monkeypatch):
    monkeypatch.setitem(registry._REGISTRY, ID, "probes:make")


def call(*arguments: object) -> int:
    return line.main([str(x) for x in arguments])


def run(out: Path, *options: object) -> int:
    return call(
        "run", ID, "--out", out, "--config", *(f"{k}={v}" for k, v in SIZES.items()), *options
    )


def test_a_sweep_is_trained_resumed_and_evaluated(tmp_path, capsys):
    out = tmp_path / "run"
    options = ("--seeds", 2, "--sweep", "lr=2e-2,1e-2", "--exact", "--tensorboard")
    assert run(out, *options) == 0
    told = capsys.readouterr()
    assert "4 agents of about" in told.err and "one after another" in told.err
    assert "return" in told.err and "score" in told.err  # progress
    assert "learning_rate=0.02" in told.out and "s an agent" in told.out
    made = {path.name for path in out.iterdir()}
    assert made >= {
        "config.json",
        "progress.jsonl",
        "checkpoints",
        "runs.parquet",
        "metrics.parquet",
        "table.md",
        "curve.png",
        "timing.json",
        "tensorboard",
    }
    rows = parquet.read_table(out / "runs.parquet").to_pydict()
    assert rows["seed"] == [0, 1, 0, 1] and rows["learning_rate"] == [0.02, 0.02, 0.01, 0.01]
    lines = [json.loads(text) for text in (out / "progress.jsonl").read_text().splitlines()]
    assert [x["update"] for x in lines] == [0, 2, 4]
    assert (out / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert len(list(out.glob("tensorboard/run_*/events.*"))) == 4

    again = {name: (out / name).read_bytes() for name in ("runs.parquet", "metrics.parquet")}
    assert call("run", "--resume", out) == 0
    assert again == {name: (out / name).read_bytes() for name in again}

    assert call("evaluate", out, "--episodes", 500, "--agent", 1) == 0
    assert "agent_0001-greedy" in capsys.readouterr().out
    summary = json.loads(
        (out / "evaluations" / "agent_0001-greedy-seed_0-500" / "summary.json").read_text()
    )
    assert summary["episodes"] == 500
    assert call("evaluate", out, "--episodes", 600, "--agent", 1) == 0


def test_the_same_folder_takes_the_same_run_only(tmp_path, capsys):
    assert run(tmp_path, "--objective", "grade") == 0
    told = json.loads((tmp_path / "config.json").read_text())
    weights = {k: v for k, v in told["agents"][0]["hyper"].items() if k.endswith("weight")}
    assert weights == {"reward_weight": 0, "grade_weight": 1}
    assert run(tmp_path) == 2
    assert (
        "holds another run: agents.0.hyper.grade_weight was 1.0, now 0.0" in capsys.readouterr().err
    )
    assert run(tmp_path, "--objective", "grade") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "run needs one id"),
        (("probe/matsch-v0",), "did you mean probe/match-v0"),
        ((ID, "--sweep", "lrr=1"), "'lrr'"),
        ((ID, "--sweep", "lr=a"), "--sweep lr=a: use NAME=VALUE,VALUE"),
        ((ID, "--config", "num_env=3"), "num_env"),
        ((ID, "--config", "num_envs=5", "num_steps=3", "minibatches=4"), "use one of 1, 3, 5, 15"),
        ((ID, "--hyper", "gamma=2"), "gamma is 2"),
        ((ID, "--hyper", "gamma"), "--hyper gamma: use NAME=NUMBER"),
        ((ID, "--seeds", "2", "--split-envs"), "--split-envs trains one agent"),
        ((ID, "--memory", "0.000001"), "use fewer envs"),
        ((ID, "--memory", "nan"), "--memory is nan"),
        ((ID, "--seeds", "0"), "--seeds is 0"),
        ((ID, "--hyper", "gamma=[0.9,0.8]"), "gamma has shape (2,)"),
        ((ID, "--config", "num_envs=null"), "num_envs is None"),
        ((ID, "--config", "num_envs=Infinity"), "num_envs is inf"),
        ((ID, "--config", 'device_axis="x"'), "set by --split-envs"),
        ((ID, "--config", "encoder=item"), "did you mean 'items'"),
        ((ID, "--config", "encoder=items"), "observations [n, F]: here they are [2]"),
        ((ID, "--config", 'encoder="items"'), "observations [n, F]: here they are [2]"),
        ((ID, "--sweep", "lr=1e-3", "learning_rate=1e-2"), "learning_rate twice"),
        ((ID, "--resume", "/nowhere"), "--resume takes the options of the run"),
        (("--resume", "/nowhere"), "it is no folder of a run"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    arguments, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert call("run", *arguments) == 2
    told = capsys.readouterr().err
    assert message in told and told.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_unfinished_run_is_not_evaluated(tmp_path, capsys):
    assert run(tmp_path) == 0
    for folder in (tmp_path / "checkpoints" / "chunk_0000").iterdir():
        folder.rename(tmp_path / f"moved_{folder.name}")
    assert call("evaluate", tmp_path, "--episodes", 10) == 2
    assert "resume the run first" in capsys.readouterr().err
    assert call("evaluate", tmp_path / "none") == 2


def test_the_sizes_that_the_help_gives_as_an_example_are_legal(capsys):
    assert call("run", "--help") == 0
    (updates,) = re.findall(r"total_updates=(\d+)", capsys.readouterr().out)
    for config in (PPOConfig(), *(config for config, _ in PRESETS.values())):
        assert replace(config, total_updates=int(updates)).total_updates == int(updates)


def test_every_life_drift_task_has_a_preset(capsys):
    assert set(PRESETS) >= {x for x in registry.registered() if x.startswith("life_drift/")}
    assert preset("life_drift/energy_balance") == PRESETS["life_drift/energy_balance-v0"]
    with pytest.raises(ValueError, match="preset for"):
        preset(ID)
    assert call("presets") == 0
    assert "life_drift/energy_balance-v0" in capsys.readouterr().out
    for config, hyper in PRESETS.values():
        assert np.isfinite([float(x) for x in vars(hyper.checked()).values()]).all()
        assert config.total_updates % config.eval_every == 0
