"""The command line `lifedrift`; see `commands` for how commands are made."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lifedrift_jax import __version__
from lifedrift_jax.commands import CommandLine, Settings, settings


@dataclass(frozen=True)
class Envs:
    """List the environments, their horizons and sizes."""

    json: bool = False
    """print one JSON document"""


@dataclass(frozen=True)
class Policies:
    """List the policies and the families they play."""

    ids: tuple[str, ...]
    """environment ids; all, if there is none"""


@dataclass(frozen=True)
class Rollout:
    """Play one episode of a seed and show every step."""

    ids: tuple[str, ...]
    """environment ids, see `lifedrift envs`; a family's name stands for all its tasks"""
    policy: str = "random"
    """policy, see `lifedrift policies`"""
    seed: int | None = None
    """seed in [0, 2**32); by default the family's own, 42 for task_flow, else 0"""
    index: int = 0
    """number of the episode: a sweep with that seed plays the same one"""
    set: Settings = ()
    """parameters to replace, KEY=VALUE, such as cascade_threshold=0.9"""
    log: bool = False
    """print [START], [STEP] and [END] lines instead of a table"""
    json: bool = False
    """print one JSON document that holds all it takes to replay the episode (a list of
    them where there are several ids)"""


@dataclass(frozen=True)
class Sweep:
    """Play very many episodes and print a table; resume if killed."""

    ids: tuple[str, ...]
    """environment ids, see `lifedrift envs`; a family's name stands for all its tasks"""
    policy: tuple[str, ...] = ()
    """policies, comma separated; POLICY@N plays N episodes of that one (default: random)"""
    episodes: int = 10_000
    """episodes of each policy on each task"""
    out: Path = Path("runs")
    """folder of the results: OUT/FAMILY/TASK/POLICY/summary.json and OUT/table.md"""
    seed: int = 0
    """seed in [0, 2**32); episode i of it is the same in every sweep and rollout"""
    chunk_size: int | None = None
    """episodes of one compiled call; by default what fits the device"""
    rows: bool = False
    """also write one row an episode, episodes/*.parquet"""
    no_steps: bool = False
    """leave the statistics of single steps out: faster, but no trajectories to plot"""
    set: Settings = ()
    """parameters to replace, KEY=VALUE, such as cascade_threshold=0.9"""


@dataclass(frozen=True)
class References:
    """Measure the reference scores of tasks: random play, the heuristic, the planner."""

    ids: tuple[str, ...]
    """environment ids, see `lifedrift envs`; a family's name stands for all its tasks"""
    episodes: int = 100_000
    """episodes of random play and of the heuristic on each task"""
    planner_episodes: int = 4_000
    """episodes of the planner on each task"""
    seed: int = 0
    """seed in [0, 2**32)"""
    out: Path = Path("runs/references")
    """folder of the sweeps; what is played there is not played again"""
    file: Path = Path("references.json")
    """where they are written; the package reads lifedrift_jax/data/references.json"""


@dataclass(frozen=True)
class Plot:
    """Draw the scores and mean trajectories of sweeps as a PNG."""

    dir: Path
    """folder with the results of `lifedrift sweep`"""
    out: Path | None = None
    """the picture; by default DIR/sweep.png"""


@dataclass(frozen=True)
class Task:
    """Check a LifeStack task of your own: its faults, its exact optimum, its best play."""

    do: Literal["check"]
    """what to do with it"""
    file: Path
    """the task, JSON or YAML; see lifedrift_jax/data/task.schema.json"""
    seed: int = 0
    """seed of what is drawn in the play that is shown, in [0, 2**32)"""


def show_envs(command: Envs) -> None:
    """`lifedrift envs`."""
    from lifedrift_jax import terminal
    from lifedrift_jax.core import horizon
    from lifedrift_jax.registry import make, registered

    rows = []
    for env_id in registered():
        env, params = make(env_id)
        shape = "x".join(map(str, env.observation_space(params).shape))
        difficulty = str(_tables(env, "TASKS", {})[_task(env_id)].difficulty)
        rows.append((env_id, difficulty, horizon(params), shape, env.num_actions))
    columns = ("id", "difficulty", "steps", "observation", "actions")
    if command.json:
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1))
    else:
        terminal.print_table(terminal.table(columns, rows))


