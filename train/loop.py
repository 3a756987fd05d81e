"""The host's loop over compiled segments: progress, checkpoints, and going on after a kill."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lifedrift_jax.core import Env
from train import ppo, programs
from train.checkpoint import Checkpoints
from train.config import Hyper, PPOConfig
from train.types import Metrics, TrainResult

CHECKPOINT_SECONDS = 10  # between two checkpoints; one is always written at the end

Report = Callable[[Metrics], None]  # called with each new row of metrics


def train(
    key: jax.Array,
    env: Env,
    params: Any,
    config: PPOConfig,
    hyper: Hyper,
    *,
    checkpoints: str | Path | None = None,
    report: Report = lambda row: None,
    devices: Sequence[jax.Device] | None = None,
) -> TrainResult:
    """Train one agent in segments of `eval_every` updates; bit-equal to `ppo.train_jit`.

    Args:
        key, env, params, config, hyper: see `ppo.train_jit`.
        checkpoints: folder to keep checkpoints in. A run that was killed goes on from the
            newest one there and ends with the same bits.
        report: called with each row of metrics as it comes, also with restored ones.
        devices: split the environments among these (see `programs.split_envs`).

    Raises:
        ValueError: sizes or numbers make no sense, or a checkpoint is damaged.
        FloatingPointError: the loss is no longer finite.
    """
    config, hyper = ppo.checked(key, env, params, config, hyper)
    if devices is None or len(devices) == 1:
        program = programs.single(key, env, params, config, hyper)
    else:
        program = programs.split_envs(key, env, params, config, hyper, devices)
    return run(program, config, checkpoints, report)


def run(
    program: programs.Program,
    config: PPOConfig,
    checkpoints: str | Path | None = None,
    report: Report = lambda row: None,
    *,
    must_be_finite: bool = True,
) -> TrainResult:
    """Run a program to its end. See `train`; metrics of many agents have leaves [R, rows].

    Args:
        must_be_finite: raise when the loss of an agent is lost; else its rows show NaN.
    """
    keeper = None
    if checkpoints is not None:
        keeper = Checkpoints(Path(checkpoints), program.identity)
    try:
        state, rows = _resume(program, keeper)
        for row in rows:
            report(row)
        saved = time.monotonic()
        while len(rows) <= config.num_evaluations:
            updates = np.int32(config.eval_every if rows else 0)
            state, metrics = program.segment(state, updates)
            rows.append(jax.device_get(metrics))
            if must_be_finite:
                _check_finite(rows[-1])
            report(rows[-1])
            last = len(rows) > config.num_evaluations
            if keeper is not None and (last or time.monotonic() - saved > CHECKPOINT_SECONDS):
                keeper.save(len(rows), (state, _stacked(rows)))
                saved = time.monotonic()
    finally:
        if keeper is not None:
            keeper.close()
    return TrainResult(state, _stacked(rows))


def require_finished(checkpoints: Path, config: PPOConfig) -> None:
    """Raise ValueError unless the run whose checkpoints these are has come to its end."""
    found = None
    if checkpoints.is_dir():
        keeper = Checkpoints(checkpoints)
        found = keeper.latest()
        keeper.close()
    if found != config.num_evaluations + 1:
        raise ValueError(
            f"{checkpoints} holds {found or 0} of {config.num_evaluations + 1} evaluations: "
            "resume the run first"
        )


def _resume(program: programs.Program, keeper: Checkpoints | None) -> tuple[Any, list[Metrics]]:
    """State and rows of the newest checkpoint, or of a new run."""
    number = None if keeper is None else keeper.latest()
    if number is None:
        return program.start(), []
    assert keeper is not None
    shapes = jax.eval_shape(program.start)
    row = jax.eval_shape(program.segment, shapes, np.int32(0))[1]
    axis = row.update.ndim
    grown = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((*x.shape[:axis], number, *x.shape[axis:]), x.dtype), row
    )
    state, table = keeper.restore(number, (shapes, grown))
    rows = [jax.tree.map(lambda x: x.take(i, axis), table) for i in range(number)]  # noqa: B023
    return state, rows


def _stacked(rows: Sequence[Metrics]) -> Metrics:
    """Rows as one: leaves [rows] for one agent, [R, rows] for many."""
    axis = np.ndim(rows[0].update)
    return jax.tree.map(lambda *x: np.stack(x, axis), *rows)


def _check_finite(row: Metrics) -> None:
    """Raise FloatingPointError if the loss of an agent is lost."""
    if not np.all(np.isfinite(row.losses.policy_loss) & np.isfinite(row.losses.value_loss)):
        raise FloatingPointError(
            f"the loss is not finite after update {np.max(row.update)}: the learning rate is too "
            "high, or an action mask had no legal action"
        )
