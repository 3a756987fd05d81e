"""The wall time that training takes until greedy play is good enough, and its statistics.

A run that has not come to the target after `cap` steps is stopped and counts as the time it
took until there. Where the median run is a stopped one, the median is a lower bound.
"""

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax

from benchmarks.learners import Learner

Row = dict[str, Any]

# (ours is a lower bound, theirs is one) -> what the true ratio is to theirs / ours; ?: unknown
SIGNS = {(False, False): "=", (False, True): ">=", (True, False): "<=", (True, True): "?"}


@dataclass(frozen=True)
class Finish:
    """How a run ended.

    Attributes:
        seed: of the run.
        target: the score it was to reach.
        reached: False = stopped by the cap.
        seconds: of training until then, compiling and scoring left out.
        steps: environment steps until then.
        score: the last one.
    """

    seed: int
    target: float
    reached: bool
    seconds: float
    steps: int
    score: float


def run(learner: Learner, seed: int, targets: Sequence[float], cap: int) -> list[Finish]:
    """Train through ascending targets, or until `cap` environment steps are done.

    Returns:
        for each target when a score was first at least that.
    """
    finishes = []
    began = time.perf_counter()
    state = jax.block_until_ready(learner.start(seed))
    seconds, steps, score = time.perf_counter() - began, 0, float("-inf")
    for target in targets:
        while score < target and steps < cap:
            began = time.perf_counter()
            state = jax.block_until_ready(learner.advance(state))
            seconds += time.perf_counter() - began
            steps, score = steps + learner.steps, learner.score(state)
        finishes.append(Finish(seed, target, score >= target, seconds, steps, score))
    return finishes


def summary(learner: Learner, finishes: Sequence[Finish]) -> Row:
    """Medians over a learner's runs to one target; `lower_bound`: the median was stopped."""
    seconds = statistics.median(finish.seconds for finish in finishes)
    reached = sum(finish.reached for finish in finishes)
    return {
        "name": learner.name,
        "target": finishes[0].target,
        "training": seconds,
        "with_compile": seconds + learner.compile_seconds,
        "compile_seconds": learner.compile_seconds,
        "steps": statistics.median(finish.steps for finish in finishes),
        "reached": reached,
        "lower_bound": 2 * reached <= len(finishes),
        "steps_between_scores": learner.steps,
        "runs": [asdict(finish) for finish in finishes],
    }


def times_faster(rows: Sequence[Row]) -> list[Row]:
    """How much faster each of ours, `rows[:-1]`, is than the last one: their ratios of
    training and with_compile seconds, and what bound of the true ratio they are.
    """
    *ours, theirs = rows
    return [
        {
            "target": theirs["target"],
            "ours": row["name"],
            "seconds": kind,
            "sign": SIGNS[row["lower_bound"], theirs["lower_bound"]],
            "ratio": theirs[kind] / row[kind],
        }
        for row in ours
        for kind in ("training", "with_compile")
    ]


def met(comparison: Row, bar: float) -> bool | None:
    """Whether the true ratio is at least `bar`; None if its bound leaves that open."""
    above = comparison["ratio"] >= bar
    return above if comparison["sign"] in ("=", ">=" if above else "<=") else None


def print_rows(rows: Sequence[Row], ratios: Sequence[Row]) -> None:
    """One line a learner, medians to one target; then how much faster ours are."""
    title = f"to {rows[0]['target']:g} of the return"
    print(f"\n{title:>22}   training   + compile    k steps  reached")
    for r in rows:
        sign = ">" if r["lower_bound"] else " "
        seconds = f"{sign}{r['training']:8.2f} s {sign}{r['with_compile']:8.2f} s"
        reached = f"{r['reached']} of {len(r['runs'])}"
        print(f"{r['name']:>22} {seconds} {r['steps'] / 1e3:10.0f}  {reached:>7}")
    for r in ratios:
        seconds = r["seconds"].replace("_", " ")
        print(f"{rows[-1]['name']} / {r['ours']}, {seconds}: {r['sign']} {r['ratio']:.2f}")
