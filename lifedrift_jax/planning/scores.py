"""Reference scores: what gives a score its scale.

`data/references.json` holds, for an id, the mean scores of random play, of the family's
heuristic and of the best planner there is, each with its 95% interval, and the command that
measured them. It is written by `lifedrift references`.
"""

import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from lifedrift_jax.names import unknown
from lifedrift_jax.registry import resolve
from lifedrift_jax.run_folder import write_json
from lifedrift_jax.summary import Summary

FILE = "references.json"
# What is referred to -> the policy that stands for it.
POLICIES = {"random": "random", "heuristic": "heuristic", "optimum": "planner"}


def references(env_id: str) -> dict[str, Any]:
    """The reference scores of an id.

    Args:
        env_id: an environment id; without a version, of the newest one.

    Returns:
        "random", "heuristic" and "optimum" -> {"policy", "episodes", "score", "interval"},
        and "command". "optimum" is the score of the strongest planner known, a lower bound
        of what the best policy scores.

    Raises:
        ValueError: no such id, or none with reference scores; lists those there are.
    """
    env_id, known = resolve(env_id), _table()
    if env_id not in known:
        raise unknown("reference scores for", env_id, known)
    return known[env_id]


def normalized_score(env_id: str, score: float) -> float:
    """A mean score on the scale where 0 is random play and 1 the optimum.

    (score - random) / (optimum - random), of `references(env_id)`. Below 0 is worse than
    random play; above 1 better than the planner. Only for the id's own params.

    Args:
        env_id: an environment id.
        score: a mean grade, in [0, 1].

    Raises:
        ValueError: as `references` does.
    """
    known = references(env_id)
    low, high = known["random"]["score"], known["optimum"]["score"]
    return (score - low) / (high - low)


def has_references(env_id: str) -> bool:
    """Whether an id has reference scores."""
    return env_id in _table()


def write(file: Path, summaries: Sequence[Summary], command: str) -> None:
    """Write what sweeps of all POLICIES measured, beside what the file holds of other ids.

    Args:
        file: a JSON file, perhaps there already.
        summaries: of sweeps of registered ids.
        command: what was run, kept with the figures.
    """
    table = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    names = {policy: name for name, policy in POLICIES.items()}
    for summary in summaries:
        env_id, policy = summary.description["env"], summary.description["policy"]
        entry = table.setdefault(env_id, {})
        entry[names[policy]] = {
            "policy": policy,
            "episodes": summary.score.count,
            "score": summary.score.mean,
            "interval": summary.score.interval,
        }
        entry |= {"command": command, "jax": summary.description["jax"]}
    write_json(file, table)


@cache
def _table() -> dict[str, dict[str, Any]]:
    text = resources.files("lifedrift_jax").joinpath("data", FILE).read_text(encoding="utf-8")
    return json.loads(text)
