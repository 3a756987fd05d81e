"""LifeStack behind the contract of `core.Env`."""

from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp

from lifedrift_jax.core import Env
from lifedrift_jax.life_stack import actions, dynamics, features, graders, library, tables
from lifedrift_jax.life_stack.compile import compile_task
from lifedrift_jax.life_stack.types import Capacity, Noise, Params, State
from lifedrift_jax.spaces import Box


@dataclass(frozen=True)
class LifeStack(Env[State, Params, Noise]):
    """Resolve a crisis: choose routes, in time, before events and other routes close them.

    The task is in params (see `compile_task`). An action is a type on a route, an inspection
    of a key, to wait, or to roll back the last action; `actions.names` numbers them.

    Observation, [F] float32 in [-1, 1], see `features`: what the agent may know. Keys that
    are neither visible nor inspected carry no information.

    Attributes:
        capacity: sizes of the arrays; params must have been compiled for the same.
    """

    capacity: Capacity = field(default_factory=Capacity)

    variable_names: ClassVar[tuple[str, ...]] = (
        *("earned", "money_spent", "routes_open", "routes_completed"),
        *("milestones", "events", "keys_inspected"),
    )
    event_names: ClassVar[tuple[str, ...]] = ("success", "failure", "rolled_back")

    def __post_init__(self) -> None:
        """Set the names and bounds that the sizes decide."""
        most = float(self.capacity.rewards)
        object.__setattr__(self, "action_names", actions.names(self.capacity))
        object.__setattr__(self, "observation_names", features.names(self.capacity))
        object.__setattr__(self, "reward_range", (-most, most))

    def start(self, key: jax.Array, params: Params) -> State:
        """See `dynamics.initial_state`."""
        return dynamics.initial_state(key, params)

    def draw(self, key: jax.Array) -> Noise:
        """See `dynamics.draw`."""
        return dynamics.draw(key, self.capacity)

    def transition(
        self, state: State, action: jax.Array, noise: Noise, params: Params
    ) -> tuple[State, jax.Array]:
        """See `dynamics.transition`."""
        return dynamics.transition(state, action, noise, params, self.capacity)

    def is_terminal(self, state: State, params: Params) -> jax.Array:
        """() bool: success, failure, or the horizon."""
        return actions.is_over(state, params)

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """[A] bool, see `actions.mask`."""
        return actions.mask(state, params, self.capacity)

    def is_legal(self, state: State, action: jax.Array, params: Params) -> jax.Array:
        """() bool, the action is in range and its entry of the mask is True."""
        return actions.target(state, action, params, self.capacity).legal

    def observe(self, state: State, params: Params) -> jax.Array:
        """[F] float32, see `features`."""
        return features.observe(state, params, self.capacity)

    def variables(self, state: State, params: Params) -> tuple[jax.Array, ...]:
        """Rewards and money so far, then counts."""
        world = state.world
        shown = state.shown[0] & ~params.visible[0]  # inspected
        sets = (world.completed, world.reached, state.fired, shown)
        completed, reached, fired, inspected = map(jax.lax.population_count, sets)
        open_ = jnp.sum(features.open_routes(state, params), dtype=jnp.int32)
        earned = graders.earned(world.completed, world.reached, params)
        spent = graders.spent(world, params)
        return earned, spent, open_, completed, reached, fired, inspected

    def events(self, state: State, params: Params) -> tuple[jax.Array, ...]:
        """() bools: success; failure, which success outweighs; the rollback was used."""
        success = actions.is_success(state.world, params)
        failure = ~success & actions.is_failure(state.world, params)
        return success, failure, state.rollback == tables.ROLLBACK_USED

    def observation_space(self, params: Params) -> Box:
        """[F] float32 in [-1, 1]."""
        return Box(-1.0, 1.0, (len(self.observation_names),))

    def score(self, state: State, params: Params) -> jax.Array:
        """The grade, () float in [0, 1]."""
        return graders.score(state.world, params)

    def return_bounds(self, num_steps: int) -> tuple[float, float]:
        """What is paid is paid once, so the rewards of a step bound those of an episode."""
        return self.reward_range


def make(env_id: str, difficulty: int | None = None) -> tuple[LifeStack, Params]:
    """The env and the params of `life_stack/<task>-v0`.

    Args:
        env_id: of a built-in task.
        difficulty: in [1, 5]; by default the task's own.
    """
    name = env_id.split("/")[-1].rpartition("-v")[0]
    task = library.build(name, difficulty)
    best = library.best_return(name, task.difficulty)
    return LifeStack(), compile_task(task, best_return=best)
