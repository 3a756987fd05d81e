"""Params, State and Noise of Life Drift."""

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.life_drift import tables

MAX_STEPS = 1_000_000  # longest horizon: five times it, in int32, and sums stay precise


class Noise(NamedTuple):
    """The eight uniform draws of a step, each () float in [0, 1].

    A draw u becomes `low + (high - low) * u` in the bounds of `Params`. The first five are
    the magnitudes of the action's effects, unused where it has none of its own; the last
    three those of the natural dynamics.
    """

    alignment: jax.Array
    drift: jax.Array
    energy: jax.Array
    fatigue: jax.Array
    focus: jax.Array
    natural_fatigue: jax.Array
    natural_drift: jax.Array
    natural_energy: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Reward:
    """Numbers of the reward, () float each; meanings in `tables.REWARD`."""

    alignment: jax.Array
    drift: jax.Array
    fatigue: jax.Array
    energy_low: jax.Array
    energy_high: jax.Array
    energy_inside: jax.Array
    energy_outside: jax.Array
    on_course: jax.Array
    on_course_alignment: jax.Array
    on_course_drift: jax.Array
    rested: jax.Array
    rested_fatigue: jax.Array
    rested_energy: jax.Array
    exhausted: jax.Array
    exhausted_fatigue: jax.Array
    adrift: jax.Array
    adrift_drift: jax.Array
    low: jax.Array
    high: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    """Every tunable number of Life Drift. Stack several to `vmap` over tasks.

    All changes are per step, on variables in [0, 1]. Rows of [6, 5] tables are actions
    (`tables.ACTIONS`), columns variables (`tables.VARIABLES`).
    """

    task: jax.Array  # () int32, index into tables.TASKS, for the observation and texts only
    max_steps: jax.Array  # () int32, deadline, steps, at least 1
    start: jax.Array  # [5] first values
    effect_low: jax.Array  # [6, 5] lower bound of an effect's draw
    effect_high: jax.Array  # [6, 5] upper bound
    drift_per_alignment: jax.Array  # [6] drift change per unit of the alignment draw
    fatigue_per_energy: jax.Array  # [6] fatigue change per unit of the energy draw
    natural_low: jax.Array  # [3] of fatigue, drift, energy (tables.NATURAL)
    natural_high: jax.Array  # [3]
    phase_fatigue: jax.Array  # [5] fatigue change in each day phase
    phase_focus: jax.Array  # [5] focus change in each day phase
    cascade_threshold: jax.Array  # () fatigue above which the cascade strikes
    cascade_alignment: jax.Array  # () its alignment change
    cascade_drift: jax.Array  # () its drift change
    cascade_focus: jax.Array  # () its focus change
    reward: Reward
    grade_weights: jax.Array  # [9] weight of each component in tables.COMPONENTS
    grade_target: jax.Array  # () value from which final alignment and 1 - drift pay in full
    grade_variance_scale: jax.Array  # () lost per unit of energy variance
    grade_low: jax.Array  # () the grade is clamped to [grade_low, grade_high]
    grade_high: jax.Array

    def validate(self) -> None:
        """Raise ValueError if a concrete number makes no sense."""

        def need(holds: Any, name: str, legal: str) -> None:
            if not np.all(holds):
                value = np.asarray(attrgetter(name)(self)).tolist()
                raise ValueError(f"{name} is {value}: it must be {legal}")

        reward = self.reward
        need((self.task >= 0) & (self.task < len(tables.TASKS)), "task", "an index of TASKS")
        steps = (self.max_steps >= 1) & (self.max_steps <= MAX_STEPS)
        need(steps, "max_steps", f"in [1, {MAX_STEPS:,}]")
        need((self.start >= 0) & (self.start <= 1), "start", "five numbers in [0, 1]")
        need(self.effect_low <= self.effect_high, "effect_low", "at most effect_high")
        need(self.natural_low <= self.natural_high, "natural_low", "at most natural_high")
        need((reward.low >= -1) & (reward.low <= reward.high), "reward.low", "in [-1, reward.high]")
        need(reward.high <= 1, "reward.high", "at most 1")
        need(self.grade_weights >= 0, "grade_weights", "nine numbers of at least 0")
        need(
            np.sum(self.grade_weights, axis=-1) < 1 + 1e-6, "grade_weights", "of a sum of at most 1"
        )
        need(self.grade_target > 0, "grade_target", "above 0")
        need(self.grade_variance_scale >= 0, "grade_variance_scale", "at least 0")
        need(
            (self.grade_low >= 0) & (self.grade_low <= self.grade_high),
            "grade_low",
            "in [0, grade_high]",
        )
        need(self.grade_high <= 1, "grade_high", "at most 1")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """What changes in an episode. Sums run over the steps taken, the start state left out,
    and are shifted by the start's value, so that means and variance lose no precision.
    """

    alignment: jax.Array  # () float in [0, 1]
    drift: jax.Array  # () float in [0, 1]
    energy: jax.Array  # () float in [0, 1]
    fatigue: jax.Array  # () float in [0, 1]
    focus: jax.Array  # () float in [0, 1]
    step: jax.Array  # () int32, steps taken
    alignment_sum: jax.Array  # () sum of alignment - start
    drift_sum: jax.Array  # () sum of drift - start
    fatigue_sum: jax.Array  # () sum of fatigue - start
    energy_sum: jax.Array  # () sum of energy - start
    energy_square_sum: jax.Array  # () sum of (energy - start)**2
    fatigue_max: jax.Array  # () largest fatigue, the start included
    reward_sum: jax.Array  # () sum of rewards
    cascade_steps: jax.Array  # () int32, steps in which the cascade struck
    recent: jax.Array  # () int32, the last three actions as octal digits, newest lowest:
    #                    0 = none yet, 1..6 = action index + 1, 7 = an invalid action


