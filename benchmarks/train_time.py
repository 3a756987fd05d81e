"""Training time: our PPO against rejax's and Stable-Baselines3's, interleaved.

    python benchmarks/train_time.py [--parts PART ...] [--runs 5] [--out DIR]

speed: steps per second against rejax. target: wall time until greedy play is good. agents:
many agents one by one, in one vmap, in one map. progress: what the progress bar costs. sb3:
steps per second against Stable-Baselines3. A part runs in one process, one contestant after
the other and round again. Compilation comes before and is shown apart. Writes
DIR/train_time_PART.json.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax

from benchmarks import learners, time_to_target, trainers
from benchmarks.machine import ROOT, machine
from benchmarks.trainers import COMMON, ENV_ID, Contestant, common_config
from train.presets import preset

SPEED_BAR, TARGET_BAR, COMPILE_BAR = 1.25, 3.0, 10.0  # times, times, seconds; 2 CPU cores
PROGRESS_BAR = 0.02  # share of a run's time
COMMON_ENVS = 64  # of the learners with common numbers
SB3_SHARE = 16  # Stable-Baselines3 is slow: its runs are so many times shorter than ours
PACKAGES = ("flax", "optax", "gymnasium", "rejax", "stable_baselines3", "torch")
REJAX_HINT = "pip install rejax==0.1.3 in a virtual environment of its own, see the README"
SB3_HINT = "pip install stable-baselines3, after a CPU build of torch"

Row = dict[str, Any]


def race(contestants: Sequence[Contestant], runs: int) -> list[Row]:
    """Time contestants in turn, `runs` times each after a first one that does not count."""
    took: list[list[float]] = [[] for _ in contestants]
    for seed in range(runs + 1):
        for contestant, seconds in zip(contestants, took, strict=True):
            began = time.perf_counter()
            jax.block_until_ready(contestant.run(seed))
            seconds.append(time.perf_counter() - began)
    return [
        {
            "name": c.name,
            "steps_per_run": c.steps,
            "seconds": seconds[1:],
            "steps_per_second": c.steps / statistics.median(seconds[1:]),
            "compile_seconds": c.compile_seconds,
        }
        for c, seconds in zip(contestants, took, strict=True)
    ]


def speed_ratio(row: Row, other: Row) -> float:
    """How many times as fast `row` is as `other`: the median of the rounds' ratios."""
    rounds = zip(row["seconds"], other["seconds"], strict=True)
    share = row["steps_per_run"] / other["steps_per_run"]
    return statistics.median(share * theirs / own for own, theirs in rounds)


def speed(args: argparse.Namespace) -> Row:
    """Steps per second of ours and of rejax."""
    report = _against(args, lambda n: trainers.rejax(n, args.steps))
    bars = [
        _bar(
            f"ours / rejax, {r['envs']:,} envs",
            f"{r['ratio']:.2f}",
            f"at least {SPEED_BAR:g}",
            r["ratio"] >= SPEED_BAR,
        )
        for r in report["ratios"]
    ]
    slowest = max(r["compile_seconds"] for r in report["results"] if r["name"] == "ours")
    limit = f"at most {COMPILE_BAR:g} s"
    bars.append(_bar("compiling ours", f"{slowest:.2f} s", limit, slowest <= COMPILE_BAR))
    return report | {"bars": bars}


