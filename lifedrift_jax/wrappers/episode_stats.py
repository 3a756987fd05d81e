"""Count what an episode came to."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Step
from lifedrift_jax.wrappers.base import Wrapper, refuse_auto_reset, step_shapes


class EpisodeStatsState(NamedTuple):
    """State of `EpisodeStats`.

    Attributes:
        env_state: the inner env's state.
        episode_return: () float, sum of rewards so far.
        episode_length: () int32, steps taken so far.
    """

    env_state: Any
    episode_return: jax.Array
    episode_length: jax.Array


@dataclass(frozen=True)
class EpisodeStats(Wrapper):
    """Adds the episode's numbers up to and including this step to info.

    * `episode_return`: () float, sum of rewards in the order they came;
    * `episode_length`: () int32, steps taken; a step from a finished state does not count;
    * `score`: () float in [0, 1], the grade of the state after the step.

    They are those of the whole episode in the step that ends it, also inside `AutoReset`
    (there: where `final_valid` is True), and provisional before.

    Raises:
        ValueError: the env inside resets by itself, so its episodes' ends are out of reach.
    """

    def __post_init__(self) -> None:
        refuse_auto_reset(self, "the state that ended the episode is gone there")
        super().__post_init__()

    def inner_state(self, state: EpisodeStatsState) -> Any:
        """The inner env's state."""
        return state.env_state

    def start(self, key: jax.Array, params: Any) -> EpisodeStatsState:
        """The inner env's first state, nothing counted yet."""
        zero = _zeros(step_shapes(self.env, params).reward)
        return EpisodeStatsState(self.env.start(key, params), zero, jnp.int32(0))

    @partial(jax.jit, static_argnames="self")
    def advance(self, state: EpisodeStatsState, action: jax.Array, noise: Any, params: Any) -> Step:
        """The inner env's step; info gains the three entries."""
        step = self.env.advance(state.env_state, action, noise, params)
        live = ~self.env.is_terminal(state.env_state, params)
        after = EpisodeStatsState(
            step.state,
            state.episode_return + step.reward,
            state.episode_length + live.astype(jnp.int32),
        )
        info = {
            **step.info,
            "episode_return": after.episode_return,
            "episode_length": after.episode_length,
            "score": self.env.grade(step.state, params),
        }
        return step._replace(state=after, info=info)

    def empty_info(self, params: Any) -> dict[str, jax.Array]:
        """The inner env's, and three zeros."""
        shapes = step_shapes(self.env, params)
        return {
            **self.env.empty_info(params),
            "episode_return": _zeros(shapes.reward),
            "episode_length": jnp.int32(0),
            "score": _zeros(jax.eval_shape(self.env.grade, shapes.state, params)),
        }


def _zeros(shape: jax.ShapeDtypeStruct | jax.Array) -> jax.Array:
    return jnp.zeros(shape.shape, shape.dtype)
