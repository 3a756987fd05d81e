"""Life Drift, version 0, as plain vectorised NumPy: what one would write without JAX.

The numbers come from the library's tables; the rules are written again. Arrays hold one row a
variable, in the order of `tables.VARIABLES`, and one column an episode, float32 throughout.
"""

import numpy as np

from lifedrift_jax.life_drift import tables

ALIGNMENT, DRIFT, ENERGY, FATIGUE, FOCUS = range(5)
LOW, HIGH = np.moveaxis(tables.EFFECTS.astype(np.float32), (2, 1), (0, 1))  # [5, 6] each
SPAN = HIGH - LOW
NATURAL_ROWS = [tables.VARIABLES.index(name) for name in tables.NATURAL]
NATURAL_LOW, NATURAL_HIGH = np.array([*tables.NATURAL.values()], np.float32).T[..., None]
DRIFT_SHARE = tables.DRIFT_PER_ALIGNMENT.astype(np.float32)
FATIGUE_SHARE = tables.FATIGUE_PER_ENERGY.astype(np.float32)
REWARD, GRADER = tables.REWARD, tables.GRADER


class Episodes:
    """Episodes of one task, side by side.

    Args:
        task: a name of `tables.TASKS`.
        num_envs: how many, N.
    """

    def __init__(self, task: str, num_envs: int):
        self.task = tables.TASKS[task]
        self.start = np.array(self.task.start, np.float32)[:, None]
        self.x = np.repeat(self.start, num_envs, axis=1)  # [5, N] the variables
        self.step_count = 0
        self.sums = np.zeros_like(self.x)  # [5, N] over the steps, of variable - start
        self.energy_square_sum = np.zeros_like(self.x[0])
        self.fatigue_max = self.x[FATIGUE].copy()
        self.returns = np.zeros_like(self.x[0])  # [N] sum of rewards
        self.cascade_steps = np.zeros(num_envs, np.int32)

    def step(self, action: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
        """Move all episodes on.

        Args:
            action: [N] integers in [0, 6).
            uniforms: [8, N] float32 in [0, 1]: alignment, drift, energy, fatigue, focus, natural
                fatigue, natural drift, natural energy.

        Returns:
            [N] rewards.
        """
        self.step_count += 1
        change = np.take(LOW, action, axis=1) + np.take(SPAN, action, axis=1) * uniforms[:5]
        change[DRIFT] += DRIFT_SHARE[action] * change[ALIGNMENT]
        change[FATIGUE] += FATIGUE_SHARE[action] * change[ENERGY]
        change[NATURAL_ROWS] += NATURAL_LOW + (NATURAL_HIGH - NATURAL_LOW) * uniforms[5:]
        last = len(tables.PHASES) - 1
        phase = min(len(tables.PHASES) * self.step_count // self.task.max_steps, last)
        change[FATIGUE] += np.float32(tables.PHASE_FATIGUE[phase])
        change[FOCUS] += np.float32(tables.PHASE_FOCUS[phase])

        before, after = self.x, self.x + change
        cascade = after[FATIGUE] > np.float32(tables.CASCADE_THRESHOLD)
        for name, effect in tables.CASCADE.items():
            after[tables.VARIABLES.index(name)] += np.float32(effect) * cascade
        np.clip(after, 0, 1, out=after)

        paid = reward(before, after)
        self.x = after
        shifted = after - self.start
        self.sums += shifted
        self.energy_square_sum += shifted[ENERGY] ** 2
        np.maximum(self.fatigue_max, after[FATIGUE], out=self.fatigue_max)
        self.returns += paid
        self.cascade_steps += cascade
        return paid

    def grade(self) -> np.ndarray:
        """[N] scores of the episodes so far, clamped."""
        states = np.float32(self.step_count + 1)
        means = self.start + self.sums / states
        energy_shift = self.sums[ENERGY] / states
        variance = self.energy_square_sum / states - energy_shift**2
        target = GRADER["target"]
        components = {
            "final_alignment": np.minimum(self.x[ALIGNMENT] / target, 1),
            "final_low_drift": np.minimum((1 - self.x[DRIFT]) / target, 1),
            "mean_alignment": means[ALIGNMENT],
            "mean_low_fatigue": 1 - means[FATIGUE],
            "final_low_fatigue": 1 - self.x[FATIGUE],
            "mean_low_drift": 1 - means[DRIFT],
            "steady_energy": np.maximum(1 - GRADER["variance_scale"] * variance, 0),
            "low_peak_fatigue": 1 - self.fatigue_max,
            "mean_reward": np.clip((self.returns / np.float32(self.step_count) + 1) / 2, 0, 1),
        }
        total = sum(weight * components[name] for name, weight in self.task.weights.items())
        return np.clip(total, GRADER["low"], GRADER["high"])


def reward(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """[N] rewards of a step, from the variables [5, N] before and after it."""
    alignment, drift, energy, fatigue, _ = after
    gained = after - before
    in_window = (energy >= REWARD["energy_low"]) & (energy <= REWARD["energy_high"])
    on_course = (alignment > REWARD["on_course_alignment"]) & (drift < REWARD["on_course_drift"])
    rested = (fatigue < REWARD["rested_fatigue"]) & (energy > REWARD["rested_energy"])
    total = (
        REWARD["alignment"] * gained[ALIGNMENT]
        + REWARD["drift"] * gained[DRIFT]
        + REWARD["fatigue"] * np.maximum(gained[FATIGUE], 0)
    )
    total += np.where(
        in_window, np.float32(REWARD["energy_inside"]), np.float32(REWARD["energy_outside"])
    )
    for where, amount in (
        (on_course, REWARD["on_course"]),
        (rested, REWARD["rested"]),
        (fatigue > REWARD["exhausted_fatigue"], REWARD["exhausted"]),
        (drift > REWARD["adrift_drift"], REWARD["adrift"]),
    ):
        total += np.float32(amount) * where
    return np.clip(total, REWARD["low"], REWARD["high"])


def play(task: str, num_envs: int, generator: np.random.Generator) -> Episodes:
    """Whole episodes of the uniform random policy."""
    episodes = Episodes(task, num_envs)
    for _ in range(episodes.task.max_steps):
        action = generator.integers(0, len(tables.ACTIONS), num_envs)
        episodes.step(action, generator.random((8, num_envs), dtype=np.float32))
    return episodes
