"""Play very many episodes of one policy on one task, and summarise them.

Episode i of a seed draws from `fold_in(root, i)` with its global index, so its result does
not depend on the chunk it falls into, on the chunk size, or on how many devices share the
work. Memory does not depend on the number of episodes.
"""

import dataclasses
import hashlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from lifedrift_jax import rollout, summary
from lifedrift_jax.chunk import Chunk, play_chunk
from lifedrift_jax.core import Env, Policy, horizon, positive
from lifedrift_jax.rng import SEED_LIMIT, checked_seed
from lifedrift_jax.run_folder import RunFolder
from lifedrift_jax.summary import Summary, Totals

CHUNKS_IN_FLIGHT = 2  # chunks dispatched before the host looks at the first


class Plan(NamedTuple):
    """Which episodes are played: number i of N is episode `indices(i)` of seed `seeds(i)`.

    Attributes:
        seed: the seed of all episodes, or None.
        seeds: [N] uint32, one seed an episode (its index is then 0), or None.
        num_episodes: N.
    """

    seed: int | None
    seeds: np.ndarray | None
    num_episodes: int

    def slice(self, first: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Seeds and indices, [size] uint32 each, of `size` episodes from number `first`;
        past the end they repeat the last episode.
        """
        number = np.minimum(np.arange(first, first + size), self.num_episodes - 1)
        if self.seeds is not None:
            return self.seeds[number], np.zeros(size, np.uint32)
        return np.full(size, self.seed, np.uint32), number.astype(np.uint32)


def sweep(
    env: Env,
    policy: Policy,
    params: Any,
    seeds: int | Sequence[int] | np.ndarray = 0,
    num_episodes: int | None = None,
    *,
    num_steps: int | None = None,
    chunk_size: int | None = None,
    steps: bool = True,
    out: str | Path | None = None,
    rows: bool = False,
    env_id: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Summary:
    """Play episodes in chunks and summarise them.

    Args:
        env, policy, params: what to play.
        seeds: an int in [0, 2**32): the root of episodes 0 .. num_episodes - 1; or an array
            of such ints: episode 0 of each.
        num_episodes: how many, below 2**32; with an array of seeds its length, or omitted.
        num_steps: steps to play, by default `params.max_steps`. Episodes not finished by
            then are counted and left out of every mean.
        chunk_size: episodes a compiled call plays; a multiple of the number of devices is
            used. By default `default_chunk_size`, 65,536 on CPU unless episodes are long.
        steps: also summarise step by step (variables, action shares); False is faster.
        out: folder for summary.json and the state of the run. A run that was killed goes
            on where it was, redoes no finished chunk, and ends with the same bytes.
        rows: write one row an episode to `out`/episodes/*.parquet.
        env_id: recorded in the description.
        progress: called with (episodes done, episodes in all) after each chunk.
        devices: share each chunk among these, by default all local devices.

    Returns:
        The summary.

    Raises:
        ValueError: a seed or a size is out of range, or `out` holds another sweep.
    """
    steps, rows = bool(steps), bool(rows)
    devices = tuple(jax.local_devices() if devices is None else devices)
    plan, num_steps, size = _prepare(env, params, seeds, num_episodes, num_steps, chunk_size)
    size = math.ceil(size / len(devices)) * len(devices)
    if rows and out is None:
        raise ValueError("rows is True but out is None: name a folder for the rows")

    program = partial(play_chunk, env=env, policy=policy, num_steps=num_steps, steps=steps)
    description = _describe(env, policy, params, plan, num_steps, size, steps, rows, env_id)
    folder = None
    if out is not None:
        description["program"] = _fingerprint(program, size, params)
        folder = RunFolder(out, description)
    began = time.perf_counter()
    totals, first_chunk = _resume(folder, program, params, plan, size)
    if folder is not None and rows:
        folder.check_rows(range(0, min(first_chunk * size, plan.num_episodes), size))
    for number, chunk in _chunks(program, params, plan, size, first_chunk, devices):
        totals = summary.merge(totals, jax.device_get(chunk.totals))
        first = number * size
        if folder is not None:
            if rows:
                folder.save_rows(first, _columns(env, plan, first, size, chunk.outcome))
            folder.save_totals(totals, number + 1)
        if progress is not None:
            progress(min(first + size, plan.num_episodes), plan.num_episodes)

    assert totals is not None  # a plan has at least one episode
    names = {"events": env.event_names, "actions": env.action_names}
    names["variables"] = env.variable_names
    result = summary.summarise(totals, description, names, env.return_bounds(num_steps))
    if folder is not None:
        folder.save_json("summary.json", result.to_dict())
        played = plan.num_episodes - min(first_chunk * size, plan.num_episodes)
        if played:
            folder.save_json("timing.json", _timing(time.perf_counter() - began, played))
    return result


def outcomes(
    env: Env,
    policy: Policy,
    params: Any,
    seeds: int | Sequence[int] | np.ndarray = 0,
    num_episodes: int | None = None,
    *,
    num_steps: int | None = None,
    chunk_size: int | None = None,
) -> rollout.Outcome:
    """The outcome of every episode of a sweep: NumPy leaves [num_episodes]. See `sweep`."""
    plan, num_steps, size = _prepare(env, params, seeds, num_episodes, num_steps, chunk_size)
    program = partial(play_chunk, env=env, policy=policy, num_steps=num_steps, steps=False)
    devices = tuple(jax.local_devices()[:1])
    parts = [
        jax.device_get(chunk.outcome)
        for _, chunk in _chunks(program, params, plan, size, 0, devices)
    ]
    return jax.tree.map(lambda *x: np.concatenate(x)[: plan.num_episodes], *parts)


def default_chunk_size(num_steps: int) -> int:
    """Episodes a chunk: a power of two, 65,536 on CPU and 2**20 elsewhere; fewer for long
    episodes, so that a chunk, the unit of progress and of resuming, does not take longer.
    """
    cap, step_cap = (2**16, 2**21) if jax.default_backend() == "cpu" else (2**20, 2**25)
    return max(1, min(cap, 2 ** int(math.log2(max(step_cap // num_steps, 1)))))


def _chunks(
    program: Callable[..., Chunk], params: Any, plan: Plan, size: int, first_chunk: int, devices
) -> Iterator[tuple[int, Chunk]]:
    """(number, chunk) in order, a few chunks dispatched ahead of the one yielded."""
    mesh = Mesh(np.array(devices), ("episodes",))
    share = NamedSharding(mesh, PartitionSpec("episodes"))
    params = jax.device_put(params, NamedSharding(mesh, PartitionSpec()))
    flying: deque[tuple[int, Chunk]] = deque()
    for number in range(first_chunk, math.ceil(plan.num_episodes / size)):
        first = number * size
        seeds, indices = jax.device_put(plan.slice(first, size), share)
        count = np.int32(min(size, plan.num_episodes - first))
        flying.append((number, program(seeds, indices, count, params)))
        if len(flying) > CHUNKS_IN_FLIGHT:
            yield flying.popleft()
    yield from flying


def _arguments(size: int) -> tuple[Any, Any, Any]:
    """Shapes of a chunk's seeds, indices and count."""
    words = jax.ShapeDtypeStruct((size,), jnp.uint32)
    return words, words, jax.ShapeDtypeStruct((), jnp.int32)


def _fingerprint(program: Callable[..., Chunk], size: int, params: Any) -> str:
    """Digest of what is compiled: rules, policy and sizes. A run resumes only as itself,
    also when a policy was changed and kept its name.
    """
    lowered = play_chunk.lower(*_arguments(size), params, **program.keywords)  # type: ignore[attr-defined]
    return hashlib.sha256(lowered.as_text().encode()).hexdigest()


def _resume(folder, program, params, plan, size) -> tuple[Totals | None, int]:
    """Totals of the chunks already done, and how many there are."""
    if folder is None:
        return None, 0
    template = jax.eval_shape(program, *_arguments(size), params).totals
    return folder.load_totals(template, math.ceil(plan.num_episodes / size))


def _columns(env: Env, plan: Plan, first: int, size: int, outcome) -> dict[str, np.ndarray]:
    """Table of a chunk's episodes, padding dropped."""
    seeds, indices = plan.slice(first, size)
    outcome = jax.device_get(outcome)
    columns = {
        "seed": seeds,
        "index": indices,
        "score": outcome.score,
        "episode_return": outcome.episode_return,
        "length": outcome.length,
        "finished": outcome.finished,
        **dict(zip(env.event_names, outcome.events, strict=True)),
    }
    return {name: np.asarray(x)[: plan.num_episodes - first] for name, x in columns.items()}


def _prepare(env, params, seeds, num_episodes, num_steps, chunk_size) -> tuple[Plan, int, int]:
    """Plan, number of steps and chunk size, checked; refuse what has no episodes to sweep."""
    if env.auto_resets:
        raise ValueError(f"env is {env!r}, which resets by itself: sweep the env inside")
    if np.ndim(params.max_steps):
        raise ValueError(
            f"params are stacked, max_steps has shape {np.shape(params.max_steps)}: "
            "sweep them one by one"
        )
    plan = _plan(seeds, num_episodes)
    num_steps = horizon(params) if num_steps is None else positive("num_steps", num_steps)
    size = default_chunk_size(num_steps) if chunk_size is None else chunk_size
    return plan, num_steps, min(positive("chunk_size", size), plan.num_episodes)


def _plan(seeds: int | Sequence[int] | np.ndarray, num_episodes: int | None) -> Plan:
    if np.ndim(seeds) == 0:
        seed = checked_seed(seeds)  # type: ignore[arg-type]
        count = positive("num_episodes", 1 if num_episodes is None else num_episodes)
        if count > SEED_LIMIT:
            raise ValueError(f"num_episodes is {count}: at most 2**32, the range of an index")
        return Plan(seed, None, count)
    values = np.asarray(seeds)
    if values.ndim != 1 or not len(values) or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"seeds has shape {values.shape}, dtype {values.dtype}: use [N] integers")
    if num_episodes not in (None, len(values)):
        raise ValueError(f"num_episodes is {num_episodes} but seeds has {len(values)} entries")
    for extreme in (values.min(), values.max()):
        checked_seed(extreme)
    return Plan(None, values.astype(np.uint32), len(values))


def _describe(env, policy, params, plan, num_steps, size, steps, rows, env_id) -> dict[str, Any]:
    """What decides the result, as plain JSON values."""
    digest = None if plan.seeds is None else hashlib.sha256(plan.seeds.tobytes()).hexdigest()
    return {
        "env": env_id or type(env).__name__,
        "policy": policy.name,
        "params": jax.tree.map(lambda x: np.asarray(x).tolist(), _named(params)),
        "seeds": plan.seed if digest is None else f"sha256:{digest}",
        "num_episodes": plan.num_episodes,
        "num_steps": num_steps,
        "chunk_size": size,
        "watched_steps": steps,
        "rows": rows,
        "jax": jax.__version__,
        "backend": jax.default_backend(),
    }


def _named(params: Any) -> dict[str, Any]:
    """Fields of params, a dataclass or a NamedTuple, by name."""
    return params._asdict() if hasattr(params, "_asdict") else dataclasses.asdict(params)


def _timing(seconds: float, played: int) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "episodes": played,
        "episodes_per_second": played / seconds,
        "device": jax.devices()[0].device_kind,
        "devices": jax.local_device_count(),
    }
