"""One episode as plain values, ready for JSON: all it takes to read, check and replay it."""

import dataclasses
import importlib
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax import __version__, rng, rollout
from lifedrift_jax.core import Env, Policy


def episode_record(
    env: Env, policy: Policy, params: Any, seed: int, index: int = 0, env_id: str | None = None
) -> dict[str, Any]:
    """Play episode `index` of `seed`, the same bits as in a sweep, and write all of it down.

    Args:
        env, policy, params: what to play; `env` bare, its family has a `describe` module.
        seed, index: which episode, integers in [0, 2**32).
        env_id: reported as the task.

    Returns:
        Plain Python values. "start" and each of "steps" hold "variables", "events" (so far)
        and "view" (what the agent sees, in words), after the step. A step also holds its
        "action" (None if there is no such), "action_index", "draws" (the noise for
        `env.advance`), "reward", "outcome" (a sentence) and flags. Beside them stand "env",
        "policy", "seed", "index", "params", versions, "score", "return", "finished", "events".

    Raises:
        ValueError: a seed or an index out of range.
    """
    root = rng.root_key(seed)
    if not 0 <= index < rng.SEED_LIMIT:
        raise ValueError(f"index is {index!r}: use an integer in [0, 2**32)")
    key = rng.episode_key(root, jnp.uint32(index))
    outcome, seen = jax.device_get(rollout.episode(key, env, policy, params))
    return {
        "env": env_id,
        "policy": policy.name,
        "seed": seed,
        "index": index,
        "params": _plain(params),
        "lifedrift_jax": __version__,
        "jax": jax.__version__,
        "backend": jax.default_backend(),
        **_steps(env, params, key, seen.action[: outcome.length], env_id),
        "score": float(outcome.score),
        "return": float(outcome.episode_return),
        "finished": bool(outcome.finished),
        "events": dict(zip(env.event_names, map(bool, outcome.events), strict=True)),
    }


def log_lines(record: dict[str, Any]) -> list[str]:
    """An `episode_record` as log lines: [START], a [STEP] for each step, [END].

    "success" says that the family's event of this name happened, or, where there is none, that
    the episode came to its end; scores and rewards have two decimals.
    """
    steps = record["steps"]
    rewards = [f"{step['reward']:.2f}" for step in steps]
    first = {"task": record["env"], "env": "lifedrift_jax", "model": record["policy"]}
    last = {
        "success": str(record["events"].get("success", record["finished"])).lower(),
        "steps": len(steps),
        "score": f"{record['score']:.2f}",
        "rewards": ",".join(rewards),
    }
    lines = [_log("START", first | {"seed": record["seed"]})]
    for number, (step, reward) in enumerate(zip(steps, rewards, strict=True), start=1):
        told = {
            "step": number,
            "action": step["action"],
            "reward": reward,
            "done": str(step["terminated"]).lower(),
            "error": "invalid_action" if step["invalid_action"] else "null",
        }
        lines.append(_log("STEP", told))
    return [*lines, _log("END", last)]


def _log(kind: str, fields: dict[str, Any]) -> str:
    return " ".join([f"[{kind}]", *(f"{name}={value}" for name, value in fields.items())])


def family_module(env: Env, name: str) -> ModuleType:
    """The module `name` (such as `describe`) of the family that a bare env belongs to."""
    return importlib.import_module(f"{type(env).__module__.rpartition('.')[0]}.{name}")


def _steps(
    env: Env, params: Any, key: jax.Array, actions: np.ndarray, env_id: str | None
) -> dict[str, Any]:
    """The start and the steps of an episode, its actions replayed."""
    describe = family_module(env, "describe")
    names = describe.action_names(params)

    def shown(state: Any) -> dict[str, Any]:
        variables = dict(
            zip(env.variable_names, map(float, env.variables(state, params)), strict=True)
        )
        view = describe.observation(state, params, task_id=env_id)
        events = dict(zip(env.event_names, map(bool, env.events(state, params)), strict=True))
        return {"variables": variables, "events": events, "view": view}

    _, state = env.reset(rng.reset_key(key), params)
    start, steps = shown(state), []
    for number, action in enumerate(actions):
        step_key = rng.step_key(key, number)
        step = env.step(step_key, state, action, params)
        known = 0 <= action < env.num_actions
        told = {
            "action": names[action] if known else None,
            "action_index": int(action),
            "draws": _plain(env.draw(step_key)),
            "reward": float(step.reward),
            "outcome": describe.outcome(state, action, step, params),
            "terminated": bool(step.terminated),
        }
        steps.append(told | _plain(step.info) | shown(step.state))
        state = step.state
    return {"start": start, "steps": steps}


def _plain(tree: Any) -> Any:
    """Records, named tuples, dicts and arrays as dicts, lists and Python numbers."""
    if dataclasses.is_dataclass(tree):
        tree = {f.name: getattr(tree, f.name) for f in dataclasses.fields(tree)}
    elif hasattr(tree, "_asdict"):
        tree = tree._asdict()
    if isinstance(tree, dict):
        return {name: _plain(value) for name, value in tree.items()}
    return np.asarray(tree).tolist()
