"""A run's folder: what `python -m train run` writes and `evaluate` reads.

config.json        what is trained; a run goes on only if all of it agrees
progress.jsonl     a line an evaluation, as they come
checkpoints/       of each chunk of agents (see `sweep`)
runs.parquet       a row an agent: its numbers and its last metrics
metrics.parquet    a row an evaluation of an agent
table.md           settings compared: interquartile means with 95% intervals
curve.png          learning curves with bands
timing.json        clock times of the latest call
evaluations/       a `lifedrift_jax.sweep` of each agent scored
tensorboard/       event files, if asked for
"""

import json
import sys
import time
from dataclasses import asdict, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from lifedrift_jax import __version__, registry, terminal
from lifedrift_jax.commands import settings
from lifedrift_jax.core import Env, positive
from lifedrift_jax.names import unknown
from lifedrift_jax.rng import root_key
from lifedrift_jax.run_folder import Folder, read_description
from lifedrift_jax.summary import Summary
from lifedrift_jax.sweep import sweep as play
from train import evaluation, loop, metrics, networks, ppo, programs, sweep
from train.collect import scaling
from train.config import OBJECTIVES, Hyper, PPOConfig
from train.presets import PRESETS
from train.types import Metrics, TrainResult, TrainState

FORMAT = 1  # of config.json


class Job(NamedTuple):
    """What a run trains.

    Attributes:
        env_id, overrides: of the environment, and what is replaced in its params.
        env, params: those that they make.
        config: sizes, `eval_steps` filled in.
        plan: agents and chunks.
        split_envs: one agent, its environments shared out among all devices.
    """

    env_id: str
    overrides: dict[str, Any]
    env: Env
    params: Any
    config: PPOConfig
    plan: sweep.Plan
    split_envs: bool

    def description(self) -> dict[str, Any]:
        """What decides the results, as plain JSON values."""
        return {
            "format": FORMAT,
            "env": self.env_id,
            "set": self.overrides,
            "config": {**asdict(self.config), "hidden_sizes": list(self.config.hidden_sizes)},
            "agents": sweep.describe(self.plan.agents),
            "chunk_size": self.plan.chunk_size,
            "exact": self.plan.exact,
            "split_envs": self.split_envs,
            # Agents may move to other devices; the envs of one agent are shuffled on theirs.
            "devices": jax.local_device_count() if self.split_envs else None,
            "lifedrift_jax": __version__,
            "jax": jax.__version__,
            "backend": jax.default_backend(),
        }


def run(command: Any) -> str:
    """Train what a `Run` command says, write its folder, and return a line about it."""
    if command.resume is not None:
        if command != type(command)((), resume=command.resume, tensorboard=command.tensorboard):
            raise ValueError("--resume takes the options of the run: leave out the id and others")
        job, out = load(command.resume), command.resume
    else:
        job = job_of(command)
        out = command.out or Path("runs") / "train" / job.env_id
    if command.tensorboard:
        metrics.summary_writer()  # refuses before hours of training, not after
    folder = Folder(out, job.description())
    print(job.plan, file=sys.stderr)
    began = time.perf_counter()
    result = _train(job, folder)
    seconds = time.perf_counter() - began
    write(job, folder, result, seconds)
    if command.tensorboard:
        columns = metrics.columns(result.metrics, job.config)
        runs = [{name: x[i] for name, x in columns.items()} for i in range(len(job.plan.agents))]
        metrics.write_tensorboard(folder.path / "tensorboard", runs)
    each = seconds / len(job.plan.agents)
    return f"{folder.path}: {seconds:.1f} s in all, {each:.1f} s an agent"


