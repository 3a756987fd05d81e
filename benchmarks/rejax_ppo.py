"""Train rejax's PPO on the five-value gymnax view of an env, and print what it learned.

rejax needs packages that the project does not, so give it a virtual environment of its own
and install, by name: lifedrift_jax (this checkout), rejax==0.1.3, gymnax>=1.0.1,
gymnasium<1.4 and six. rejax itself brings distrax, which brings tfp-nightly. Then:

    python benchmarks/rejax_ppo.py
    python benchmarks/rejax_ppo.py life_drift/energy_balance-v0 --steps 500000 --seed 1
"""

import argparse

import jax
import numpy as np
from rejax import PPO

import lifedrift_jax
from lifedrift_jax.wrappers.gymnax import GymnaxLegacyEnv


def train(env_id: str, steps: int, seed: int) -> tuple[jax.Array, jax.Array]:
    """Train once.

    Returns:
        (lengths, returns) of the evaluation episodes, [evaluations, 128] each; the first
        row is from before training.
    """
    env = GymnaxLegacyEnv(*lifedrift_jax.make(env_id))
    algorithm = PPO.create(
        env=env,
        env_params=env.default_params,
        total_timesteps=steps,
        eval_freq=steps // 4,
        num_envs=64,
        num_steps=32,
        num_minibatches=4,
        num_epochs=4,
        learning_rate=1e-3,
        max_grad_norm=0.5,
        gamma=0.99,
        ent_coef=0.01,
    )
    _, (lengths, returns) = jax.jit(algorithm.train)(jax.random.key(seed))
    return lengths, returns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env_id", nargs="?", default="life_drift/drift_correction-v0")
    parser.add_argument("--steps", type=int, default=131_072, help="env steps to train for")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    lengths, returns = (np.asarray(x) for x in train(args.env_id, args.steps, args.seed))
    error = returns.std(axis=1, ddof=1) / np.sqrt(returns.shape[1])
    print(
        f"{args.env_id}: mean return of {returns.shape[1]} episodes of {lengths.mean():.1f} steps"
    )
    for when, row in (("before", 0), ("after", -1)):
        print(f"{when:>6} training: {returns[row].mean():.3f} +- {error[row]:.3f}")


if __name__ == "__main__":
    main()