def show_policies(command: Policies) -> None:
    """`lifedrift policies`."""
    from lifedrift_jax import terminal
    from lifedrift_jax.baselines import policy_names
    from lifedrift_jax.registry import make, registered, resolve

    families: dict[str, dict[str, None]] = {}  # policy -> families, in order
    for env_id in map(resolve, command.ids or registered()):
        for name in policy_names(make(env_id)[0]):
            families.setdefault(name, {})[env_id.partition("/")[0]] = None
    rows = [(name, ", ".join(names)) for name, names in families.items()]
    terminal.print_table(terminal.table(("policy", "families"), rows))


def show_rollout(command: Rollout) -> None:
    """`lifedrift rollout`."""
    from lifedrift_jax import terminal
    from lifedrift_jax.baselines import make_policy
    from lifedrift_jax.record import episode_record, log_lines

    if not command.ids:
        raise ValueError("rollout needs at least one id, see `lifedrift envs`")
    records = []
    for env_id in _expanded(command.ids):
        env, params = _make(env_id, command.set)
        policy = make_policy(command.policy, env, params)
        seed = _tables(env, "DEFAULT_SEED", 0) if command.seed is None else command.seed
        records.append(episode_record(env, policy, params, seed, command.index, env_id))
    if command.json:
        document = records if len(records) > 1 else records[0]
        print(json.dumps(document, indent=1, allow_nan=False))
        return
    for record in records:
        if command.log:
            print(*log_lines(record), sep="\n")
            continue
        terminal.print_table(terminal.episode_table(record))
        events = [f"with {name}" for name, occurred in record["events"].items() if occurred]
        result = f"score {record['score']:.4f}, return {record['return']:.4f}"
        print(result, *events, f"seed {record['seed']}, index {record['index']}", sep=", ")


def show_sweep(command: Sweep) -> None:
    """`lifedrift sweep`: play what is missing, then print and write the table."""
    from lifedrift_jax import terminal

    runs, summaries = _played(command)
    beside = [_beside(*pair, command) for pair in zip(runs, summaries, strict=True)]
    table = terminal.sweep_table(summaries, beside)
    terminal.print_table(table)
    terminal.write_table(table, command.out / "table.md")


def show_references(command: References) -> None:
    """`lifedrift references`: measure reference scores and write them to a file."""
    from lifedrift_jax.planning.scores import POLICIES, write

    counts = dict.fromkeys(POLICIES.values(), command.episodes) | {
        POLICIES["optimum"]: command.planner_episodes
    }
    policies = ",".join(f"{name}@{count}" for name, count in counts.items())
    sweep = Sweep(command.ids, (policies,), out=command.out, seed=command.seed)
    _, summaries = _played(sweep)
    write(command.file, summaries, "lifedrift " + " ".join(sys.argv[1:]))
    print(command.file)


def _played(command: Sweep) -> tuple[list["Run"], list[Any]]:
    """The runs of a sweep, and their summaries."""
    from lifedrift_jax import terminal
    from lifedrift_jax.sweep import sweep

    runs, summaries = _runs(command), []
    with terminal.progress_bars() as meter:
        for run in runs:
            task = run.env_id.partition("/")[2]
            with meter(f"{task} {run.policy.name}", run.episodes) as report:
                summary = sweep(
                    run.env,
                    run.policy,
                    run.params,
                    command.seed,
                    run.episodes,
                    chunk_size=command.chunk_size,
                    steps=not command.no_steps,
                    out=command.out / run.env_id / re.sub(r"[^\w.-]", "-", run.policy.name),
                    rows=command.rows,
                    env_id=run.env_id,
                    progress=report,
                )
            summaries.append(summary)
    return runs, summaries


