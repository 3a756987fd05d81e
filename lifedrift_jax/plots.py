"""Pictures of sweeps: score histograms and mean trajectories. Needs the extra `plot`.

A colour means a policy, the same one in every picture; a variable means a panel. Figures are
made without pyplot: no global state of Matplotlib is touched and no window opens.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from lifedrift_jax.summary import Summary

try:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator
except ImportError:
    raise ImportError("plots need matplotlib: pip install 'lifedrift_jax[plot]'") from None

Record = Mapping[str, Any]  # a summary as `Summary.to_dict` and summary.json give it
Records = dict[str, Record]  # by policy
Tasks = dict[str, Records]  # by id
Style = dict[str, Any]  # keyword arguments of a line
Series = Mapping[str, Sequence[float]]  # "count", "mean" and "sd" of a variable, by step

# The colour-blind safe palette of Okabe and Ito, without its yellow (too pale for a line).
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, VERMILION, BLACK = "#56B4E9", "#D55E00", "#000000"
COLOURS = {
    "random": BLACK,
    "rule": BLUE,
    "greedy": ORANGE,
    "optimal": GREEN,
    "planner": PURPLE,
    "heuristic": SKY,
    "round_robin": VERMILION,
}
# A policy that is not in COLOURS takes one of these, chosen by its name.
DASHES = ((0, (4, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
OTHER_STYLES = [
    {"color": colour, "linestyle": dash}
    for dash, colour in product(DASHES, (VERMILION, SKY, PURPLE, GREEN, ORANGE, BLUE))
]
GUIDE: Style = {"color": "0.45", "linestyle": (0, (3, 2)), "linewidth": 0.9}

SCORE_BINS = 50  # drawn; each is the sum of several stored bins
LIMITS = {"fatigue": "cascade_threshold"}  # variable -> the params field drawn as its limit
SMALL, NORMAL = 7, 8  # font sizes, points
LEGEND_CHARACTERS = 150  # in a row of the legend, about
WIDTH, ROW_HEIGHT = 10.0, 1.8  # of a figure and of a row of panels, inches
DPI = 150


def load_summaries(folder: str | Path) -> list[Record]:
    """The summaries of all finished sweeps below a folder, in a good order to draw.

    Raises:
        ValueError: there are none, or a summary.json is damaged.
    """
    records = [_load(file) for file in sorted(Path(folder).rglob("summary.json"))]
    if not records:
        raise ValueError(f"no finished sweeps below {folder}: run `lifedrift sweep` first")
    order = {name: place for place, name in enumerate(COLOURS)}
    records.sort(key=lambda record: order.get(record["description"]["policy"], len(order)))
    return records


def _load(file: Path) -> Record:
    try:
        record = json.loads(file.read_text())
        _ = record["description"]["env"], record["description"]["policy"]
        _ = record["histograms"]["score"]["counts"], record["score"]["mean"], record["steps"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is damaged ({error}): run its sweep again") from None
    return record


def overview(summaries: Iterable[Summary | Record]) -> Figure:
    """One row a task: the score's histogram, then the mean trajectory of each variable.

    Args:
        summaries: of any tasks and policies, one for each pair, in the order to draw. Those
            that did not watch steps are in the histograms only.

    Raises:
        ValueError: there are none, or two of the same task and policy.
    """
    tasks = _by_task(summaries)
    styles = _styles(tasks)
    panels = max(len(_variables(records)) for records in tasks.values())
    figure, axes = _grid(len(tasks), 1 + panels, first_width=2.2)
    for row, records in zip(axes, tasks.values(), strict=True):
        _draw_scores(row[0], records, styles)
        _draw_variables(row[1:], records, styles)
    _finish(
        figure, axes[:, 0], tasks, styles, [_mean_marker(), *(_guides(tasks) if panels else [])]
    )
    return figure


def score_histograms(summaries: Iterable[Summary | Record]) -> Figure:
    """One panel a task: how the score is distributed under each policy. See `overview`."""
    tasks = _by_task(summaries)
    styles = _styles(tasks)
    figure, axes = _grid(1, len(tasks))
    for axis, records in zip(axes[0], tasks.values(), strict=True):
        _draw_scores(axis, records, styles)
    _finish(figure, axes[0], tasks, styles, [_mean_marker()])
    return figure


def mean_trajectories(summaries: Iterable[Summary | Record]) -> Figure:
    """One row a task, one panel a variable: its mean and spread at each step. See `overview`.

    Raises:
        ValueError: also if no summary holds steps.
    """
    tasks = _by_task(summaries)
    styles = _styles(tasks)
    panels = max(len(_variables(records)) for records in tasks.values())
    if not panels:
        raise ValueError("no summary holds steps: sweep with steps=True")
    figure, axes = _grid(len(tasks), panels)
    for row, records in zip(axes, tasks.values(), strict=True):
        _draw_variables(row, records, styles)
    _finish(figure, axes[:, 0], tasks, styles, _guides(tasks))
    return figure


def _by_task(summaries: Iterable[Summary | Record]) -> Tasks:
    tasks: Tasks = {}
    for summary in summaries:
        record = summary.to_dict() if isinstance(summary, Summary) else summary
        task, policy = record["description"]["env"], record["description"]["policy"]
        if policy in tasks.setdefault(task, {}):
            raise ValueError(f"two summaries are of policy {policy} on {task}: draw one of them")
        tasks[task][policy] = record
    if not tasks:
        raise ValueError("there are no summaries to draw")
    return tasks


def _variables(records: Records) -> list[str]:
    """Names of the variables that any of the sweeps watched, in order."""
    return list(dict.fromkeys(name for record in records.values() for name in record["steps"]))


def _styles(tasks: Tasks) -> dict[str, Style]:
    """Policy -> the style of its lines; none twice while there are enough."""
    styles: dict[str, Style] = {}
    for policy in dict.fromkeys(policy for records in tasks.values() for policy in records):
        if policy in COLOURS:
            styles[policy] = {"color": COLOURS[policy], "linestyle": "-"}
            continue
        first = crc32(policy.encode()) % len(OTHER_STYLES)
        choice = [*OTHER_STYLES[first:], *OTHER_STYLES[:first]]
        styles[policy] = next((s for s in choice if s not in styles.values()), choice[0])
    return styles


def _grid(rows: int, columns: int, first_width: float = 1.0) -> tuple[Figure, np.ndarray]:
    """A figure and its axes [rows, columns], the first column `first_width` times as wide."""
    size = WIDTH, 0.6 + ROW_HEIGHT * rows
    figure = Figure(size, DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    widths = [first_width, *[1.0] * (columns - 1)]
    axes = figure.subplots(rows, columns, squeeze=False, width_ratios=widths)
    for axis in axes.flat:
        axis.tick_params(labelsize=SMALL, length=2.5, pad=2)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _draw_scores(axis: Axes, records: Records, styles: Mapping[str, Style]) -> None:
    """Densities on a square-root scale, so that a narrow peak does not flatten the others."""
    edges = np.linspace(0, 1, SCORE_BINS + 1)
    peak = 1.0
    for policy, record in records.items():
        style = styles[policy]
        counts = np.asarray(record["histograms"]["score"]["counts"])
        density = counts.reshape(SCORE_BINS, -1).sum(axis=1) * (SCORE_BINS / max(counts.sum(), 1))
        peak = max(peak, density.max())
        axis.stairs(density, edges, fill=True, color=style["color"], alpha=0.1)
        axis.stairs(density, edges, linewidth=1.2, **style)
        if (mean := record["score"]["mean"]) is not None:
            place = axis.get_xaxis_transform()
            axis.plot(mean, 0.96, "v", color=style["color"], ms=5, transform=place, clip_on=False)
    axis.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))
    axis.set_xlim(-0.01, 1.01)  # narrow peaks at the ends stay whole
    axis.set_ylim(0, 1.25 * peak)  # room for the marks of the means
    axis.set_xlabel("score", fontsize=NORMAL)
    axis.set_ylabel("density (√ scale)", fontsize=NORMAL)


def _draw_variables(axes: np.ndarray, records: Records, styles: Mapping[str, Style]) -> None:
    """One panel a variable, of all sweeps that watched it; panels left over are blank."""
    names = _variables(records)
    for axis in axes[len(names) :]:
        axis.set_axis_off()
    shares = True  # the first panel runs from 0 to 1
    for axis, name in zip(axes, names, strict=False):
        watched = {p: r["steps"][name] for p, r in records.items() if name in r["steps"]}
        top = _top(watched.values())
        shares = top == 1 if axis is axes[0] else shares
        for policy, series in watched.items():
            _draw_variable(axis, series, styles[policy], top)
        for limit in _limits(records.values(), name):
            axis.axhline(limit, zorder=0, **GUIDE)
        axis.set_ylim(-0.02 * top, 1.02 * top)
        if top == 1:
            axis.set_yticks([0, 0.5, 1])
        else:
            axis.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        told = axis is not axes[0] and top == 1 and shares  # by the first panel's numbers
        axis.tick_params(labelleft=not told)
        axis.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], integer=True))
        axis.set_xlabel("step", fontsize=NORMAL)
        axis.set_title(name.replace("_", " "), fontsize=NORMAL)
    if names:
        axes[0].set_ylabel("value in [0, 1]" if shares else "value", fontsize=NORMAL)


def _top(all_series: Iterable[Series]) -> float:
    """The end of a variable's panel: 1, or what holds the bands of one that goes beyond."""
    means, ends = [1.0], [1.0]
    for series in all_series:
        _, mean, sd = _taken(series)
        means.append(mean.max())
        ends.append((mean + sd).max())
    return 1.0 if max(means) <= 1 else max(ends)