def job_of(command: Any) -> Job:
    """The job that the options of a `Run` command ask for.

    Raises:
        ValueError: an option names what there is not, or numbers that make no sense.
    """
    if len(command.id) != 1:
        raise ValueError("run needs one id, see `lifedrift envs`, or --resume FOLDER")
    env_id = registry.resolve(command.id[0])
    none = (PPOConfig(), Hyper())
    config, hyper = none if command.no_preset else PRESETS.get(env_id, none)
    sizes = settings("--config", command.config, words=("encoder",))
    if "device_axis" in sizes:
        raise ValueError("--config device_axis is set by --split-envs")
    config = replaced("--config", config, sizes)
    given = settings("--hyper", command.hyper)
    hyper = replace(hyper, **OBJECTIVES.get(command.objective, {}))
    hyper = replaced("--hyper", hyper, {sweep.hyper_name(k): v for k, v in given.items()})
    agents = _agents(command, hyper)
    if command.memory is not None and not 0 < command.memory < np.inf:
        raise ValueError(f"--memory is {command.memory}: use a number of GiB above 0")
    overrides = settings("--set", command.set)
    env, params = _made(env_id, overrides)
    plan = sweep.plan(
        env,
        params,
        config,
        agents,
        chunk_size=command.chunk_size,
        budget=None if command.memory is None else int(command.memory * 2**30),
        exact=command.exact,
    )
    config = ppo.filled_in(config, params)
    if command.split_envs:
        programs.check_split(config, jax.local_device_count())
    return Job(env_id, overrides, env, params, config, plan, command.split_envs)


def _agents(command: Any, hyper: Hyper) -> list[sweep.Agent]:
    """Every seed with every setting that the options ask for."""
    pairs = [_swept(text) for several in command.sweep for text in several]
    swept = dict(pairs)
    if len(swept) < len(pairs):
        raise ValueError(f"--sweep names one of {', '.join(swept)} twice: give all its values once")
    positive("--seeds", command.seeds)
    agents = sweep.grid(hyper, range(command.seed, command.seed + command.seeds), swept)
    if command.split_envs and len(agents) > 1:
        raise ValueError(f"--split-envs trains one agent, here are {len(agents)}: leave it out")
    return agents


def load(folder: Path) -> Job:
    """The job of a run's folder.

    Raises:
        ValueError: there is no run, or one of another format.
    """
    file = folder / Folder.description_file
    if not file.exists():
        raise ValueError(f"{folder} holds no {file.name}: it is no folder of a run")
    told = read_description(file)
    if told.get("format") != FORMAT:
        raise ValueError(f"{file} has format {told.get('format')}, not {FORMAT}")
    agents = [sweep.Agent(x["seed"], x["swept"], Hyper(**x["hyper"])) for x in told["agents"]]
    config = PPOConfig(**told["config"])
    env, params = _made(told["env"], told["set"])
    plan = sweep.plan(
        env, params, config, agents, chunk_size=told["chunk_size"], exact=told["exact"]
    )
    shared = sweep.sharing(jax.local_devices(), told["chunk_size"])
    plan = replace(plan, chunk_size=told["chunk_size"], devices=shared)
    return Job(told["env"], told["set"], env, params, config, plan, told["split_envs"])


def _made(env_id: str, overrides: dict[str, Any]) -> tuple[Env, Any]:
    env, params = registry.make(env_id)
    return env, registry.override(params, **overrides)


def _train(job: Job, folder: Folder) -> TrainResult:
    env, params = job.env, job.params
    total = len(job.plan.agents) * job.config.total_steps
    with (
        terminal.progress_bars("steps") as meter,
        meter(job.env_id.partition("/")[2], total) as bar,
        open(folder.path / "progress.jsonl", "w", encoding="utf-8") as lines,
    ):

        def report(done: int, count: int, row: Metrics) -> None:
            columns = metrics.columns(row, job.config)
            steps = done * job.config.total_steps + count * int(columns["steps"][0])
            bar(steps, total, metrics.note(columns))
            means = {name: float(np.mean(values)) for name, values in columns.items()}
            lines.write(json.dumps({"agents_done": done, **means}) + "\n")
            lines.flush()

        if not job.split_envs:
            return sweep.run(env, params, job.config, job.plan, out=folder.path, report=report)
        agent = job.plan.agents[0]
        result = loop.train(
            root_key(agent.seed),
            env,
            params,
            job.config,
            agent.hyper,
            checkpoints=sweep.checkpoints(folder.path, 0),
            report=lambda row: report(0, 1, jax.tree.map(np.atleast_1d, row)),
            devices=jax.local_devices(),
        )
        return jax.tree.map(lambda x: x[None], result)


