"""What a run of PPO is made of: its state, its steps, its metrics."""

from typing import Any, NamedTuple

import jax

from train.evaluation import Evaluation
from train.losses import LossParts
from train.normalizer import Normalizer


class TrainState(NamedTuple):
    """Everything a run is at between two updates; what a checkpoint holds.

    Attributes:
        params: of the network.
        optimizer: optax state; its count of gradient steps is the schedule's position.
        normalizer: of the features' last axis, empty and unused unless the config asks for it.
        env_state: [E] states of `BatchAutoReset(EpisodeStats(env))`.
        obs: [E, ...] their observations.
        env_keys: [E] keys, env i's stream of random numbers.
        key: the run's key.
        update: () int32, updates done.
    """

    params: Any
    optimizer: Any
    normalizer: Normalizer
    env_state: Any
    obs: jax.Array
    env_keys: jax.Array
    key: jax.Array
    update: jax.Array


class Trajectory(NamedTuple):
    """Steps of all environments, [T, E] leaves.

    Attributes:
        features: [T, E, F] or [T, E, n, F] float32, before they are scaled; see
            `networks.features`.
        mask: [T, E, A] bool, True = legal.
        action: int32.
        log_prob: float, of the action.
        value: float, of the observation before the step.
        final_value: float, of the episode's own last observation where `truncated`; else 0.
        reward: float, of the objective.
        terminated, truncated: bool, how an episode ended at this step.
    """

    features: jax.Array
    mask: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    final_value: jax.Array
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array


class Metrics(NamedTuple):
    """One row an evaluation; leaves () here, [evaluations + 1] in a result.

    Attributes:
        update: () int32, updates done by then.
        losses: means over the gradient steps since the row before; 0 in row 0.
        greedy, sampled: evaluations of the greedy and of the sampling policy.
    """

    update: jax.Array
    losses: LossParts
    greedy: Evaluation
    sampled: Evaluation


class TrainResult(NamedTuple):
    """What training gives.

    Attributes:
        state: the last state.
        metrics: [num_evaluations + 1] rows; row 0 is from before training.
    """

    state: TrainState
    metrics: Metrics
