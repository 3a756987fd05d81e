"""The command line `python -m train`; see `lifedrift_jax.commands` for how commands are made."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lifedrift_jax import __version__
from lifedrift_jax.commands import CommandLine, Settings


@dataclass(frozen=True)
class Run:
    """Train PPO on a task; resume if killed."""

    id: tuple[str, ...]
    """environment id, see `lifedrift envs`; none with --resume"""
    seeds: int = 1
    """agents of each setting, one a seed"""
    seed: int = 0
    """the first seed, in [0, 2**32)"""
    sweep: Settings = ()
    """hyper-parameters to sweep, NAME=VALUE,VALUE,..., such as lr=1e-4,3e-4; all combinations"""
    objective: Literal["reward", "grade", "mix"] | None = None
    """what is maximised: the rewards, the score at the end, or their sum"""
    config: Settings = ()
    """sizes to replace, NAME=VALUE, such as total_updates=600; see train.PPOConfig"""
    hyper: Settings = ()
    """hyper-parameters to replace, NAME=VALUE; see train.Hyper"""
    set: Settings = ()
    """parameters of the environment to replace, NAME=VALUE"""
    no_preset: bool = False
    """begin from the defaults of PPOConfig and Hyper, not from the task's tuned preset"""
    out: Path | None = None
    """folder of the run; by default runs/train/ID"""
    resume: Path | None = None
    """folder of a run to go on with, all of whose options are used again"""
    chunk_size: int | None = None
    """agents of one compiled program; by default what fits --memory"""
    memory: float | None = None
    """GiB of each device that a chunk may take; by default a quarter of the machine's"""
    exact: bool = False
    """train the agents of a chunk one after another: results do not depend on the chunk"""
    split_envs: bool = False
    """share the environments of the one agent among all devices, not agents among devices"""
    tensorboard: bool = False
    """also write event files for TensorBoard, FOLDER/tensorboard"""


@dataclass(frozen=True)
class Evaluate:
    """Score the agents of a finished run on very many episodes."""

    run: Path
    """folder of the run"""
    episodes: int = 100_000
    """episodes of each agent"""
    seed: int = 0
    """seed in [0, 2**32): those of `lifedrift sweep` with that seed"""
    policy: Literal["greedy", "sampled"] = "greedy"
    """the most probable action, or one drawn"""
    agent: int | None = None
    """number of one agent; by default all are scored"""


@dataclass(frozen=True)
class Presets:
    """List the tuned presets."""


def run(command: Run) -> None:
    """`python -m train run`."""
    from train import runs

    print(runs.run(command))


def evaluate(command: Evaluate) -> None:
    """`python -m train evaluate`."""
    from lifedrift_jax import terminal
    from train import runs

    terminal.print_table(terminal.sweep_table(runs.evaluate(command)))


def presets(command: Presets) -> None:
    """`python -m train presets`."""
    from lifedrift_jax import terminal
    from train.presets import PRESETS

    rows = [
        (env_id, f"{config.total_steps:,}", str(config), str(hyper))
        for env_id, (config, hyper) in PRESETS.items()
    ]
    terminal.print_table(terminal.table(("id", "steps", "config", "hyper-parameters"), rows))


LINE = CommandLine(
    prog="python -m train",
    description="Train and score PPO agents (also: --version).",
    version=__version__,
    commands={Run: run, Evaluate: evaluate, Presets: presets},
    resumable=("run",),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. See `CommandLine.main`."""
    return LINE.main(argv)


if __name__ == "__main__":
    sys.exit(main())
