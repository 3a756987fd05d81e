"""Statistics of a sweep: what a chunk measures on the device, how chunks are merged on the
host, and the summary made of them. Memory does not depend on the number of episodes.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

BINS = 1000  # of the fixed histograms; a quantile is off by one bin width at most
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
NORMAL_95 = 1.959963984540054  # 97.5% quantile of the standard normal


class Moments(NamedTuple):
    """Count, mean and sum of squared deviations, of one sample or of an array of samples.

    Attributes:
        count: how many values, int.
        mean: their mean, 0 where there are none.
        square: sum of (value - mean)**2.
    """

    count: Any
    mean: Any
    square: Any


class Totals(NamedTuple):
    """All that a sweep keeps of its episodes. V variables, T steps, A actions.

    Attributes:
        episodes: () int, episodes played.
        score, episode_return, step_reward, length: Moments over the finished episodes;
            step_reward is an episode's return over its length.
        score_bins, return_bins: [1000] int, histograms of the finished episodes.
        low, high: [2] extremes of score and return, +inf and -inf if there are none.
        events: int tuple, finished episodes with each of `env.event_names`.
        actions: [T, A + 2] int, how often each action was chosen at each step; then how
            often an invalid one; last all choices.
        variables: Moments with leaves [T + 1, V], over the episodes that took the step;
            row 0 is the start. `actions` and `variables` have no columns where a sweep was
            told not to watch steps.
    """

    episodes: Any
    score: Moments
    episode_return: Moments
    step_reward: Moments
    length: Moments
    score_bins: Any
    return_bins: Any
    low: Any
    high: Any
    events: Any
    actions: Any
    variables: Moments


def total(values: jax.Array) -> jax.Array:
    """Sum over the last axis, as a product with ones: on CPU, XLA adds the terms of a
    reduction one by one, those of a product eight or more at a time.
    """
    ones = jnp.ones(values.shape[-1], values.dtype)
    return jnp.matmul(values, ones, precision=jax.lax.Precision.HIGHEST)


def moments(values: jax.Array, counted: jax.Array) -> Moments:
    """Moments of `values` [N] where `counted` [N] is True."""
    count = jnp.sum(counted, dtype=jnp.int32)
    mean = total(jnp.where(counted, values, 0)) / jnp.maximum(count, 1).astype(values.dtype)
    deviation = jnp.where(counted, values - mean, 0)
    return Moments(count, mean, total(deviation * deviation))


def histogram(values: jax.Array, counted: jax.Array, bounds: tuple[float, float]) -> jax.Array:
    """[1000] int32 histogram of `values` [N] where `counted`; outliers in the end bins."""
    low, high = bounds
    place = jnp.floor((values - low) * (BINS / (high - low))).astype(jnp.int32)
    place = jnp.clip(place, 0, BINS - 1)
    return jnp.zeros(BINS, jnp.int32).at[place].add(counted.astype(jnp.int32))


def merge(total: Totals | None, chunk: Totals) -> Totals:
    """Host totals after one more chunk: float64 and int64 NumPy leaves."""
    chunk = jax.tree.map(_wide, chunk)
    if total is None:
        return chunk
    merged: dict[str, Any] = {}
    for name, old, new in zip(Totals._fields, total, chunk, strict=True):
        if isinstance(old, Moments):
            merged[name] = merge_moments(old, new)
        else:
            combine = {"low": np.minimum, "high": np.maximum}.get(name, np.add)
            merged[name] = jax.tree.map(combine, old, new)
    return Totals(**merged)


def merge_moments(a: Moments, b: Moments) -> Moments:
    """Moments of two samples together (Chan, Golub and LeVeque 1983)."""
    count = a.count + b.count
    share = b.count / np.maximum(count, 1)
    gap = b.mean - a.mean
    square = a.square + b.square + gap * gap * a.count * share
    return Moments(count, a.mean + gap * share, square)


def _wide(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.int64 if np.issubdtype(x.dtype, np.integer) else np.float64)


@dataclass(frozen=True)
class Mean:
    """A mean over episodes.

    Attributes:
        count: episodes behind it.
        mean, sd: sample mean and standard deviation (n - 1).
        standard_error: sd / sqrt(count).
        interval: 95% interval of the mean, mean +- 1.96 standard errors.

    All are None where there are too few episodes to say.
    """

    count: int
    mean: float | None
    sd: float | None
    standard_error: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Estimate(Mean):
    """A mean over episodes, with what is known of their distribution.

    Attributes:
        low, high: extremes seen.
        quantiles: level -> value, from a histogram of 1,000 equal bins.
        quantile_error: width of a bin; no quantile is further off.
    """

    low: float | None
    high: float | None
    quantiles: dict[str, float]
    quantile_error: float


@dataclass(frozen=True)
class Share:
    """A share of episodes, with its 95% Wilson interval; None if there are no episodes."""

    count: int
    share: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Summary:
    """What a sweep found, over the finished episodes.

    Attributes:
        description: what was played: env, policy, params, seeds, sizes, versions.
        episodes, finished, unfinished: counts.
        score, episode_return: estimates.
        step_reward: mean over episodes of the mean reward of a step.
        mean_length: steps an episode, None if there are none.
        events: event name -> share of episodes in which it occurred.
        actions: action name -> share of all choices; empty if steps were not watched.
        invalid_actions: share of choices that were out of range or illegal, None likewise.
        steps: variable name -> {"count", "mean", "sd"}, lists over 0..T; 0 is the start.
        histograms: "score" and "episode_return" -> {"low", "high", "counts"}.
    """

    description: dict[str, Any]
    episodes: int
    finished: int
    unfinished: int
    score: Estimate
    episode_return: Estimate
    step_reward: Mean
    mean_length: float | None
    events: dict[str, Share]
    actions: dict[str, float]
    invalid_actions: float | None
    steps: dict[str, dict[str, list[float]]]
    histograms: dict[str, dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python, ready for JSON; no NaN, no infinity, no clock times."""
        return asdict(self)


