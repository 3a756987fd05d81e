"""What the command line shows: tables on stdout, progress on stderr. Needs the extra `cli`."""

import io
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from rich import box, progress
from rich.console import Console
from rich.table import Table

from lifedrift_jax.names import spaced
from lifedrift_jax.summary import Mean, Summary

Report = Callable[..., None]  # called with (done, in all, note to show="")
Meter = Callable[[str, int], AbstractContextManager[Report]]  # of (label, in all)

PLAIN_SECONDS = 5  # between two lines of progress where there is no terminal
PAPER = 300  # width of a table that no terminal limits, characters
NARROWEST = 116  # a terminal narrower than this breaks the lines itself


@contextmanager
def progress_bars(unit: str = "episodes") -> Iterator[Meter]:
    """Show progress on stderr: bars on a terminal, else a line now and then.

    Args:
        unit: what is counted, in the plural.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda label, total: _lines(label, total, unit)
        return
    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=20),
        progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console) as bars:

        @contextmanager
        def meter(label: str, total: int) -> Iterator[Report]:
            bar, rate = bars.add_task(label, total=total, rate=""), _speedometer()

            def report(done: int, total: int, note: str = "") -> None:
                speed = rate(done)
                told = [f"{speed:,.0f} {unit}/s"] if speed else []
                bars.update(bar, completed=done, rate=", ".join([*told, *filter(None, [note])]))

            try:
                yield report
            except BaseException:  # what comes is an error's line, alone
                bars.remove_task(bar)
                raise
            bars.update(bar, completed=total)

        yield meter


@contextmanager
def _lines(label: str, total: int, unit: str) -> Iterator[Report]:
    """A line every few seconds, and one at the end."""
    rate, told, last_note = _speedometer(), time.monotonic(), ""

    def report(done: int, total: int, note: str = "") -> None:
        nonlocal told, last_note
        speed, last_note = rate(done), f", {note}" if note else ""
        if speed and done < total and time.monotonic() - told >= PLAIN_SECONDS:
            told = time.monotonic()
            left = f"{speed:,.0f} {unit}/s, {(total - done) / speed:,.0f} s left{last_note}"
            print(f"{label}: {done:,} of {total:,} {unit}, {left}", file=sys.stderr, flush=True)

    yield report
    print(f"{label}: {total:,} {unit} done{last_note}", file=sys.stderr, flush=True)


def _speedometer() -> Callable[[int], float]:
    """A function of how much is done: units per second since its first call, 0 if unknown.

    So the time to compile, and what an earlier process has done, are left out.
    """
    first: tuple[float, int] | None = None

    def rate(done: int) -> float:
        nonlocal first
        now = time.monotonic()
        first = first or (now, done)
        return (done - first[1]) / (now - first[0]) if now > first[0] else 0.0

    return rate


def episode_table(record: Mapping[str, Any]) -> Table:
    """One row a step of a `record.episode_record`, the start first; values are after the step."""
    clock = ["time of day"] if "time_of_day" in record["start"]["view"] else []
    columns = ("step", *clock, "action", *record["start"]["variables"], "reward")
    rows, occurred = [], dict.fromkeys(record["events"], False)
    for number, step in enumerate((record["start"], *record["steps"])):
        first = [f"first {name}" for name in occurred if step["events"][name] > occurred[name]]
        occurred = step["events"]
        rows.append(
            (
                number,
                *([spaced(step["view"]["time_of_day"])] if clock else []),
                step["action"] if number else "",
                *(f"{value:.3f}" for value in step["variables"].values()),
                f"{step['reward']:+.3f}" if number else "",
                "; ".join([*_told(step["view"]), *first]),
            )
        )
    return table((*columns, "what happened"), rows)


def _told(view: Mapping[str, Any]) -> list[str]:
    """What an observation in words says of the last step."""
    if "last_action_outcome" in view:
        return [view["last_action_outcome"]]
    return view.get("recent_actions", [])[-1:]


def sweep_table(summaries: Sequence[Summary], beside: Sequence[Mapping[str, str]] = ()) -> Table:
    """One row a sweep: task, policy, episodes, means with intervals, events, median.

    The family is left out of the task where all are of one family.

    Args:
        summaries: the sweeps.
        beside: further columns of each row, name -> text; empty where a row has none.
    """
    families = {summary.description["env"].partition("/")[0] for summary in summaries}
    shared = f"{families.pop()}/" if len(families) == 1 else ""
    events = list(dict.fromkeys(name for summary in summaries for name in summary.events))
    beside = beside or [{}] * len(summaries)
    further = list(dict.fromkeys(name for row in beside for name in row))
    columns = (
        "task",
        "policy",
        "episodes",
        "mean score ± 95%",
        "mean return ± 95%",
        *events,
        *further,
        "median score",
    )
    rows = [
        (
            summary.description["env"].removeprefix(shared),
            summary.description["policy"],
            f"{summary.episodes:,}",
            measured(summary.score),
            measured(summary.episode_return),
            *(f"{summary.events[e].share:.1%}" if e in summary.events else "" for e in events),
            *(row.get(name, "") for name in further),
            f"{summary.score.quantiles['0.5']:.3f}",
        )
        for summary, row in zip(summaries, beside, strict=True)
    ]
    return table(columns, rows)


def measured(estimate: Mean) -> str:
    """The mean of one or more episodes +- half its 95% interval, to two digits of that."""
    if estimate.interval is None:
        return f"{estimate.mean:.4f}"
    half = (estimate.interval[1] - estimate.interval[0]) / 2
    digits = min(max(1 - math.floor(math.log10(half)), 0), 6) if half else 4
    return f"{estimate.mean:.{digits}f} ± {half:.{digits}f}"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A table of the rows' texts; columns of numbers are set to the right, the last may wrap."""
    made = Table()
    for place, column in enumerate(columns):
        numbers = all(re.match(r"[-+]?\d|$", str(row[place])) for row in rows)
        last = place == len(columns) - 1
        made.add_column(column, justify="right" if numbers else "left", no_wrap=not last)
    for row in rows:
        made.add_row(*map(str, row))
    return made


def print_table(made: Table) -> None:
    """Print a table to stdout, as wide as it needs where that is no terminal."""
    made.box, made.show_edge, made.pad_edge = box.SIMPLE_HEAD, False, False
    width = max(_console().width, NARROWEST) if sys.stdout.isatty() else PAPER
    _console(width=width).print(made)


def write_table(made: Table, file: Path) -> None:
    """Write a table as Markdown."""
    made.box, made.show_edge, made.pad_edge = box.MARKDOWN, True, True
    text = io.StringIO()
    _console(file=text, width=PAPER).print(made)
    lines = (line.strip() for line in text.getvalue().splitlines())
    file.write_text("\n".join(filter(None, lines)) + "\n", encoding="utf-8")


def _console(**options: Any) -> Console:
    return Console(markup=False, emoji=False, highlight=False, **options)
