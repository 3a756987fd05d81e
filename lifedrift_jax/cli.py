"""The command line `lifedrift`; see `commands` for how commands are made."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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

    id: str
    """environment id, see `lifedrift envs`"""
    policy: str = "random"
    """policy, see `lifedrift policies`"""
    seed: int = 0
    """seed in [0, 2**32)"""
    index: int = 0
    """number of the episode: a sweep with that seed plays the same one"""
    set: Settings = ()
    """parameters to replace, KEY=VALUE, such as cascade_threshold=0.9"""
    json: bool = False
    """print one JSON document that holds all it takes to replay the episode"""


@dataclass(frozen=True)
class Sweep:
    """Play very many episodes and print a table; resume if killed."""

    ids: tuple[str, ...]
    """environment ids, see `lifedrift envs`"""
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
class Plot:
    """Draw the scores and mean trajectories of sweeps as a PNG."""

    dir: Path
    """folder with the results of `lifedrift sweep`"""
    out: Path | None = None
    """the picture; by default DIR/sweep.png"""


def show_envs(command: Envs) -> None:
    """`lifedrift envs`."""
    from lifedrift_jax import terminal
    from lifedrift_jax.core import horizon
    from lifedrift_jax.registry import make, registered

    rows = []
    for env_id in registered():
        env, params = make(env_id)
        shape = "x".join(map(str, env.observation_space(params).shape))
        rows.append((env_id, _difficulty(env, env_id), horizon(params), shape, env.num_actions))
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
    from lifedrift_jax.record import episode_record
    from lifedrift_jax.registry import resolve

    env_id = resolve(command.id)
    env, params = _make(env_id, command.set)
    policy = make_policy(command.policy, env)
    record = episode_record(env, policy, params, command.seed, command.index, env_id)
    if command.json:
        print(json.dumps(record, indent=1, allow_nan=False))
        return
    terminal.print_table(terminal.episode_table(record))
    events = [f"with {name}" for name, occurred in record["events"].items() if occurred]
    print(f"score {record['score']:.4f}, return {record['return']:.4f}", *events, sep=", ")


def show_sweep(command: Sweep) -> None:
    """`lifedrift sweep`: play what is missing, then print and write the table."""
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
    table = terminal.sweep_table(summaries)
    terminal.print_table(table)
    terminal.write_table(table, command.out / "table.md")


def show_plot(command: Plot) -> None:
    """`lifedrift plot`."""
    from lifedrift_jax import plots

    place = command.dir / "sweep.png" if command.out is None else command.out
    plots.overview(plots.load_summaries(command.dir)).savefig(place)
    print(place)


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
    from lifedrift_jax.registry import resolve

    runs: dict[tuple[str, str], Run] = {}
    for env_id in dict.fromkeys(map(resolve, command.ids)):
        env, params = _make(env_id, command.set)
        for text in ",".join(command.policy or ("random",)).split(","):
            name, at, count = text.strip().partition("@")
            if at and not count.isdecimal():
                raise ValueError(f"--policy {text}: use POLICY@N with N episodes")
            episodes = int(count) if at else command.episodes
            if episodes < 1:
                raise ValueError(f"episodes is {episodes}: it must be at least 1")
            run = Run(env_id, env, params, make_policy(name, env), episodes)
            if runs.setdefault((env_id, run.policy.name), run) is not run:
                raise ValueError(f"--policy names {run.policy.name} twice")
    if not runs:
        raise ValueError("sweep needs at least one id, see `lifedrift envs`")
    return list(runs.values())


def _make(env_id: str, texts: Settings) -> tuple[Any, Any]:
    """Env and params, with what --set says replaced."""
    from lifedrift_jax.registry import make, override

    overrides = settings("--set", texts)
    env, params = make(env_id)
    return env, override(params, **overrides)


def _difficulty(env: Any, env_id: str) -> str:
    from lifedrift_jax.record import family_module

    task = env_id.partition("/")[2].rpartition("-v")[0]
    return family_module(env, "tables").TASKS[task].difficulty


LINE = CommandLine(
    prog="lifedrift",
    description="A benchmark for planning under cognitive load (also: --version).",
    version=__version__,
    commands={
        Envs: show_envs,
        Policies: show_policies,
        Rollout: show_rollout,
        Sweep: show_sweep,
        Plot: show_plot,
    },
    resumable=("sweep",),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. See `CommandLine.main`."""
    return LINE.main(argv)


if __name__ == "__main__":
    sys.exit(main())
