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
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import lifedrift_jax as ld
from lifedrift_jax import rollout
from lifedrift_jax.baselines import make_policy
from lifedrift_jax.rng import IMPLEMENTATION
from lifedrift_jax.task_flow import tables

BARS = {"score": 0.03, "step reward": 0.05}
NAIVE = ("earliest_deadline", "delegate_all")
POLICIES = ("heuristic", "random", *NAIVE)
# What the text leaves open in a tier: a whole range is scaled, a number likewise.
FREE = ("energy_cost", "budget_cost", "value", "failure_health")
SPREAD = 0.08  # standard deviation of a change, relative
SEARCH_EPISODES = 8_192
CHUNK = 4_096  # episodes side by side


@partial(jax.jit, static_argnames=("env", "policy", "num_steps"))
def sums(seed, first, params, *, env, policy, num_steps):
    """Sums over a chunk of episodes: (score, step reward, their squares), [4]."""

    def one(index):
        key = ld.episode_key(jax.random.key(seed, impl=IMPLEMENTATION), index)
        outcome, _ = rollout.episode(key, env, policy, params, num_steps)
        return jnp.stack([outcome.score, outcome.episode_return / outcome.length])

    values = jax.vmap(one)(first + jnp.arange(CHUNK, dtype=jnp.uint32))
    return jnp.concatenate([values.sum(axis=0), (values**2).sum(axis=0)])


def measure(env, params, episodes: int, seed: int) -> dict[str, np.ndarray]:
    """Policy -> [2, 2]: rows score and step reward, columns mean and half of its 95% interval."""
    chunks, figures = -(-episodes // CHUNK), {}
    for name in POLICIES:
        play = partial(sums, env=env, policy=make_policy(name, env), num_steps=tables.MAX_STEPS)
        total = sum(
            np.asarray(play(np.uint32(seed), np.uint32(i * CHUNK), params), np.float64)
            for i in range(chunks)
        )
        mean, square = np.split(total / (chunks * CHUNK), 2)
        half = 1.96 * np.sqrt(np.maximum(square - mean**2, 0) / (chunks * CHUNK))
        figures[name] = np.stack([mean, half], axis=1)
    return figures


def misses(tier: str, figures: dict[str, np.ndarray]) -> dict[str, float]:
    """What each bar is missed by; below 0 = room left."""
    missed = {}
    for policy, source in tables.SOURCE.items():
        for row, (what, bar) in enumerate(BARS.items()):
            distance = abs(figures[policy][row, 0] - source[tier][row])
            missed[f"{policy}, {what}"] = distance - bar
    for policy in NAIVE:
        missed[f"{policy} below heuristic"] = figures[policy][0, 0] - figures["heuristic"][0, 0]
    return missed


def loss(missed: dict[str, float]) -> float:
    """What a search makes small: the sum of what is missed, then the least room."""
    return sum(max(x, 0) for x in missed.values()) + 1e-3 * max(missed.values())


def show(tier: str, figures: dict[str, np.ndarray]) -> bool:
    """Print a tier's figures; whether all bars are met."""
    for policy, ((score, score_half), (reward, reward_half)) in figures.items():
        source = tables.SOURCE.get(policy, {}).get(tier)
        beside = f"source {source.score:.2f} / {source.step_reward:.3f}" if source else ""
        text = f"{score:.4f} ± {score_half:.4f}  step reward {reward:.4f} ± {reward_half:.4f}"
        print(f"{tier:7} {policy:18} score {text}  {beside}")
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
