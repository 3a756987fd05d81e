"""Who trains in `train_time.py`: our PPO, rejax's and Stable-Baselines3's, on one env.

All have the same sizes, network and numbers (`COMMON`), and evaluate nothing. Peers are
imported when they are lined up, so this module imports without them.
"""

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp

import lifedrift_jax
from lifedrift_jax import terminal
from lifedrift_jax.core import horizon
from train import Hyper, PPOConfig, loop, metrics, ppo, programs
from train.presets import preset
from train.types import Metrics, TrainResult

ENV_ID = "life_drift/long_term_stability-v0"
NUM_STEPS, MINIBATCHES, EPOCHS, HIDDEN = 128, 4, 4, (64, 64)
# The numbers that most PPO scripts start from; `rejax_ppo` and `stable_baselines3` read them.
COMMON = Hyper(
    learning_rate=2.5e-4,
    learning_rate_decay=0.0,
    gamma=0.99,
    gae_lambda=0.95,
    clip=0.2,
    entropy=0.01,
    value=0.5,
    max_grad_norm=0.5,
)


@dataclass(frozen=True)
class Contestant:
    """One way to train for a number of environment steps.

    Attributes:
        name: as written in the table.
        steps: environment steps of one run, of all its agents together.
        compile_seconds: what compiling took, before any run.
        run: `(seed)`: train from scratch and return what must be ready at the end.
    """

    name: str
    steps: int
    compile_seconds: float
    run: Callable[[int], Any]


