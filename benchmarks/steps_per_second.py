"""Steps per second: ours against gymnax, NumPy and a hand-written C limit, interleaved.

    python benchmarks/steps_per_second.py [--envs 2048 8192 65536] [--runs 7] [--out DIR]

Everything runs in one process, one contestant after the other and round again, so that a
busy moment of the machine hits all alike; only medians are compared. Compilation happens
before the timed runs and is reported apart. Writes DIR/steps_per_second.json and .png.
"""

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import contestants
from benchmarks.contestants import Contestant, Means
from benchmarks.machine import ROOT, machine

# (ours, theirs) -> least ours / theirs, best size of each, 2 CPU cores.
BARS = {
    ("ours", "CartPole-v1"): 4.0,
    ("ours", "C limit"): 0.2,
    ("TaskFlow", "Breakout-MinAtar"): 2.0,
    ("LifeStack", "Breakout-MinAtar"): 2.0,
}
OURS = ("ours", "TaskFlow", "LifeStack")
# group: (colour of the Okabe-Ito palette, marker)
STYLES = {
    "C limit": ("#000000", "s"),
    "ours": ("#D55E00", "o"),
    "ours, steps=True": ("#E69F00", "D"),
    "ours, sweep()": ("#CC79A7", "p"),
    "CartPole-v1": ("#0072B2", "^"),
    "Pendulum-v1": ("#56B4E9", "v"),
    "TaskFlow": ("#D55E00", "*"),
    "LifeStack": ("#D55E00", "H"),
    "Breakout-MinAtar": ("#0072B2", "P"),
    "NumPy": ("#009E73", "X"),
}


def measure(group: Sequence[Contestant], runs: int, seconds: float) -> list[dict[str, Any]]:
    """Time contestants in turn, `runs` times each, every run with other draws and at least
    about `seconds` long. One record a contestant, speeds in steps per second.
    """
    first = [_timed(c, 0, 1)[0] for c in group]
    calls = [_calls_for(c, seconds) for c in group]
    took: list[list[float]] = [[] for _ in group]
    means: list[Means | None] = [None for _ in group]
    for run in range(runs):
        for i, contestant in enumerate(group):
            elapsed, means[i] = _timed(contestant, 100 + run, calls[i])
            took[i].append(elapsed)
    return [
        {
            "group": c.group,
            "name": c.name,
            "steps_per_run": c.steps * calls[i],
            "seconds": took[i],
            "median": c.steps * calls[i] / statistics.median(took[i]),
            "best": c.steps * calls[i] / min(took[i]),
            "first_call_seconds": first[i],
            "mean_score_and_return": means[i],
        }
        for i, c in enumerate(group)
    ]


def _timed(contestant: Contestant, seed: int, calls: int) -> tuple[float, Means | None]:
    began = time.perf_counter()
    means = contestant.play(seed, calls)
    return time.perf_counter() - began, means


def _calls_for(contestant: Contestant, seconds: float) -> int:
    """How many calls take at least `seconds`, at the faster of two tries; also the warm-up."""
    calls = 1
    while (elapsed := min(_timed(contestant, seed, calls)[0] for seed in (1, 2))) < seconds:
        calls = max(calls + 1, math.ceil(1.2 * calls * seconds / elapsed))
    return calls


