"""What `steps_per_second.py` times: our sweep, gymnax, NumPy, and the C limit."""

import ctypes
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import lifedrift_jax
from benchmarks import numpy_life_drift
from lifedrift_jax import rng, rollout
from lifedrift_jax.baselines import simple
from lifedrift_jax.chunk import play_chunk
from lifedrift_jax.core import horizon
from lifedrift_jax.life_drift import tables
from lifedrift_jax.life_stack import LifeStack, generate
from lifedrift_jax.sweep import CHUNKS_IN_FLIGHT, sweep

TASK = "long_term_stability"
ENV_ID = f"life_drift/{TASK}-v0"
TASK_FLOW_ID = "task_flow/hard-v0"  # more items than steps, so no step is padding
LIFE_STACK_ID = "generated tasks"
NUM_STEPS = tables.TASKS[TASK].max_steps  # of an episode of Life Drift
GYMNAX_STEPS = 100  # of one call: long enough that its first reset costs gymnax nothing
GCC = ("gcc", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared")
LANES = 32  # numbers of envs are multiples of it, since limit.c plays up to so many side by side

# Uniform random actions of a shape, as a gymnax user writes them.
GYMNAX_ACTIONS: dict[str, Callable[[jax.Array, tuple[int, ...]], jax.Array]] = {
    "CartPole-v1": lambda key, shape: jax.random.randint(key, shape, 0, 2),
    "Pendulum-v1": lambda key, shape: jax.random.uniform(key, (*shape, 1), minval=-2, maxval=2),
    "Breakout-MinAtar": lambda key, shape: jax.random.randint(key, shape, 0, 3),
}

Means = tuple[float | None, float | None]  # score and return


@dataclass(frozen=True)
class Contestant:
    """One way to step one number of environments.

    Attributes:
        group: contestants of a group do the same; its fastest stands for it.
        name: as written in the table.
        steps: environment steps of one call.
        play: `(seed, calls)`: make the calls, all with other draws, and return when they are
            done. Returns (mean score, mean return) of the episodes of the last call, or None.
    """

    group: str
    name: str
    steps: int
    play: Callable[[int, int], Means | None]


def ours(num_envs: int) -> Iterator[Contestant]:
    """The sweep's compiled program without and with step statistics, and `sweep` as a whole."""
    yield _program("ours", ENV_ID, num_envs)
    yield _program("ours, steps=True", ENV_ID, num_envs, steps=True)
    env, params = lifedrift_jax.make(ENV_ID)
    devices = jax.local_devices()[:1]
    run = partial(sweep, chunk_size=num_envs, steps=False, devices=devices)

    def play(seed: int, calls: int) -> Means:
        summary = run(env, simple.random(), params, seed, calls * num_envs)
        return summary.score.mean, summary.episode_return.mean

    yield Contestant("ours, sweep()", "ours, sweep()", num_envs * NUM_STEPS, play)


def task_flow(num_envs: int) -> Iterator[Contestant]:
    """The sweep's compiled program on TaskFlow, actions drawn among the legal ones."""
    yield _program("TaskFlow", TASK_FLOW_ID, num_envs)


def life_stack(num_envs: int) -> Iterator[Contestant]:
    """Random masked play of LifeStack, each env another generated task.

    Only steps before the end of an episode count: their mean number is that of the first call.
    """
    env, policy = LifeStack(generate.CAPACITY), simple.random()
    keys = jax.random.split(jax.random.key(0), num_envs)
    params = jax.jit(jax.vmap(partial(generate.generate, knobs=generate.Knobs())))(keys)
    num_steps = horizon(params)

    @jax.jit
    @jax.vmap
    def program(key: jax.Array, params) -> tuple[jax.Array, jax.Array, jax.Array]:
        begun = rollout.start(key, env, policy, params)
        play, _ = jax.lax.scan(
            lambda play, step: (rollout.advance(play, step, env, policy, params)[0], None),
            begun,
            jnp.arange(num_steps, dtype=jnp.int32),
        )
        outcome = rollout.finish(play, env, params)
        return outcome.score, outcome.episode_return, outcome.length

    def call(seed: int, i: int):
        root, first = rng.root_key(seed), np.uint32(i * num_envs)
        indices = first + np.arange(num_envs, dtype=np.uint32)
        return program(jax.vmap(partial(rng.episode_key, root))(indices), params)

    def play(seed: int, calls: int) -> Means:
        scores, returns, _ = _last_of(partial(call, seed), calls)
        return float(scores.mean()), float(returns.mean())

    yield Contestant("LifeStack", "LifeStack", int(call(0, 0)[2].sum()), play)


def _program(group: str, env_id: str, num_envs: int, steps: bool = False) -> Contestant:
    """The sweep's compiled program, for a task whose episodes are all of the full length."""
    env, params = lifedrift_jax.make(env_id)
    num_steps, device = horizon(params), jax.local_devices()[0]
    indices, count = np.arange(num_envs, dtype=np.uint32), np.int32(num_envs)
    program = partial(play_chunk, env=env, policy=simple.random(), num_steps=num_steps, steps=steps)

    def play(seed: int, calls: int) -> Means:
        seeds = jax.device_put(np.full(num_envs, seed, np.uint32), device)
        chunk = _last_of(
            lambda i: program(seeds, indices + np.uint32(i * num_envs), count, params), calls
        )
        return float(chunk.totals.score.mean), float(chunk.totals.episode_return.mean)

    return Contestant(group, group, num_envs * num_steps, play)


def gymnax(num_envs: int) -> Iterator[Contestant]:
    """Random rollouts of gymnax with its own auto-reset, in both orders of scan and vmap."""
    from gymnax import make

    for name, sample in GYMNAX_ACTIONS.items():
        env, params = make(name)
        for order, nested in (("scan of vmap", _scan_of_vmap), ("vmap of scan", _vmap_of_scan)):
            program = jax.jit(nested(env, params, sample, num_envs))

            def play(seed: int, calls: int, program=program) -> None:
                keys = jax.random.split(jax.random.key(seed), calls)
                _last_of(lambda i: program(keys[i]), calls)

            yield Contestant(name, f"gymnax {name}, {order}", num_envs * GYMNAX_STEPS, play)


def _scan_of_vmap(env, params, sample, num_envs):
    def rollout(key):
        key, reset_key = jax.random.split(key)
        reset_keys = jax.random.split(reset_key, num_envs)
        _, state = jax.vmap(env.reset, in_axes=(0, None))(reset_keys, params)

        def body(carry, _):
            key, state, total = carry
            key, act_key, step_key = jax.random.split(key, 3)
            action = sample(act_key, (num_envs,))
            step_keys = jax.random.split(step_key, num_envs)
            step = jax.vmap(env.step, in_axes=(0, 0, 0, None))
            _, state, reward, *_ = step(step_keys, state, action, params)
            return (key, state, total + reward), None

        carry = (key, state, jnp.zeros(num_envs))
        return jax.lax.scan(body, carry, length=GYMNAX_STEPS)[0][2]

    return rollout


def _vmap_of_scan(env, params, sample, num_envs):
    def rollout(key):
        key, reset_key = jax.random.split(key)
        _, state = env.reset(reset_key, params)

        def body(carry, _):
            key, state, total = carry
            key, act_key, step_key = jax.random.split(key, 3)
            _, state, reward, *_ = env.step(step_key, state, sample(act_key, ()), params)
            return (key, state, total + reward), None

        carry = (key, state, jnp.zeros(()))
        return jax.lax.scan(body, carry, length=GYMNAX_STEPS)[0][2]

    return lambda key: jax.vmap(rollout)(jax.random.split(key, num_envs))


def numpy(num_envs: int) -> Iterator[Contestant]:
    """The NumPy restatement, on one core."""

    def play(seed: int, calls: int) -> Means:
        generator = np.random.default_rng(seed)
        for _ in range(calls):
            episodes = numpy_life_drift.play(TASK, num_envs, generator)
        return float(episodes.grade().mean()), float(episodes.returns.mean())

    yield Contestant("NumPy", "NumPy", num_envs * NUM_STEPS, play)


def limit(library: ctypes.CDLL, num_envs: int) -> Iterator[Contestant]:
    """limit.c, see there."""
    _, params = lifedrift_jax.make(ENV_ID)
    weights = np.asarray(params.grade_weights, np.float32)
    grades, returns = np.zeros((2, num_envs), np.float32)
    cascades = np.zeros(num_envs, np.int32)

    def play(seed: int, calls: int) -> Means:
        first_word = seed * 0x9E3779B9 % 2**32
        library.play(num_envs, calls, first_word, weights, grades, returns, cascades)
        return float(grades.mean()), float(returns.mean())

    yield Contestant("C limit", "C limit", num_envs * NUM_STEPS, play)


def compile_limit(folder: Path) -> ctypes.CDLL:
    """limit.c as a library in `folder`; FileNotFoundError if there is no gcc."""
    if shutil.which(GCC[0]) is None:
        raise FileNotFoundError("no gcc on the path")
    source, library = Path(__file__).with_name("limit.c"), folder / "limit.so"
    subprocess.run([*GCC, str(source), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    arrays = [np.ctypeslib.ndpointer(x, flags="C") for x in (np.float32,) * 3 + (np.int32,)]
    loaded.play.restype = None
    loaded.play.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint32, *arrays]
    return loaded


def _last_of(call: Callable[[int], jax.Array], calls: int):
    """The result of the last of `calls` calls, all done; as many in flight as in a sweep."""
    flying: deque = deque()
    for i in range(calls):
        flying.append(call(i))
        if len(flying) > CHUNKS_IN_FLIGHT:
            jax.block_until_ready(flying.popleft())
    return jax.block_until_ready(list(flying))[-1]