def _taken(series: Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps that some episode took, and the mean and spread of a variable after them."""
    taken = np.asarray(series["count"]) > 0
    mean, sd = np.asarray(series["mean"])[taken], np.asarray(series["sd"])[taken]
    return np.flatnonzero(taken), mean, sd


def _draw_variable(axis: Axes, series: Series, style: Style, top: float) -> None:
    step, mean, sd = _taken(series)
    low, high = np.clip(mean - sd, 0, top), np.clip(mean + sd, 0, top)
    axis.fill_between(step, low, high, color=style["color"], alpha=0.13, linewidth=0)
    axis.plot(step, mean, linewidth=1.4, **style)


def _limits(records: Iterable[Record], name: str) -> set[float]:
    """The params' limits of a variable, such as the fatigue above which the cascade strikes."""
    params = (record["description"]["params"] for record in records)
    return {p[LIMITS[name]] for p in params if LIMITS.get(name) in p}


def _finish(
    figure: Figure,
    first_axes: np.ndarray,
    tasks: Tasks,
    styles: Mapping[str, Style],
    guides: Sequence[Artist],
) -> None:
    """Name the task of each of `first_axes` and put the legend above all panels."""
    for axis, task in zip(first_axes, tasks, strict=True):
        name = task.rpartition("/")[2].replace("_", " ").replace("-v", " v")
        below = "\n" if axis.get_title() else ""
        axis.set_title(name + below, loc="left", fontsize=NORMAL + 1, fontweight="bold")
    handles = [*(Line2D([], [], label=p, **style) for p, style in styles.items()), *guides]
    # As many rows as the words need; a legend fills its columns first, so deal the handles out.
    words = sum(8 + len(str(handle.get_label())) for handle in handles)
    columns = ceil(len(handles) / ceil(words / LEGEND_CHARACTERS))
    dealt = [handle for column in range(columns) for handle in handles[column::columns]]
    legend = {"fontsize": NORMAL, "frameon": False, "handlelength": 2.4}
    figure.legend(handles=dealt, loc="outside upper center", ncols=columns, **legend)


def _mean_marker() -> Artist:
    return Line2D([], [], color=GUIDE["color"], marker="v", ms=5, linestyle="", label="mean score")


def _guides(tasks: Tasks) -> list[Artist]:
    """Legend entries of what the panels of variables show beside the policies."""
    guides: list[Artist] = [Patch(color="0.45", alpha=0.25, label="mean ± 1 sd over episodes")]
    for name, field in LIMITS.items():
        if any(_limits(records.values(), name) for records in tasks.values()):
            label = f"{field.replace('_', ' ')} ({name})"
            guides.append(Line2D([], [], label=label, **GUIDE))
    return guides