def summarise(
    totals: Totals,
    description: dict[str, Any],
    names: dict[str, tuple[str, ...]],
    return_bounds: tuple[float, float],
) -> Summary:
    """A Summary of host totals.

    Args:
        totals: from `merge`.
        description: stored as it is.
        names: the env's "events", "actions" and "variables".
        return_bounds: bounds of the return's histogram.
    """
    finished = int(totals.score.count)
    choices = totals.actions.sum(axis=0)
    shares = (choices / max(choices[-1], 1)).tolist() if len(choices) else []
    return Summary(
        description=description,
        episodes=int(totals.episodes),
        finished=finished,
        unfinished=int(totals.episodes) - finished,
        score=_estimate(totals.score, totals.score_bins, (0.0, 1.0), totals, 0),
        episode_return=_estimate(
            totals.episode_return, totals.return_bins, return_bounds, totals, 1
        ),
        step_reward=_mean(totals.step_reward),
        mean_length=float(totals.length.mean) if finished else None,
        events={
            name: share(int(count), finished)
            for name, count in zip(names["events"], totals.events, strict=True)
        },
        actions=dict(zip(names["actions"], shares, strict=False)),
        invalid_actions=shares[-2] if shares else None,
        steps=_steps(totals.variables, names["variables"]),
        histograms={
            "score": _bins(totals.score_bins, (0.0, 1.0)),
            "episode_return": _bins(totals.return_bins, return_bounds),
        },
    )


def share(count: int, total: int) -> Share:
    """`count` of `total` as a Share with its Wilson interval."""
    if not total:
        return Share(count, None, None)
    p, z = count / total, NORMAL_95
    centre = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(p * (1 - p) / total + (z / (2 * total)) ** 2) / (1 + z * z / total)
    return Share(count, p, (max(centre - half, 0.0), min(centre + half, 1.0)))


def quantile(counts: np.ndarray, bounds: tuple[float, float], level: float) -> float:
    """Quantile from a histogram of equal bins, by linear interpolation inside the bin."""
    rank = level * counts.sum()
    cumulative = np.cumsum(counts)
    place = int(np.searchsorted(cumulative, rank, side="left"))
    inside = (rank - (cumulative[place] - counts[place])) / max(counts[place], 1)
    width = (bounds[1] - bounds[0]) / len(counts)
    return bounds[0] + width * (place + float(inside))


def _mean(moments: Moments) -> Mean:
    count = int(moments.count)
    if not count:
        return Mean(0, None, None, None, None)
    mean = float(moments.mean)
    if count < 2:
        return Mean(count, mean, None, None, None)
    sd = math.sqrt(float(moments.square) / (count - 1))
    error = sd / math.sqrt(count)
    interval = (mean - NORMAL_95 * error, mean + NORMAL_95 * error)
    return Mean(count, mean, sd, error, interval)


def _estimate(
    moments: Moments, counts: np.ndarray, bounds: tuple[float, float], totals: Totals, row: int
) -> Estimate:
    mean, width = asdict(_mean(moments)), (bounds[1] - bounds[0]) / BINS
    if not mean["count"]:
        return Estimate(**mean, low=None, high=None, quantiles={}, quantile_error=width)
    low, high = float(totals.low[row]), float(totals.high[row])
    quantiles = {
        f"{level:g}": min(max(quantile(counts, bounds, level), low), high) for level in QUANTILES
    }
    return Estimate(**mean, low=low, high=high, quantiles=quantiles, quantile_error=width)


def _steps(moments: Moments, names: tuple[str, ...]) -> dict[str, dict[str, list[float]]]:
    sd = np.sqrt(moments.square / np.maximum(moments.count - 1, 1))
    return {
        name: {
            "count": moments.count[:, column].tolist(),
            "mean": moments.mean[:, column].tolist(),
            "sd": sd[:, column].tolist(),
        }
        for column, name in enumerate(names[: moments.count.shape[1]])
    }


def _bins(counts: np.ndarray, bounds: tuple[float, float]) -> dict[str, Any]:
    return {"low": bounds[0], "high": bounds[1], "counts": counts.tolist()}
