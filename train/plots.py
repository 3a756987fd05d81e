"""Learning curves. Needs the extra `plot`."""

from collections.abc import Mapping, Sequence

import numpy as np

try:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter
except ImportError:
    raise ImportError("plots need matplotlib: pip install 'lifedrift_jax[plot]'") from None

from train.metrics import interquartile_mean

# Column -> what its panel is called.
PANELS = {
    "greedy_episode_return_mean": "return, greedy",
    "greedy_score_mean": "score, greedy",
    "sampled_episode_return_mean": "return, sampled",
    "losses_entropy": "entropy, nats",
}


def learning_curves(
    steps: np.ndarray,
    tables: Mapping[str, np.ndarray],
    settings: Mapping[str, Sequence[int]],
    title: str,
) -> Figure:
    """One panel a measure, one line a setting.

    A line is the interquartile mean over the setting's agents, its band the 95% bootstrap
    interval of that mean; of a single agent it is that agent's evaluation, its band the 95%
    interval over the episodes.

    Args:
        steps: [rows] environment steps of the evaluations.
        tables: column -> [R, rows], as `metrics.columns` gives them.
        settings: name ("" = none) -> numbers of its agents.
        title: what was trained.
    """
    figure = Figure((10, 5.6), 130, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, 2, sharex=True)
    for axis, (column, label) in zip(axes.flat, PANELS.items(), strict=True):
        # Row 0 is from before training: no loss has been computed, and returns may be so low
        # that they would flatten all that follows, so it does not set the scale.
        first = 1 if column.startswith("losses") else 0
        seen: list[float] = []
        for number, (name, agents) in enumerate(settings.items()):
            colour = f"C{number % 10}"
            line, low, high = _line(tables, column, agents)
            axis.fill_between(
                steps[first:], low[first:], high[first:], color=colour, alpha=0.2, linewidth=0
            )
            axis.plot(steps[first:], line[first:], color=colour, linewidth=1.5, label=name)
            seen += [*low[1:], *high[1:]]
        _scale(axis, seen)
        axis.set_ylabel(label, fontsize=9)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.2)
    for axis in axes[-1]:
        axis.set_xlabel("environment steps", fontsize=9)
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    count = max(map(len, settings.values()))
    band = f"interquartile mean of {count} seeds, 95% bootstrap" if count > 1 else "one seed"
    figure.suptitle(f"{title} ({band})", fontsize=10, x=0.01, ha="left")
    if len(settings) > 1:
        handles = axes.flat[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def _scale(axis: Axes, values: Sequence[float]) -> None:
    """Let the finite ones of `values`, and a margin, fill the axis."""
    finite = [value for value in values if np.isfinite(value)]
    if finite and max(finite) > min(finite):
        margin = 0.08 * (max(finite) - min(finite))
        axis.set_ylim(min(finite) - margin, max(finite) + margin)


def _line(
    tables: Mapping[str, np.ndarray], column: str, agents: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values = tables[column][list(agents)]
    half = column.removesuffix("_mean") + "_half_width"
    if len(values) == 1 and half in tables:
        width = tables[half][agents[0]]
        return values[0], values[0] - width, values[0] + width
    return interquartile_mean(values)
