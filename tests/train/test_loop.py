"""The host's loop: the same bits as one program, also after a kill."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from probes import FAST, SMALL, Match, match, same

from lifedrift_jax import root_key
from train import loop, ppo, programs
from train.checkpoint import Checkpoints

pytestmark = pytest.mark.relaxed

CONFIG = replace(SMALL, normalize_observations=True)
HYPER = replace(FAST, learning_rate_decay=1.0)


def train(**options):
    return loop.train(root_key(0), Match(), match(), CONFIG, HYPER, **options)


@pytest.fixture(scope="module")
def straight():
    return ppo.train_jit(root_key(0), Match(), match(), CONFIG, HYPER)


def test_segments_give_the_bits_of_one_program(straight):
    rows = []
    result = train(report=rows.append)
    assert same(result, straight)
    assert [int(row.update) for row in rows] == [0, 2, 4, 6]


def test_a_second_run_compiles_nothing(straight):
    train()
    counts = programs._segment._cache_size(), programs._start._cache_size()
    loop.train(root_key(9), Match(), match(), replace(CONFIG), replace(HYPER, clip=0.1))
    assert counts == (programs._segment._cache_size(), programs._start._cache_size())


class StopError(Exception):
    """What ends a run in a test."""


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_run_cut_anywhere_goes_on_to_the_same_bits(rows, straight, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1)
    seen = []

    def stop(row):
        seen.append(int(row.update))
        if len(seen) > rows:
            raise StopError

    with pytest.raises(StopError):
        train(checkpoints=tmp_path, report=stop)
    again = []
    assert same(train(checkpoints=tmp_path, report=again.append), straight)
    assert [int(row.update) for row in again] == [0, 2, 4, 6]  # restored rows are told too


def test_a_finished_run_is_restored_without_training(straight, tmp_path, monkeypatch):
    train(checkpoints=tmp_path)
    monkeypatch.setattr(ppo, "update", None)
    assert same(train(checkpoints=tmp_path), straight)


KILLED = """
import os, signal, sys
sys.path[:0] = {paths!r}
from test_loop import train
from train import loop
loop.CHECKPOINT_SECONDS = -1
def report(row):
    if int(row.update) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
train(checkpoints={folder!r}, report=report)
"""


@pytest.mark.slow
def test_a_killed_process_is_resumed_to_the_same_bits(straight, tmp_path, clean_environ):
    here = Path(__file__).parent
    paths = [str(here), str(here.parent), str(here.parents[1])]
    script = KILLED.format(paths=paths, folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], env=clean_environ, timeout=300)
    assert done.returncode == -signal.SIGKILL
    assert same(train(checkpoints=tmp_path), straight)


def _damage(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and file.stat().st_size > 0 and "d" in file.parent.name:
            file.write_bytes(os.urandom(file.stat().st_size))


def test_a_damaged_checkpoint_is_refused_by_name(tmp_path):
    train(checkpoints=tmp_path)
    newest = max(int(x.name) for x in tmp_path.iterdir() if x.name.isdigit())
    _damage(tmp_path / str(newest))
    with pytest.raises(ValueError, match=rf"checkpoint .*/{newest} is damaged or of another"):
        train(checkpoints=tmp_path)


def test_a_checkpoint_of_other_shapes_is_refused(tmp_path):
    keeper = Checkpoints(tmp_path)
    keeper.save(1, {"x": np.zeros(2)})
    keeper.close()
    reader = Checkpoints(tmp_path)
    with pytest.raises(ValueError, match=r"holds float64\[2\] for float64\[3\]"):
        reader.restore(1, {"x": np.zeros(3)})
    reader.close()


@pytest.mark.parametrize("change", ["key", "params", "hyper", "config"])
def test_a_checkpoint_of_another_run_of_equal_sizes_is_refused(change, tmp_path):
    train(checkpoints=tmp_path)
    given = {"key": root_key(0), "params": match(), "hyper": HYPER, "config": CONFIG}
    others = {
        "key": root_key(1),
        "params": match(prize=7.0),
        "hyper": replace(HYPER, gamma=0.1),
        "config": replace(CONFIG, eval_seed=1),
    }
    given[change] = others[change]
    with pytest.raises(ValueError, match="of another run: its key, params"):
        loop.train(env=Match(), checkpoints=tmp_path, **given)


def test_keys_and_numbers_survive_a_checkpoint(tmp_path):
    tree = {"keys": jax.vmap(lambda i: jax.random.fold_in(root_key(7), i))(np.arange(1000))}
    tree |= {"count": np.int32(3), "none": (), "rate": np.float32(0.1)}
    keeper = Checkpoints(tmp_path)
    keeper.save(1, tree)
    keeper.close()
    reader = Checkpoints(tmp_path)
    again = reader.restore(1, tree)
    reader.close()
    assert same(again, tree)
    assert again["keys"].dtype == tree["keys"].dtype
    assert same(jax.random.split(again["keys"][5]), jax.random.split(tree["keys"][5]))


def test_a_checkpoint_of_another_format_is_refused(tmp_path, monkeypatch):
    from train import checkpoint

    keeper = Checkpoints(tmp_path)
    monkeypatch.setattr(checkpoint, "FORMAT", 99)
    keeper.save(1, {"x": np.zeros(2)})
    monkeypatch.undo()
    keeper.close()
    reader = Checkpoints(tmp_path)
    with pytest.raises(ValueError, match="has format 99, not 1"):
        reader.restore(1, {"x": np.zeros(2)})
    reader.close()


def test_a_lost_loss_ends_the_run_with_a_reason():
    with pytest.raises(FloatingPointError, match=r"not finite after update 2: the learning rate"):
        loop.train(root_key(0), Match(), match(prize=float("nan")), CONFIG, HYPER)


def test_callers_arrays_stay_valid(straight):
    key, params = root_key(0), match()
    loop.train(key, Match(), params, CONFIG, HYPER)
    assert int(params.max_steps) == 5 and same(key, root_key(0))
    assert np.isfinite(np.asarray(straight.state.obs)).all()
