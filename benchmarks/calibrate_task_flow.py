"""Calibrate the tiers of TaskFlow to the score table of its source text.

    python benchmarks/calibrate_task_flow.py [--episodes 100000] [--search 0] [--seed 0]

Measures, for each tier, the mean score and the mean step reward of the heuristic and of
random play, and the mean score of two naive policies, beside the source's figures and the
bars: scores within 0.03, mean step rewards within 0.05, naive policies below the heuristic.
With `--search N` it then tries N random changes of each tier's free numbers, keeps what
misses the bars by less (or, where all are met, leaves more room), and prints the rows to
write into `lifedrift_jax/task_flow/tables.py`. Exit code 1 if a bar is missed.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import lifedrift_jax as ld
from lifedrift_jax.baselines import make_policy
from lifedrift_jax.summary import Mean
from lifedrift_jax.sweep import sweep
from lifedrift_jax.task_flow import tables
from lifedrift_jax.terminal import measured

BARS = {"score": 0.03, "step reward": 0.05}
NAIVE = ("earliest_deadline", "delegate_all")
POLICIES = ("heuristic", "random", *NAIVE)
# What the text leaves open in a tier: a whole range is scaled, a number likewise.
FREE = ("energy_cost", "budget_cost", "value", "failure_health")
SPREAD = 0.08  # standard deviation of a change, relative
SEARCH_EPISODES = 8_192


def measure(env, params, episodes: int, seed: int) -> dict[str, tuple[Mean, Mean]]:
    """Policy -> its score and its mean reward of a step."""
    figures = {}
    for name in POLICIES:
        summary = sweep(env, make_policy(name, env), params, seed, episodes, steps=False)
        figures[name] = summary.score, summary.step_reward
    return figures


def misses(tier: str, figures: dict[str, tuple[Mean, Mean]]) -> dict[str, float]:
    """What each bar is missed by; below 0 = room left."""
    missed = {}
    for policy, source in tables.SOURCE.items():
        for (what, bar), found, right in zip(
            BARS.items(), figures[policy], source[tier], strict=True
        ):
            missed[f"{policy}, {what}"] = abs(found.mean - right) - bar
    for policy in NAIVE:
        ahead = figures[policy][0].mean - figures["heuristic"][0].mean
        missed[f"{policy} below heuristic"] = ahead
    return missed


def loss(missed: dict[str, float]) -> float:
    """What a search makes small: the sum of what is missed, then the least room."""
    return sum(max(x, 0) for x in missed.values()) + 1e-3 * max(missed.values())


def show(tier: str, figures: dict[str, tuple[Mean, Mean]]) -> bool:
    """Print a tier's figures; whether all bars are met."""
    for policy, (score, reward) in figures.items():
        source = tables.SOURCE.get(policy, {}).get(tier)
        beside = f"source {source.score:.2f} / {source.step_reward:.3f}" if source else ""
        text = f"score {measured(score)}  step reward {measured(reward)}"
        print(f"{tier:7} {policy:18} {text}  {beside}")
    failed = {name: x for name, x in misses(tier, figures).items() if x > 0}
    for name, x in failed.items():
        print(f"{tier:7} MISSED {name}, by {x:.4f}")
    return not failed


def changed(params, generator: np.random.Generator):
    """`params` with each free number scaled by a random factor."""
    factors = np.exp(SPREAD * generator.standard_normal(len(FREE)))
    scaled = zip(FREE, factors.astype(np.float32), strict=True)
    made = replace(params, **{name: getattr(params, name) * f for name, f in scaled})
    made.validate()
    return made


def search(tier: str, env, params, trials: int, seed: int):
    """The best params of a hill climb."""
    generator = np.random.default_rng(seed)
    best, least = params, loss(misses(tier, measure(env, params, SEARCH_EPISODES, seed)))
    for _ in range(trials):
        try:
            trial = changed(best, generator)
        except ValueError:  # a number out of its legal range
            continue
        missed = loss(misses(tier, measure(env, trial, SEARCH_EPISODES, seed)))
        if missed < least:
            best, least = trial, missed
    return best


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, perhaps search, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--search", type=int, default=0, help="changes tried in each tier")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    met = True
    for tier in tables.TASKS:
        env, params = ld.make(f"task_flow/{tier}-v0")
        if args.search:
            params = search(tier, env, params, args.search, args.seed)
            for name in FREE:
                print(f"{tier:7} {name} = {np.round(getattr(params, name), 4).tolist()}")
        met &= show(tier, measure(env, params, args.episodes, args.seed + 1))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
