"""Solve the built-in tasks of LifeStack at every difficulty.

    python benchmarks/solve_life_stack.py [--out lifedrift_jax/data/life_stack.json]

Prints a table of all tasks and writes what the package needs of it, so that making a built-in
task takes no search. To be run again whenever the table of tasks, their texts or the rules
change. Exit code 1, and nothing written, if a task has no exact solution or no success.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lifedrift_jax.life_stack import Capacity, Solution, Task, compile_task, describe, solve, texts
from lifedrift_jax.life_stack.library import DIFFICULTIES, FILE, NAMES, build
from lifedrift_jax.run_folder import write_json

OUT = Path(__file__).parents[1] / "lifedrift_jax" / "data" / FILE


def solved(task: Task) -> tuple[Solution, str]:
    """The solution of a task, and what it does first."""
    params = compile_task(task, best_return=1.0)  # the search does not look at it
    solution = solve(params, Capacity())
    first = int(solution.plan.action[solution.plan.children[0, 0]])
    return solution, describe.action_names(params)[first]


def figures(task: Task, solution: Solution) -> dict[str, Any]:
    """What is written of a task."""
    return {
        "best_return": solution.expected_return,
        "success": solution.success,
        "with_hindsight": solution.with_hindsight,
        "without_inspection": solution.without_inspection,
        "digest": texts.number(task),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Solve, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="the JSON file to write")
    args = parser.parse_args(argv)
    table, failed = {}, []
    heads = ("best return", "success", "hindsight", "no inspection", "steps", "states", "s")
    print(f"{'task':20}" + "".join(f"{head:>14}" for head in heads) + "  first action")
    for name in NAMES:
        for difficulty in DIFFICULTIES:
            began, task = time.perf_counter(), build(name, difficulty)
            solution, first = solved(task)
            row = figures(task, solution)
            numbers = "".join(f"{row[key]:14.3f}" for key in list(row)[:4])
            effort = f"{task.horizon:14}{solution.num_states:14}{time.perf_counter() - began:14.1f}"
            print(f"{name + '/' + str(difficulty):20}{numbers}{effort}  {first}", flush=True)
            table[f"{name}/{difficulty}"] = row
            if not solution.exact or solution.success <= 0:
                failed.append(f"{name}/{difficulty}")
    if failed:
        print(f"not solved: {', '.join(failed)}")
        return 1
    write_json(args.out, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