def write(job: Job, folder: Folder, result: TrainResult, seconds: float) -> None:
    """The tables and the picture of a finished run."""
    from train import plots

    agents = job.plan.agents
    folder.save_table("metrics.parquet", sweep.table(result, job.config, agents))
    folder.save_table("runs.parquet", sweep.runs_table(result, job.config, agents))
    columns = metrics.columns(result.metrics, job.config)
    settings = sweep.by_setting(agents)
    table = settings_table(columns, settings)
    terminal.print_table(table)
    terminal.write_table(table, folder.path / "table.md")
    figure = plots.learning_curves(columns["steps"][0], columns, settings, job.env_id)
    folder.save("curve.png", lambda stream: figure.savefig(stream, format="png"))
    devices = jax.local_device_count() if job.split_envs else len(job.plan.devices)
    timing = {"seconds": seconds, "agents": len(agents), "devices": devices}
    folder.save_json("timing.json", timing)


def settings_table(columns: dict[str, np.ndarray], settings: dict[str, list[int]]) -> Any:
    """One row a setting: last metrics, interquartile mean over seeds and 95% interval."""
    shown = {
        "return": metrics.RETURN,
        "score": metrics.SCORE,
        **{
            name.removeprefix("greedy_events_").removesuffix("_mean"): name
            for name in columns
            if name.startswith("greedy_events_") and name.endswith("_mean")
        },
        "return, sampled": "sampled_episode_return_mean",
    }
    rows = []
    for setting, agents in settings.items():
        spreads = [metrics.interquartile_mean(columns[name][agents, -1]) for name in shown.values()]
        words = [
            f"{x.center:.4f} [{x.low:.4f}, {x.high:.4f}]" if len(agents) > 1 else f"{x.center:.4f}"
            for x in spreads
        ]
        rows.append((setting or "-", len(agents), *words))
    return terminal.table(("setting", "seeds", *shown), rows)


def evaluate(command: Any) -> list[Summary]:
    """Score what an `Evaluate` command says; a summary an agent.

    Raises:
        ValueError: the run is not finished, or has no such agent.
    """
    job = load(command.run)
    env, params = job.env, job.params
    agents = range(len(job.plan.agents))
    if command.agent is not None:
        if command.agent not in agents:
            raise ValueError(f"agent is {command.agent}: the run has 0 .. {len(agents) - 1}")
        agents = range(command.agent, command.agent + 1)
    states = sweep.restore(env, params, job.config, job.plan, command.run).state
    summaries = []
    with terminal.progress_bars() as meter:
        for agent in agents:
            name = f"agent_{agent:04d}-{command.policy}"
            state = jax.tree.map(itemgetter(agent), states)
            policy = trained_policy(env, job.config, state, command.policy)
            with meter(name, command.episodes) as report:
                summaries.append(
                    play(
                        env,
                        policy._replace(name=name),
                        params,
                        command.seed,
                        command.episodes,
                        out=command.run
                        / "evaluations"
                        / f"{name}-seed_{command.seed}-{command.episodes}",
                        env_id=job.env_id,
                        progress=report,
                    )
                )
    return summaries


def trained_policy(env: Env, config: PPOConfig, state: TrainState, mode: str) -> Any:
    """The policy of a trained agent, for rollouts and sweeps. See `evaluation.policy`."""
    network = networks.network(env, config.hidden_sizes, config.encoder)
    return evaluation.policy(network, state.params, scaling(state, config), mode)


def replaced(option: str, record: Any, values: dict[str, Any]) -> Any:
    """A config or hyper with fields replaced; raise ValueError for a name it has not."""
    for name in values:
        if name not in asdict(record):
            raise unknown(f"{option} field", name, asdict(record))
    return replace(record, **values)


def _swept(text: str) -> tuple[str, list[float]]:
    name, equals, values = text.partition("=")
    try:
        return sweep.hyper_name(name), [float(value) for value in values.split(",")]
    except ValueError as error:
        if not equals or name in (*sweep.HYPERS, *sweep.ALIASES):
            raise ValueError(f"--sweep {text}: use NAME=VALUE,VALUE,...") from None
        raise error