def sb3(args: argparse.Namespace) -> Row:
    """Steps per second of ours and of Stable-Baselines3."""
    return _against(args, lambda n: trainers.stable_baselines3(n, max(1, args.steps // SB3_SHARE)))


def _against(args: argparse.Namespace, other: Callable[[int], Contestant]) -> Row:
    """Results and ratios of ours and of another at each number of envs."""
    results: list[Row] = []
    ratios: list[Row] = []
    for n in args.envs:
        rows = race((trainers.ours(n, args.steps), other(n)), args.runs)
        ratio = speed_ratio(*rows)
        print(f"\n{f'{n:,} envs':>22}  k steps/s    compile")
        for r in rows:
            figures = f"{r['steps_per_second'] / 1e3:9.1f} {r['compile_seconds']:8.2f} s"
            print(f"{r['name']:>22}  {figures}")
        print(f"{'ratio':>22}  {ratio:9.2f}", flush=True)
        results += [{"envs": n, **row} for row in rows]
        ratios.append({"envs": n, "ours_over": rows[1]["name"], "ratio": ratio})
    return {"results": results, "ratios": ratios, "bars": []}


def target(args: argparse.Namespace) -> Row:
    """Wall time until greedy play has so much of the normalised return; a bar on the most."""
    common = common_config(COMMON_ENVS, args.cap)
    line_up = (
        learners.ours("ours, preset", *preset(ENV_ID), args.score_every),
        learners.ours("ours, common numbers", common, COMMON, args.score_every),
        learners.rejax("rejax, common numbers", common, args.score_every),
    )
    targets = sorted(set(args.targets))
    finishes: list[list[time_to_target.Finish]] = [[] for _ in line_up]
    for seed in range(args.runs):
        for learner, own in zip(line_up, finishes, strict=True):
            own += time_to_target.run(learner, seed, targets, args.cap)
    results: list[Row] = []
    ratios: list[Row] = []
    for target in targets:
        rows = [
            time_to_target.summary(learner, [f for f in own if f.target == target])
            for learner, own in zip(line_up, finishes, strict=True)
        ]
        faster = time_to_target.times_faster(rows)
        time_to_target.print_rows(rows, faster)
        results, ratios = results + rows, ratios + faster
    print(f"a run that is not there after {args.cap:,} steps counts as the time they took, >")
    bar = _bar(
        f"to {targets[-1]:g}, training, rejax / ours with its preset",
        f"{faster[0]['sign']} {faster[0]['ratio']:.2f}",
        f"at least {TARGET_BAR:g}",
        time_to_target.met(faster[0], TARGET_BAR),
    )
    return {"cap": args.cap, "results": results, "ratios": ratios, "bars": [bar]}


def agents(args: argparse.Namespace) -> Row:
    """Time per agent of many agents, one by one and in one program."""
    config, hyper = preset(ENV_ID)
    updates = args.agent_updates
    config = replace(config, total_updates=updates, eval_every=updates)
    rows = race(trainers.many(config, hyper, args.agents), args.runs)
    print(f"\n{f'{args.agents} agents':>22}  s an agent    compile  times as fast")
    for r in rows:
        r["seconds_per_agent"] = statistics.median(r["seconds"]) / args.agents
        r["times_as_fast"] = speed_ratio(r, rows[0])
        figures = f"{r['seconds_per_agent']:10.4f} {r['compile_seconds']:8.2f} s"
        print(f"{r['name']:>22}  {figures} {r['times_as_fast']:14.2f}", flush=True)
    return {"steps_per_agent": config.total_steps, "results": rows, "bars": []}


def progress(args: argparse.Namespace) -> Row:
    """What the progress bar costs."""
    rows = race(trainers.watched(), args.runs)
    share = 1 / speed_ratio(rows[1], rows[0]) - 1
    bar = _bar(
        "cost of the progress bar",
        f"{share:.1%}",
        f"under {PROGRESS_BAR:.0%}",
        share < PROGRESS_BAR,
    )
    return {"results": rows, "cost": share, "bars": [bar]}


PARTS = {"speed": speed, "target": target, "agents": agents, "progress": progress, "sb3": sb3}


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; refuses parts against rejax where there is none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    add("--runs", type=_positive, default=5, help="timed runs of each contestant; seeds of target")
    add("--envs", type=_positive, nargs="+", default=[64, 2048], help="speed, sb3")
    add("--steps", type=_positive, default=2**20, help="speed, sb3: env steps of a run")
    add("--targets", type=float, nargs="+", default=[0.94, 0.98], help="target: 1 = optimum")
    add("--score-every", type=_positive, default=8192, help="target: env steps between scores")
    add("--cap", type=_positive, default=10_000_000, help="target: env steps that end a run")
    add("--agents", type=_positive, default=64, help="agents: how many")
    add("--agent-updates", type=_positive, default=5, help="agents: updates of each")
    add("--out", type=Path, default=ROOT / "benchmarks" / "results")
    args = parser.parse_args(argv)
    against = [part for part in args.parts if part in ("speed", "target")]
    if against and find_spec("rejax") is None:
        parser.error(f"--parts has {' and '.join(against)}, against rejax: {REJAX_HINT}")
    return args


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no integer of at least 1")
    return int(text)


def _bar(what: str, value: str, bar: str, met: bool | None) -> Row:
    return {"what": what, "value": value, "bar": bar, "met": met}


def print_bars(bars: Sequence[Row]) -> None:
    """The verdict on each bar."""
    for b in bars:
        verdict = {True: "met", False: "NOT met", None: "open"}[b["met"]]
        print(f"{b['what']}: {b['value']}, bar {b['bar']}: {verdict}")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    args = arguments(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    where = {**machine(PACKAGES), "env": ENV_ID, "runs": args.runs}
    print(f"{where['cpu']}, {where['cores']} cores; JAX on {where['device']}")
    for part in dict.fromkeys(args.parts):
        if part == "sb3" and find_spec("stable_baselines3") is None:
            print(f"\nsb3 skipped: {SB3_HINT}")
            continue
        report = where | {"part": part} | PARTS[part](args)
        print_bars(report["bars"])
        path = args.out / f"train_time_{part}.json"
        path.write_text(json.dumps(report, indent=1) + "\n")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
