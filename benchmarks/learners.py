"""Who runs to the target in `train_time.py`: trainers that stop now and then to be scored.

The score is `greedy_return`'s, one function for all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import lifedrift_jax
from benchmarks.trainers import ENV_ID, compiled, rejax_ppo
from lifedrift_jax import rollout
from lifedrift_jax.core import Policy, horizon
from train import Hyper, PPOConfig, collect, networks, normalizer, ppo
from train.config import HELD_OUT_SEED
from train.types import TrainState

RANDOM_RETURN, OPTIMAL_RETURN = 0.489, 4.530  # of ENV_ID: 0 and 1 of the normalised return
EPISODES = 512  # held-out ones, of each score


@dataclass(frozen=True)
class Learner:
    """A trainer that can be stopped and looked at.

    Attributes:
        name: as written in the table.
        steps: environment steps of one `advance`.
        compile_seconds: what compiling `start` and `advance` took.
        start: `(seed) -> state`, untrained.
        advance: `(state) -> state`, `steps` later.
        score: `(state)`: normalised return of greedy play, 0 = random play, 1 = optimum.
    """

    name: str
    steps: int
    compile_seconds: float
    start: Callable[[int], Any]
    advance: Callable[[Any], Any]
    score: Callable[[Any], float]


def ours(name: str, config: PPOConfig, hyper: Hyper, steps: int) -> Learner:
    """Our PPO, `steps` environment steps at a time, rounded up to whole updates."""
    env, params = lifedrift_jax.make(ENV_ID)
    config, hyper = ppo.checked(lifedrift_jax.root_key(0), env, params, config, hyper)
    network = networks.network(env, config.hidden_sizes)

    def update(state: TrainState, params: Any, hyper: Hyper) -> TrainState:
        return ppo.update(state, env, params, config, hyper)[0]

    def logits(state: TrainState, obs: jax.Array) -> jax.Array:
        seen = normalizer.scale(collect.scaling(state, config), networks.features(obs, 0))
        return network.apply(state.params, seen)[0]

    def start(key: jax.Array, params: Any, hyper: Hyper) -> TrainState:
        return ppo.init(key, env, params, config, hyper)

    pieces = start, update, logits
    return _learner(name, pieces, lifedrift_jax.root_key, config.batch_size, steps, (params, hyper))


def rejax(name: str, config: PPOConfig, steps: int) -> Learner:
    """rejax's PPO in the same way, with the common numbers."""
    algorithm = rejax_ppo(config)

    def logits(state: Any, obs: jax.Array) -> jax.Array:
        actor, weights = algorithm.actor, state.actor_ts.params
        return actor.apply(weights, obs[None], method="_action_dist").logits[0]

    pieces = algorithm.init_state, algorithm.train_iteration, logits
    return _learner(name, pieces, jax.random.key, config.batch_size, steps)


def _learner(
    name: str,
    pieces: tuple[Callable, Callable, Callable],
    key: Callable[[int], jax.Array],
    batch_size: int,
    steps: int,
    numbers: tuple = (),
) -> Learner:
    """A learner of `start(key, *numbers)`, `update(state, *numbers)`, `logits(state, obs)`."""
    start, update, logits = pieces
    updates = -(-steps // batch_size)

    def advance(state: Any, *numbers: Any) -> Any:
        return jax.lax.fori_loop(0, updates, lambda _, s: update(s, *numbers), state)

    begin, start_seconds = compiled(start, key(0), *numbers)
    go_on, advance_seconds = compiled(advance, begin(key(0), *numbers), *numbers)
    mean = greedy_return(logits)
    scale = OPTIMAL_RETURN - RANDOM_RETURN
    return Learner(
        name,
        updates * batch_size,
        start_seconds + advance_seconds,
        lambda seed: begin(key(seed), *numbers),
        lambda state: go_on(state, *numbers),
        lambda state: (float(mean(state)) - RANDOM_RETURN) / scale,
    )


def greedy_return(logits: Callable[[Any, jax.Array], jax.Array]) -> Callable[[Any], jax.Array]:
    """`(state) -> ()` mean return of the held-out episodes, compiled; each action is the most
    probable legal one by `logits(state, obs)` [A].
    """
    env, params = lifedrift_jax.make(ENV_ID)
    root, num_steps = lifedrift_jax.root_key(HELD_OUT_SEED), horizon(params)

    def act(key: jax.Array, obs: jax.Array, mask: jax.Array, carry: Any) -> tuple[jax.Array, Any]:
        legal = jnp.where(mask, logits(carry, obs), -jnp.inf)
        return jnp.argmax(legal).astype(jnp.int32), carry

    @jax.jit
    def mean(state: Any) -> jax.Array:
        policy = Policy("greedy", lambda key, params: state, act)

        def play(number: jax.Array) -> jax.Array:
            key = lifedrift_jax.episode_key(root, number)
            return rollout.episode(key, env, policy, params, num_steps)[0].episode_return

        return jax.vmap(play)(jnp.arange(EPISODES, dtype=jnp.uint32)).mean()

    return mean