def common_config(num_envs: int, steps: int) -> PPOConfig:
    """The common sizes, for `steps` environment steps rounded up to whole updates."""
    updates = -(-steps // (num_envs * NUM_STEPS))
    return PPOConfig(
        num_envs=num_envs,
        num_steps=NUM_STEPS,
        minibatches=MINIBATCHES,
        epochs=EPOCHS,
        hidden_sizes=HIDDEN,
        total_updates=updates,
        eval_every=updates,
    )


def ours(num_envs: int, steps: int) -> Contestant:
    """`train_jit`, its two evaluations cut to one episode each."""
    config = common_config(num_envs, steps)
    train, numbers = _training(config, COMMON)
    program, seconds = compiled(train, lifedrift_jax.root_key(0), *numbers)
    return Contestant(
        "ours",
        config.total_steps,
        seconds,
        lambda seed: program(lifedrift_jax.root_key(seed), *numbers),
    )


def rejax(num_envs: int, steps: int) -> Contestant:
    """rejax's PPO, compiled as its documentation says, with a constant for an evaluation."""
    config = common_config(num_envs, steps)
    algorithm = rejax_ppo(config).replace(eval_callback=lambda *_: 0.0)
    program, seconds = compiled(algorithm.train, jax.random.key(0))
    return Contestant(
        "rejax", config.total_steps, seconds, lambda seed: program(jax.random.key(seed))
    )


def rejax_ppo(config: PPOConfig) -> Any:
    """rejax's PPO on our five-value view: sizes of `config`, numbers of `COMMON`, tanh."""
    from rejax import PPO

    from lifedrift_jax.wrappers.gymnax import GymnaxLegacyEnv

    env = GymnaxLegacyEnv(*lifedrift_jax.make(ENV_ID))
    return PPO.create(
        env=env,
        env_params=env.default_params,
        agent_kwargs={"activation": "tanh", "hidden_layer_sizes": config.hidden_sizes},
        total_timesteps=config.total_steps,
        eval_freq=config.total_steps,
        skip_initial_evaluation=True,
        num_envs=config.num_envs,
        num_steps=config.num_steps,
        num_epochs=config.epochs,
        num_minibatches=config.minibatches,
        learning_rate=COMMON.learning_rate,
        gamma=COMMON.gamma,
        gae_lambda=COMMON.gae_lambda,
        clip_eps=COMMON.clip,
        ent_coef=COMMON.entropy,
        vf_coef=COMMON.value,
        max_grad_norm=COMMON.max_grad_norm,
    )


def stable_baselines3(num_envs: int, steps: int) -> Contestant:
    """Stable-Baselines3's PPO on our gymnasium vector env.

    A run goes on from the run before, at the same speed. Its compile seconds are those of
    setting up and of the first update, which compiles the env.
    """
    from stable_baselines3 import PPO
    from torch import nn

    from benchmarks.sb3_envs import SB3Envs

    config = common_config(num_envs, steps)
    began = time.perf_counter()
    model = PPO(
        "MlpPolicy",
        SB3Envs(ENV_ID, num_envs),
        learning_rate=COMMON.learning_rate,
        n_steps=config.num_steps,
        batch_size=config.batch_size // config.minibatches,
        n_epochs=config.epochs,
        gamma=COMMON.gamma,
        gae_lambda=COMMON.gae_lambda,
        clip_range=COMMON.clip,
        ent_coef=COMMON.entropy,
        vf_coef=COMMON.value,
        max_grad_norm=COMMON.max_grad_norm,
        policy_kwargs={"net_arch": list(config.hidden_sizes), "activation_fn": nn.Tanh},
        seed=0,
        device="cpu",
    )
    model.learn(config.batch_size)
    seconds = time.perf_counter() - began

    def run(seed: int) -> None:
        model.learn(config.total_steps)

    return Contestant("Stable-Baselines3", config.total_steps, seconds, run)


def many(config: PPOConfig, hyper: Hyper, agents: int) -> tuple[Contestant, ...]:
    """Three ways to train agents of different seeds: one by one, all in a vmap, in a map."""
    train, numbers = _training(config, hyper)

    def keys(seed: int) -> jax.Array:
        root = lifedrift_jax.root_key(seed)
        return jax.vmap(lambda agent: jax.random.fold_in(root, agent))(jnp.arange(agents))

    def mapped(keys: jax.Array, *numbers: Any) -> Any:
        return jax.lax.map(lambda key: train(key, *numbers), keys)

    single, seconds = compiled(train, lifedrift_jax.root_key(0), *numbers)

    def one_by_one(seed: int) -> None:
        for key in keys(seed):
            jax.block_until_ready(single(key, *numbers))

    def together(name: str, function: Callable) -> Contestant:
        program, seconds = compiled(function, keys(0), *numbers)
        return Contestant(name, steps, seconds, lambda seed: program(keys(seed), *numbers))

    steps = agents * config.total_steps
    return (
        Contestant("one by one", steps, seconds, one_by_one),
        together("vmap", jax.vmap(train, in_axes=(0, None, None))),
        together("lax.map", mapped),
    )


def watched() -> tuple[Contestant, Contestant]:
    """The host's loop over a preset's run: silent, and with the progress bar of a terminal."""
    env, params = lifedrift_jax.make(ENV_ID)
    config, hyper = ppo.checked(lifedrift_jax.root_key(0), env, params, *preset(ENV_ID))

    def program(seed: int) -> programs.Program:
        return programs.single(lifedrift_jax.root_key(seed), env, params, config, hyper)

    def silent(seed: int) -> Any:
        return loop.run(program(seed), config).state

    def shown(seed: int) -> Any:
        with (
            open(os.devnull, "w") as nowhere,
            mock.patch.dict(os.environ, FORCE_COLOR="1"),  # what rich takes for a terminal
            contextlib.redirect_stderr(nowhere),
            terminal.progress_bars("steps") as meter,
            meter(ENV_ID, config.total_steps) as bar,
        ):

            def report(row: Metrics) -> None:
                columns = metrics.columns(row, config)
                bar(int(columns["steps"]), config.total_steps, metrics.note(columns))

            return loop.run(program(seed), config, report=report).state

    began = time.perf_counter()
    one = replace(config, total_updates=config.eval_every)
    loop.run(program(0), one)
    seconds = time.perf_counter() - began
    return (
        Contestant("silent", config.total_steps, seconds, silent),
        Contestant("with progress bar", config.total_steps, seconds, shown),
    )


def compiled(function: Callable, *arguments: Any) -> tuple[Callable, float]:
    """The program for such arguments, and the seconds it took to trace and compile."""
    began = time.perf_counter()
    program = jax.jit(function).lower(*arguments).compile()
    return program, time.perf_counter() - began


def _training(config: PPOConfig, hyper: Hyper) -> tuple[Callable, tuple[Any, Hyper]]:
    """`train_jit` of (key, params, hyper), and the last two of them."""
    env, params = lifedrift_jax.make(ENV_ID)
    config = replace(config, eval_episodes=1, eval_steps=horizon(params))

    def train(key: jax.Array, params: Any, hyper: Hyper) -> TrainResult:
        return ppo.train_jit(key, env, params, config, hyper)

    return train, (params, hyper.checked())