def task_params(task: str, dtype: type = np.float32) -> Params:
    """Params of a version-0 task.

    Args:
        task: a name of `tables.TASKS`.
        dtype: of the float leaves. The tables hold decimals, so float64 (under x64) gives
            numbers that a cast from float32 does not.
    """
    spec = tables.TASKS[task]
    natural = tables.NATURAL.values()

    def real(x) -> jax.Array:
        return jnp.asarray(np.asarray(x, dtype))

    return Params(
        task=jnp.asarray(list(tables.TASKS).index(task), jnp.int32),
        max_steps=jnp.asarray(spec.max_steps, jnp.int32),
        start=real(spec.start),
        effect_low=real(tables.EFFECTS[..., 0]),
        effect_high=real(tables.EFFECTS[..., 1]),
        drift_per_alignment=real(tables.DRIFT_PER_ALIGNMENT),
        fatigue_per_energy=real(tables.FATIGUE_PER_ENERGY),
        natural_low=real([low for low, _ in natural]),
        natural_high=real([high for _, high in natural]),
        phase_fatigue=real(tables.PHASE_FATIGUE),
        phase_focus=real(tables.PHASE_FOCUS),
        cascade_threshold=real(tables.CASCADE_THRESHOLD),
        cascade_alignment=real(tables.CASCADE["alignment"]),
        cascade_drift=real(tables.CASCADE["drift"]),
        cascade_focus=real(tables.CASCADE["focus"]),
        reward=Reward(**{f.name: real(tables.REWARD[f.name]) for f in fields(Reward)}),
        grade_weights=real([spec.weights.get(name, 0.0) for name in tables.COMPONENTS]),
        grade_target=real(tables.GRADER["target"]),
        grade_variance_scale=real(tables.GRADER["variance_scale"]),
        grade_low=real(tables.GRADER["low"]),
        grade_high=real(tables.GRADER["high"]),
    )