def _beside(run: "Run", summary: Any, command: Sweep) -> dict[str, str]:
    """What stands beside a sweep's own figures: the score on the scale of its references,
    and what the family's source says of the same policy; both of unchanged params only.
    """
    from lifedrift_jax.planning.scores import has_references, normalized_score
    from lifedrift_jax.terminal import measured

    columns: dict[str, str] = {}
    source = _tables(run.env, "SOURCE", {})
    if source:
        columns["mean step reward ± 95%"] = measured(summary.step_reward)
    if command.set:
        return columns
    if has_references(run.env_id):
        columns["normalised"] = f"{normalized_score(run.env_id, summary.score.mean):.3f}"
    figures = source.get(run.policy.name, {}).get(_task(run.env_id))
    if figures is not None:
        columns["source: score"] = f"{figures.score:.2f}"
        columns["source: step reward"] = f"{figures.step_reward:.3f}"
    return columns


def show_plot(command: Plot) -> None:
    """`lifedrift plot`."""
    from lifedrift_jax import plots

    place = command.dir / "sweep.png" if command.out is None else command.out
    plots.overview(plots.load_summaries(command.dir)).savefig(place)
    print(place)


def show_task(command: Task) -> None:
    """`lifedrift task check`."""
    from lifedrift_jax import life_stack
    from lifedrift_jax.task_check import check

    print(*check(life_stack.Task.load(command.file), command.seed), sep="\n")


class Run(NamedTuple):
    """One policy on one task."""

    env_id: str
    env: Any
    params: Any
    policy: Any
    episodes: int


def _runs(command: Sweep) -> list[Run]:
    """What a sweep plays, everything named on the command line checked."""
    from lifedrift_jax.baselines import make_policy

    runs: dict[tuple[str, str], Run] = {}
    for env_id in _expanded(command.ids):
        env, params = _make(env_id, command.set)
        for text in ",".join(command.policy or ("random",)).split(","):
            name, at, count = text.strip().partition("@")
            if at and not count.isdecimal():
                raise ValueError(f"--policy {text}: use POLICY@N with N episodes")
            episodes = int(count) if at else command.episodes
            if episodes < 1:
                raise ValueError(f"episodes is {episodes}: it must be at least 1")
            run = Run(env_id, env, params, make_policy(name, env, params), episodes)
            if runs.setdefault((env_id, run.policy.name), run) is not run:
                raise ValueError(f"--policy names {run.policy.name} twice")
    if not runs:
        raise ValueError("sweep needs at least one id, see `lifedrift envs`")
    return list(runs.values())


def _make(env_id: str, texts: Settings) -> tuple[Any, Any]:
    """Env and params, with what --set says replaced."""
    from lifedrift_jax.registry import make

    return make(env_id, **settings("--set", texts))


def _expanded(names: Sequence[str]) -> list[str]:
    """Full ids, without repeats; the name of a family stands for the newest of its tasks."""
    from lifedrift_jax.registry import registered, resolve

    tasks: dict[str, dict[str, None]] = {}  # family -> its tasks, in order
    for env_id in registered():
        tasks.setdefault(env_id.partition("/")[0], {})[env_id.rpartition("-v")[0]] = None
    return list(dict.fromkeys(resolve(i) for name in names for i in tasks.get(name, [name])))


def _task(env_id: str) -> str:
    return env_id.partition("/")[2].rpartition("-v")[0]


def _tables(env: Any, name: str, default: Any) -> Any:
    """An entry of the tables of an env's family, `default` if it has none."""
    from lifedrift_jax.record import family_module

    return getattr(family_module(env, "tables"), name, default)


LINE = CommandLine(
    prog="lifedrift",
    description="A benchmark for planning under cognitive load (also: --version).",
    version=__version__,
    commands={
        Envs: show_envs,
        Policies: show_policies,
        Rollout: show_rollout,
        Sweep: show_sweep,
        References: show_references,
        Plot: show_plot,
        Task: show_task,
    },
    resumable=("sweep", "references"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. See `CommandLine.main`."""
    return LINE.main(argv)


if __name__ == "__main__":
    sys.exit(main())
