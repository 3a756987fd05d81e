"""Train many agents: every seed with every setting of the swept hyper-parameters.

Agents are trained in chunks that fit a memory budget. An agent's keys, initial parameters
and first rollout do not depend on the chunk it falls into. Its trained parameters do, in
the last bits at first and by more later, because the order of sums in a matrix product
depends on its size: `exact` trains the agents of a chunk one after another, and then they
do not. A rerun with the same chunks and devices gives the same bits always.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.core import Env, positive
from lifedrift_jax.names import unknown
from lifedrift_jax.rng import is_key, root_key
from train import loop, memory, metrics, ppo, programs
from train.config import Hyper, PPOConfig
from train.types import Metrics, TrainResult

# Cost measured by benchmarks/train_time.py, 64 agents: 0.148 against 0.133 s an agent.
EXACT = "one after another (1.1 times the time of side by side on 2 CPU cores, more elsewhere)"
ALIASES = {"lr": "learning_rate"}  # what people write
HYPERS = tuple(field.name for field in fields(Hyper))


class Agent(NamedTuple):
    """One agent of a sweep.

    Attributes:
        seed: of its key.
        swept: the values of what is swept, in order.
        hyper: all its numbers.
    """

    seed: int
    swept: dict[str, float]
    hyper: Hyper


@dataclass(frozen=True)
class Plan:
    """What is trained, and how it is cut up.

    Attributes:
        agents: in the order of the results: settings one after another, seeds within.
        chunk_size: agents of one compiled program, a multiple of the number of devices
            unless it is 1.
        agent_bytes, budget: estimated bytes of an agent; bytes a chunk may take.
        exact: agents of a chunk are trained one after another.
        devices: that share a chunk.
    """

    agents: tuple[Agent, ...]
    chunk_size: int
    agent_bytes: int
    budget: int
    exact: bool
    devices: tuple[jax.Device, ...]

    @property
    def chunks(self) -> list[tuple[Agent, ...]]:
        """The agents of each chunk."""
        return [
            self.agents[i : i + self.chunk_size]
            for i in range(0, len(self.agents), self.chunk_size)
        ]

    def __str__(self) -> str:
        """What is said before anything is compiled."""
        count, size = len(self.agents), memory.gibibytes
        said = f"{count} agent{'s' * (count > 1)} of about {size(self.agent_bytes)}"
        said += f", memory budget {size(self.budget)}"
        if count == 1:
            return said
        how = EXACT if self.exact else "side by side"
        devices = f" on {len(self.devices)} devices" if len(self.devices) > 1 else ""
        chunks = f"{len(self.chunks)} chunk{'s' * (len(self.chunks) > 1)}"
        return f"{said}: {chunks} of up to {self.chunk_size}, {how}{devices}"


def grid(hyper: Hyper, seeds: Sequence[int], swept: Mapping[str, Sequence[float]]) -> list[Agent]:
    """Every seed with every combination of the swept values.

    Args:
        hyper: what is not swept.
        seeds: in [0, 2**32) each.
        swept: fields of Hyper (or `lr`) -> their values.

    Raises:
        ValueError: no such hyper-parameter, or no value of one.
    """
    names = [hyper_name(name) for name in swept]
    for name, values in swept.items():
        if not len(values):
            raise ValueError(f"{name} is swept over no value: give at least one")
    settings = [
        dict(zip(names, values, strict=True)) for values in itertools.product(*swept.values())
    ]
    return [Agent(int(s), x, replace(hyper, **x)) for x in settings for s in seeds]


def hyper_name(name: str) -> str:
    """The field of Hyper that `name` means; raise ValueError with the legal ones if none."""
    name = ALIASES.get(name, name)
    if name not in HYPERS:
        raise unknown("hyper-parameter", name, HYPERS)
    return name


def plan(
    env: Env,
    params: Any,
    config: PPOConfig,
    agents: Sequence[Agent],
    *,
    chunk_size: int | None = None,
    budget: int | None = None,
    exact: bool = False,
    devices: Sequence[jax.Device] | None = None,
) -> Plan:
    """Cut agents into equal chunks that fit `budget`, without compiling anything.

    Args:
        env, params, config: what is trained; checked as `ppo.train_jit` does.
        agents: see `grid`.
        chunk_size: agents of a chunk; by default as many as fit the budget.
        budget: bytes, by default `memory.default_budget()`; of each device.
        exact: train them one after another.
        devices: by default all local ones.

    Raises:
        ValueError: a size or number makes no sense, or not even one agent fits.
    """
    for agent in agents:
        config, _ = ppo.checked(root_key(agent.seed), env, params, config, agent.hyper)
    devices = tuple(jax.local_devices() if devices is None else devices)[: len(agents)]
    budget = memory.default_budget() if budget is None else budget
    size = memory.agent_bytes(env, params, config)
    if chunk_size is None:
        fitting = budget // size
        if not fitting:
            raise ValueError(
                f"an agent takes about {memory.gibibytes(size)}, budget is "
                f"{memory.gibibytes(budget)}: use fewer envs or steps, or a larger budget"
            )
        chunk_size = len(agents) if exact else fitting * len(devices)
    chunk_size = min(positive("chunk_size", chunk_size), len(agents))
    # Equal chunks: the same number of them, and little padding in the last.
    chunk_size = math.ceil(len(agents) / math.ceil(len(agents) / chunk_size))
    shared = len(devices[:chunk_size])
    chunk_size = math.ceil(chunk_size / shared) * shared
    return Plan(tuple(agents), chunk_size, size, budget, exact, sharing(devices, chunk_size))


def sharing(devices: Sequence[jax.Device], chunk_size: int) -> tuple[jax.Device, ...]:
    """The most of `devices` that share a chunk of a given size equally."""
    count = next(n for n in range(len(devices), 0, -1) if chunk_size % n == 0)
    return tuple(devices[:count])


def run(
    env: Env,
    params: Any,
    config: PPOConfig,
    plan: Plan,
    *,
    out: str | Path | None = None,
    report: Callable[[int, int, Metrics], None] = lambda done, count, row: None,
) -> TrainResult:
    """Train the agents of a plan.

    Args:
        env, params, config: as given to `plan`.
        out: folder; `out`/checkpoints/CHUNK keeps each chunk's checkpoints, from which a
            killed sweep goes on, and from which `restore` reads the trained agents.
        report: called with (agents done with, agents of this chunk, its newest row).

    Returns:
        States and metrics of all agents, NumPy leaves [R, ...].
    """
    config, results, done = ppo.filled_in(config, params), [], 0
    for number, agents in enumerate(plan.chunks):

        def told(row: Metrics, done: int = done, count: int = len(agents)) -> None:
            report(done, count, jax.tree.map(lambda x: np.atleast_1d(x)[:count], row))

        program = _program(env, params, config, plan, agents)
        place = None if out is None else checkpoints(Path(out), number)
        result = loop.run(
            program,
            config,
            place,
            told,
            must_be_finite=len(plan.agents) == 1,  # one lost agent does not end a sweep
        )
        results.append(_rows(result, plan, len(agents)))
        done += len(agents)
    return jax.tree.map(_concatenated, *results)


def restore(env: Env, params: Any, config: PPOConfig, plan: Plan, out: Path) -> TrainResult:
    """What `run` returned, from the checkpoints it left; nothing is trained.

    Raises:
        ValueError: a chunk has not been trained to its end, or its checkpoint is damaged.
    """
    for number in range(len(plan.chunks)):
        loop.require_finished(checkpoints(out, number), config)
    return run(env, params, config, plan, out=out)


def checkpoints(out: Path, chunk: int) -> Path:
    """Folder of the checkpoints of a chunk."""
    return out / "checkpoints" / f"chunk_{chunk:04d}"


def table(result: TrainResult, config: PPOConfig, agents: Sequence[Agent]) -> dict[str, np.ndarray]:
    """All metrics, one row an evaluation of an agent, agents one after another."""
    columns = metrics.columns(result.metrics, config)
    rows = len(columns["update"][0])
    names = _agent_columns(agents)
    repeated = {name: np.repeat(values, rows) for name, values in names.items()}
    return repeated | {name: values.reshape(-1) for name, values in columns.items()}


def runs_table(
    result: TrainResult, config: PPOConfig, agents: Sequence[Agent]
) -> dict[str, np.ndarray]:
    """One row an agent: its numbers, and its last metrics."""
    columns = metrics.columns(result.metrics, config)
    hypers = {
        name: np.array([float(getattr(agent.hyper, name)) for agent in agents]) for name in HYPERS
    }
    last = {name: values[:, -1] for name, values in columns.items()}
    return _agent_columns(agents) | hypers | last


def by_setting(agents: Sequence[Agent]) -> dict[str, list[int]]:
    """Setting in words ("" if nothing is swept) -> numbers of its agents."""
    groups: dict[str, list[int]] = {}
    for number, agent in enumerate(agents):
        text = ", ".join(f"{name}={value}" for name, value in agent.swept.items())
        groups.setdefault(text, []).append(number)
    return groups


def describe(agents: Sequence[Agent]) -> list[dict[str, Any]]:
    """The agents as plain JSON values."""
    return [
        {
            "seed": agent.seed,
            "swept": agent.swept,
            "hyper": jax.tree.map(float, asdict(agent.hyper)),
        }
        for agent in agents
    ]


def _agent_columns(agents: Sequence[Agent]) -> dict[str, np.ndarray]:
    swept = agents[0].swept
    return {
        "agent": np.arange(len(agents)),
        "seed": np.array([agent.seed for agent in agents]),
        **{f"swept_{name}": np.array([agent.swept[name] for agent in agents]) for name in swept},
    }


def _program(env, params, config, plan: Plan, agents: Sequence[Agent]) -> programs.Program:
    if plan.chunk_size == 1:
        key, hyper = root_key(agents[0].seed), agents[0].hyper.checked()
        return programs.single(key, env, params, config, hyper)
    # The last chunk is filled up with copies, so that it is the same program.
    filled = [*agents, *[agents[-1]] * (plan.chunk_size - len(agents))]
    keys = jnp.stack([root_key(agent.seed) for agent in filled])
    hypers = programs.stacked([agent.hyper for agent in filled])
    return programs.many(keys, env, params, config, hypers, plan.devices, plan.exact)


def _rows(result: TrainResult, plan: Plan, count: int) -> TrainResult:
    """The results of a chunk's `count` agents, with a leading axis, copies dropped."""
    host = jax.tree.map(lambda x: x if is_key(x) else np.asarray(x), result)
    if plan.chunk_size == 1:
        return jax.tree.map(lambda x: x[None], host)
    return jax.tree.map(lambda x: x[:count], host)


def _concatenated(*leaves: Any) -> Any:
    return jnp.concatenate(leaves) if is_key(leaves[0]) else np.concatenate(leaves)
