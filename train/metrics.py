"""Metrics as tables, their interquartile means over seeds, and TensorBoard's event files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from train.config import PPOConfig
from train.types import Metrics

RESAMPLES = 2000  # of a bootstrap
RETURN, SCORE = "greedy_episode_return_mean", "greedy_score_mean"  # columns most read


class Spread(NamedTuple):
    """An interquartile mean (of the middle half of the runs) and its 95% interval.

    Attributes:
        center, low, high: numbers or arrays; low and high equal center for a single run.
    """

    center: Any
    low: Any
    high: Any


def columns(metrics: Metrics, config: PPOConfig) -> dict[str, np.ndarray]:
    """Metrics as named columns, each of the shape of `metrics.update`.

    The names join those of the fields: `greedy_score_mean`, `losses_entropy`. The column
    `steps` counts environment steps.
    """
    steps = np.asarray(metrics.update, np.int64) * config.batch_size
    table: dict[str, Any] = {"update": metrics.update, "steps": steps}
    for path, leaf in jax.tree_util.tree_leaves_with_path(metrics):
        name = "_".join(str(getattr(part, "name", getattr(part, "key", part))) for part in path)
        table.setdefault(name, leaf)
    return {name: np.asarray(values) for name, values in table.items()}


def interquartile_mean(values: np.ndarray) -> Spread:
    """Over the first axis of `values` [R, ...], with a percentile bootstrap over it.

    Agarwal et al. 2021 (arXiv:2108.13264) advise it for few seeds. The resamples are drawn
    from a fixed seed. Runs that are not finite are left out; with none left all is NaN.
    """
    from scipy import stats

    values = values[np.isfinite(values).reshape(len(values), -1).all(axis=1)]
    if not len(values):
        nothing = np.full(values.shape[1:], np.nan)
        return Spread(nothing, nothing, nothing)
    center = stats.trim_mean(values, 0.25, axis=0)
    if len(values) == 1:
        return Spread(center, center, center)
    drawn = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    means = np.stack([stats.trim_mean(values[rows], 0.25, axis=0) for rows in drawn])
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return Spread(center, low, high)


def note(row: Mapping[str, np.ndarray]) -> str:
    """What a progress bar says of the newest row; the median where there are many agents."""
    if not np.any(row["greedy_finished"]):
        return "no episode finished: eval_steps is too small"
    values = (np.median(row[name]) for name in (RETURN, SCORE))
    return "return {:.3f}, score {:.3f}".format(*values)


def summary_writer() -> Any:
    """TensorBoard's writer class; raise ImportError if the extra `tensorboard` is missing."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise ImportError(
            "TensorBoard files need: pip install 'lifedrift_jax[tensorboard]'"
        ) from None
    return SummaryWriter


def write_tensorboard(folder: Path, tables: Sequence[Mapping[str, np.ndarray]]) -> None:
    """Write event files of runs that TensorBoard reads, one folder a run.

    Args:
        folder: where; what an earlier call wrote there is replaced.
        tables: `columns` of each run, [rows] each.

    Raises:
        ImportError: the extra `tensorboard` is missing.
    """
    writer_class = summary_writer()
    for number, table in enumerate(tables):
        place = folder / f"run_{number:04d}"
        for old in place.glob("events.*"):
            old.unlink()
        with writer_class(str(place)) as writer:
            for name, values in table.items():
                for step, value in zip(table["steps"], values, strict=True):
                    writer.add_scalar(name.replace("_", "/", 1), value, step)
