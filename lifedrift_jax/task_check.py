"""What a LifeStack task comes to: its exact optimum, and a picture of the best play over time."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax import rng, rollout
from lifedrift_jax.baselines.life_stack import optimal
from lifedrift_jax.life_stack import (
    LifeStack,
    LifeStackEnv,
    Params,
    Solution,
    Task,
    compile_task,
    solve,
)

# What a picture's cell says of a route in a step.
LEGEND = "o acted on, @ completed, . open, x closed, ! happens"


def check(task: Task, seed: int = 0) -> list[str]:
    """Compile and solve a task, and tell it in lines of text.

    Args:
        task: any task that fits the default capacity.
        seed: of the episode that is drawn, in [0, 2**32); it matters where something is drawn.

    Raises:
        ValueError: the task makes no sense; names the field, the value and what is legal.
    """
    env = LifeStack()
    params = compile_task(task, env.capacity)
    solution = solve(params, env.capacity)
    lines = [*_facts(task), *_worth(solution)]
    if solution.exact:
        lines += ["", f"the best play, seed {seed}:", *picture(task, env, params, seed)]
    return lines


def _facts(task: Task) -> list[str]:
    counts: dict[str, Sequence | dict] = {
        "routes": task.viable_routes,
        "milestones": task.milestones,
        "events": task.event_schedule,
        "hidden keys": task.hidden_state,
    }
    told = ", ".join(f"{len(items)} {name}" for name, items in counts.items())
    deadline = task.constraints.get("deadline_step", "none")
    budget = task.constraints.get("budget_max", "none")
    limits = f"horizon {task.horizon}, deadline {deadline}, budget {budget}"
    return [f"{task.id} (difficulty {task.difficulty}): {task.goal}", told, limits]


def _worth(solution: Solution) -> list[str]:
    if not solution.exact:
        low, high = solution.expected_return, solution.upper_return
        return [f"best expected return in [{low:.3f}, {high:.3f}]: too many states to be exact"]
    figures = {
        "best expected return": solution.expected_return,
        "chance of success": solution.success,
        "without inspecting": solution.without_inspection,
        "with hindsight": solution.with_hindsight,
    }
    told = [f"{name:22}{value:8.3f}" for name, value in figures.items()]
    return [*told, f"{'states':22}{solution.num_states:8,}"]


def picture(task: Task, env: LifeStack, params: Params, seed: int = 0) -> list[str]:
    """Lines with a row for each route, for events and for other actions, and a column a step."""
    played = _played(task, env, params, seed)
    rows = {route.id: "" for route in task.viable_routes} | {"events": "", "other actions": ""}
    notes, fired = [], 0
    for number, (name, info) in enumerate(played):
        statuses = {route["id"]: route["status"] for route in info["view"]["routes"]}
        target = name.rpartition(":")[0]
        for route, status in statuses.items():
            rows[route] += _cell(status, rows[route], target == route)
        new = info["view"]["events"][fired:]
        fired += len(new)
        rows["events"] += "!" if new else " "
        rows["other actions"] += " " if target in statuses else "o"
        notes.append(f"{number:4}  {name}: {info['outcome']}")
    width = max(map(len, rows))
    steps = "".join(str(number % 10) for number in range(len(played)))
    drawn = [f"{name:{width}}  {row}".rstrip() for name, row in rows.items()]
    return [f"{'step':{width}}  {steps}", *drawn, f"({LEGEND})", *notes]


def _cell(status: str, before: str, acted: bool) -> str:
    if status == "completed":
        return "@" if acted else " "
    if status == "closed":
        return "o" if acted else "x"
    return "o" if acted else "."


def _played(
    task: Task, env: LifeStack, params: Params, seed: int
) -> Sequence[tuple[str, dict[str, Any]]]:
    """(name of the action, info of the step) of each step of the best play."""
    key = rng.episode_key(rng.root_key(seed), jnp.uint32(0))
    outcome, seen = jax.device_get(rollout.episode(key, env, optimal(env, params), params))
    play, steps = LifeStackEnv(env.capacity), []
    play.reset(task, seed)
    for action in np.asarray(seen.action)[: outcome.length].tolist():
        step = play.step(action)
        steps.append((str(step.info["view"]["last_action"]), step.info))
    return steps