def ratios(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """ours / theirs from medians, at each number of environments and at the best of each."""
    speed: dict[str, dict[Any, float]] = {}  # group -> envs -> the group's fastest median
    for r in results:
        sizes = speed.setdefault(r["group"], {})
        sizes[r["envs"]] = max(sizes.get(r["envs"], 0.0), r["median"])
    for sizes in speed.values():
        sizes["best of each"] = max(sizes.values())
    return [
        {"ours": ours, "theirs": group, "envs": envs, "ratio": speed[ours][envs] / theirs}
        for group, sizes in speed.items()
        if group not in OURS
        for ours in rivals(group)
        if ours in speed
        for envs, theirs in sizes.items()
    ]


def rivals(group: str) -> list[str]:
    """Which of ours a group is compared with: those of its bars, else "ours"."""
    return [ours for ours, theirs in BARS if theirs == group] or ["ours"]


def bars(ratio_list: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Whether each bar is met; `met` is None for a contestant that was not there."""
    best = {(r["ours"], r["theirs"]): r["ratio"] for r in ratio_list if r["envs"] == "best of each"}
    return [
        {
            "ours": ours,
            "theirs": theirs,
            "bar": bar,
            "ratio": best.get((ours, theirs)),
            "met": best[ours, theirs] >= bar if (ours, theirs) in best else None,
        }
        for (ours, theirs), bar in BARS.items()
    ]


def print_results(results: list[dict[str, Any]]) -> None:
    """One line a contestant."""
    width = max(len(r["name"]) for r in results)
    print(f"{'envs':>7}  {'':{width}}  {'median':>8} {'best':>8}   first call   M steps/s")
    for r in results:
        median, best = r["median"] / 1e6, r["best"] / 1e6
        first = f"{r['first_call_seconds']:10.2f} s"
        print(f"{r['envs']:7d}  {r['name']:{width}}  {median:8.2f} {best:8.2f} {first}", flush=True)


def print_ratios(ratio_list: list[dict[str, Any]], bar_list: list[dict[str, Any]]) -> None:
    """Ratios of medians, then the verdict on each bar."""
    sizes = list(dict.fromkeys(r["envs"] for r in ratio_list))
    print("\nours / theirs".ljust(30), *(f"{size!s:>13}" for size in sizes))
    for pair in dict.fromkeys((r["ours"], r["theirs"]) for r in ratio_list):
        values = (r["ratio"] for r in ratio_list if (r["ours"], r["theirs"]) == pair)
        print(" / ".join(pair).ljust(29), *(f"{value:13.3f}" for value in values))
    print()
    for b in bar_list:
        verdict = {True: "met", False: "NOT met", None: "not measured"}[b["met"]]
        figure = "" if b["ratio"] is None else f" = {b['ratio']:.3f}"
        print(f"{b['ours']} / {b['theirs']}{figure}, bar {b['bar']:g}: {verdict}")


def plot(results: list[dict[str, Any]], path: Path, title: str) -> None:
    """Median steps per second against number of environments, both axes logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    sizes = sorted({r["envs"] for r in results})
    for group, (colour, marker) in STYLES.items():
        rows = [r for r in results if r["group"] == group]
        if rows:
            fastest = [max(r["median"] for r in rows if r["envs"] == n) for n in sizes]
            axes.plot(sizes, fastest, color=colour, marker=marker, label=group)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.set_xlabel("environments side by side")
    axes.set_ylabel("environment steps per second (median)")
    axes.set_title(title, fontsize="medium")
    axes.grid(which="both", alpha=0.25)
    figure.legend(loc="outside right upper", frameon=False)
    figure.savefig(path, dpi=150)


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, nargs="+", default=[2048, 8192, 65536])
    parser.add_argument("--runs", type=int, default=7, help="timed runs of each contestant")
    parser.add_argument("--seconds", type=float, default=0.25, help="least length of a timed run")
    others = [name for name in STYLES if name not in OURS]
    parser.add_argument(
        "--against",
        nargs="+",
        choices=others,
        default=others,
        metavar="NAME",
        help=f"time ours and these only, of: {', '.join(others)}",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    args = parser.parse_args(argv)
    for n in args.envs:
        if n < 1 or n % contestants.LANES:
            parser.error(f"--envs has {n}: use multiples of {contestants.LANES}")
    if args.runs < 1:
        parser.error(f"--runs is {args.runs}: use at least 1")
    return args


def line_up(
    num_envs: int, chosen: set[str], library: Any, notes: list[str]
) -> Iterator[Contestant]:
    """The chosen contestants that this machine has; a note for each one missing."""
    yield from contestants.ours(num_envs)
    yield from contestants.task_flow(num_envs)
    if "LifeStack" in chosen:  # it plays a call to be made
        yield from contestants.life_stack(num_envs)
    try:
        yield from contestants.gymnax(num_envs)
    except ImportError:
        notes.append("gymnax left out: pip install 'lifedrift_jax[bench]'")
    yield from contestants.numpy(num_envs)
    if library is not None:
        yield from contestants.limit(library, num_envs)


def main() -> None:
    """Measure, print, write."""
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {**machine(), "runs": args.runs}
    report["envs"] = {
        "ours": contestants.ENV_ID,
        "TaskFlow": contestants.TASK_FLOW_ID,
        "LifeStack": contestants.LIFE_STACK_ID,
    }
    print(f"{report['cpu']}, {report['cores']} cores; JAX on {report['device']}")
    notes: list[str] = []
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        try:
            library = contestants.compile_limit(Path(folder))
            report["gcc_seconds"] = time.perf_counter() - began
        except FileNotFoundError:
            library = None
            notes.append("C limit left out: no gcc on the path")
        for n in sorted(set(args.envs)):
            chosen = {"ours", *args.against, *(o for g in args.against for o in rivals(g))}
            group = [c for c in line_up(n, chosen, library, notes) if c.group in chosen]
            rows = [{"envs": n, **row} for row in measure(group, args.runs, args.seconds)]
            print_results(rows)
            results += rows
    report["results"], report["ratios"] = results, ratios(results)
    report["bars"], report["notes"] = bars(report["ratios"]), list(dict.fromkeys(notes))
    print_ratios(report["ratios"], report["bars"])
    print(*report["notes"], sep="\n")

    path = args.out / "steps_per_second.json"
    path.write_text(json.dumps(report, indent=1) + "\n")
    title = f"Random play: {report['cpu']}, {report['cores']} cores"
    print(f"wrote {path}")
    try:
        plot(results, path.with_suffix(".png"), title)
        print(f"wrote {path.with_suffix('.png')}")
    except ImportError:
        print("no picture without matplotlib: pip install 'lifedrift_jax[bench]'")


if __name__ == "__main__":
    main()
