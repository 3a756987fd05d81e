"""Tuned sizes and numbers for each task, and the sweeps that found them.

Life Drift, version 0: the best greedy return of

    python -m train run ID --no-preset --seeds 3 --sweep lr=1e-3,2e-3 entropy=0.005,0.02
      --hyper learning_rate_decay=1
      --config num_envs=128 total_updates=400 eval_every=40 normalize_observations=true

on each of the three tasks (2 million steps an agent). The same numbers won on all three.
Without normalised observations, agents of long_term_stability stay at a policy that earns
0.95 of what the optimum adds to random play, instead of 0.99.

TaskFlow, version 0: the best greedy score on medium and hard among learning rates of 1e-3 to
4e-3, entropies of 0.01 to 0.05 and widths of 32 and 64, with the encoder `items`, for which
the order of the items is nothing (1 million steps an agent). On easy, whose best plays lie
close together, these agents stay below the heuristic; four times as many environments,
normalised observations and twice the entropy lift them above it (4 million steps an agent;
8 million, or an entropy of 0.01 or 0.03, do less).
"""

from dataclasses import replace

from lifedrift_jax.names import unknown
from lifedrift_jax.registry import resolve
from train.config import Hyper, PPOConfig

_LIFE_DRIFT = (
    PPOConfig(
        num_envs=128,
        num_steps=40,
        minibatches=4,
        epochs=4,
        total_updates=400,
        eval_every=40,
        normalize_observations=True,
    ),
    Hyper(learning_rate=2e-3, learning_rate_decay=1.0, entropy=0.02),
)

_TASK_FLOW = (
    PPOConfig(
        num_envs=256,
        num_steps=10,
        minibatches=4,
        epochs=4,
        hidden_sizes=(32, 32),
        encoder="items",
        total_updates=400,
        eval_every=40,
    ),
    Hyper(
        learning_rate=4e-3,
        learning_rate_decay=1.0,
        gamma=1.0,
        entropy=0.03,
        reward_weight=0.0,
        grade_weight=1.0,
    ),
)

_TASK_FLOW_EASY = (
    replace(
        _TASK_FLOW[0],
        num_envs=1024,
        minibatches=8,
        normalize_observations=True,
        eval_episodes=4096,  # its best policies differ by thousandths
    ),
    replace(_TASK_FLOW[1], entropy=0.06),
)

# Environment id -> sizes and numbers; for Life Drift of the objective `reward`, for TaskFlow
# of the objective `grade`.
PRESETS: dict[str, tuple[PPOConfig, Hyper]] = {
    "life_drift/drift_correction-v0": _LIFE_DRIFT,
    "life_drift/energy_balance-v0": _LIFE_DRIFT,
    "life_drift/long_term_stability-v0": _LIFE_DRIFT,
    "task_flow/easy-v0": _TASK_FLOW_EASY,
    "task_flow/medium-v0": _TASK_FLOW,
    "task_flow/hard-v0": _TASK_FLOW,
}


def preset(env_id: str) -> tuple[PPOConfig, Hyper]:
    """The preset of a task; without a version in the id, of its newest one.

    Raises:
        ValueError: there is none; lists those there are.
    """
    full = resolve(env_id)
    if full not in PRESETS:
        raise unknown("preset for", full, PRESETS)
    return PRESETS[full]
