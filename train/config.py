"""What a run of PPO is made of: `PPOConfig` is sizes (static), `Hyper` is numbers (traced).

Another PPOConfig is another compiled program; another Hyper is not. What is in Hyper can be
swept with `jax.vmap`.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.core import positive
from lifedrift_jax.names import unknown
from lifedrift_jax.rng import checked_seed

COUNT_LIMIT = 2**31  # steps of an env, and gradient steps, are int32
ENCODERS = ("flat", "items")
HELD_OUT_SEED = 4_000_000_000  # far from the small numbers that people train with


@dataclass(frozen=True)
class PPOConfig:
    """Sizes of a run.

    An update collects `num_envs * num_steps` steps and goes through them `epochs` times in
    `minibatches` gradient steps each; after every `eval_every` updates comes an evaluation.

    Attributes:
        num_envs: environments side by side, E.
        num_steps: steps of each in an update, T; episodes go on over its borders.
        minibatches: parts of `num_envs * num_steps` samples, M; must divide them.
        epochs: passes over the samples in an update.
        hidden_sizes: widths of the hidden layers, of the actor and of the critic each.
        encoder: how they see an observation: "flat" = as one vector; "items" = as rows of
            [n, F], one an interchangeable item, see `networks.ItemActorCritic`.
        total_updates: updates in all.
        eval_every: updates between two evaluations; must divide total_updates.
        eval_episodes: episodes of an evaluation, played once greedily, once sampled.
        eval_seed: their seed, held out: no training episode draws from it.
        eval_steps: steps an evaluation plays; None = `params.max_steps`, which must then
            be a concrete number.
        normalize_observations: scale observations by their running mean and spread.
        device_axis: mapped axis that `num_envs` is split over, set by `programs.split_envs`.
    """

    num_envs: int = 256
    num_steps: int = 40
    minibatches: int = 4
    epochs: int = 4
    hidden_sizes: tuple[int, ...] = (64, 64)
    encoder: str = "flat"
    total_updates: int = 300
    eval_every: int = 30
    eval_episodes: int = 512
    eval_seed: int = HELD_OUT_SEED
    eval_steps: int | None = None
    normalize_observations: bool = False
    device_axis: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for sizes that make no run; each message names legal ones."""
        sizes = ("num_envs", "num_steps", "minibatches", "epochs", "total_updates", "eval_every")
        for name in (*sizes, "eval_episodes"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.eval_steps is not None:
            object.__setattr__(self, "eval_steps", positive("eval_steps", self.eval_steps))
        if not isinstance(self.hidden_sizes, tuple | list):
            raise ValueError(f"hidden_sizes is {self.hidden_sizes!r}: use widths, such as (64, 64)")
        # A list, such as JSON gives, would not hash.
        widths = tuple(positive("hidden_sizes", size) for size in self.hidden_sizes)
        object.__setattr__(self, "hidden_sizes", widths)
        if self.encoder not in ENCODERS:
            raise unknown("encoder", self.encoder, ENCODERS)
        if not isinstance(self.normalize_observations, bool):
            raise ValueError(
                f"normalize_observations is {self.normalize_observations!r}: use True or False"
            )
        checked_seed(self.eval_seed)
        counts = self.total_updates * max(self.num_steps, self.epochs * self.minibatches)
        if counts >= COUNT_LIMIT:
            raise ValueError(
                f"total_updates is {self.total_updates}: with {self.num_steps} steps, "
                f"{self.epochs} epochs and {self.minibatches} minibatches it must be below "
                f"{COUNT_LIMIT // (counts // self.total_updates)}, as steps are counted in 32 bits"
            )
        _divides("minibatches", self.minibatches, "num_envs * num_steps", self.batch_size)
        _divides("eval_every", self.eval_every, "total_updates", self.total_updates)

    @property
    def batch_size(self) -> int:
        """Samples of one update, `num_envs * num_steps`; also env steps of one update."""
        return self.num_envs * self.num_steps

    @property
    def total_steps(self) -> int:
        """Environment steps of the whole run."""
        return self.batch_size * self.total_updates

    @property
    def gradient_steps(self) -> int:
        """Gradient steps of the whole run."""
        return self.total_updates * self.epochs * self.minibatches

    @property
    def num_evaluations(self) -> int:
        """Evaluations of a run, the one before training left out."""
        return self.total_updates // self.eval_every


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Hyper:
    """Numbers of a run, () float32 each once in compiled code.

    Attributes:
        learning_rate: Adam's step size at the first gradient step.
        learning_rate_decay: in [0, 1], share of it that is gone, linearly, after the last
            gradient step; the unit of the schedule is ONE gradient step, see
            `losses.learning_rate`.
        gamma: discount of the next step's value, in [0, 1].
        gae_lambda: in [0, 1], weight of later errors in an advantage.
        clip: PPO's bound of |ratio - 1|, above 0.
        entropy: weight of the entropy bonus.
        value: weight of the value loss, which is half the mean squared error.
        max_grad_norm: above it the gradient is scaled down, by its global norm.
        reward_weight: what is maximised is reward_weight * reward of each step
        grade_weight: ... + grade_weight * score, paid in the step that ends the task.
    """

    learning_rate: float | jax.Array = 1e-3
    learning_rate_decay: float | jax.Array = 0.0
    gamma: float | jax.Array = 0.99
    gae_lambda: float | jax.Array = 0.95
    clip: float | jax.Array = 0.2
    entropy: float | jax.Array = 0.003
    value: float | jax.Array = 0.5
    max_grad_norm: float | jax.Array = 0.5
    reward_weight: float | jax.Array = 1.0
    grade_weight: float | jax.Array = 0.0

    def checked(self) -> "Hyper":
        """The same, float32 arrays: Python and NumPy numbers then share one compilation.

        Raises:
            ValueError: a concrete number makes no sense.
        """
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if isinstance(value, jax.core.Tracer):
                continue
            number = np.asarray(value)
            with np.errstate(over="ignore"):  # what float32 cannot hold is not finite
                legal = number.dtype.kind in "fiu" and np.isfinite(number.astype(np.float32)).all()
            if not (legal and np.all((number >= low) & (number <= high))):
                raise ValueError(
                    f"{name} is {number.tolist()!r}: it must be finite, in [{low:g}, {high:g}]"
                )
        return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), self)


# Hyper-parameter -> (lowest, highest) legal value.
RANGES: dict[str, tuple[float, float]] = {
    "learning_rate": (0, 1),
    "learning_rate_decay": (0, 1),
    "gamma": (0, 1),
    "gae_lambda": (0, 1),
    "clip": (1e-6, np.inf),
    "entropy": (0, np.inf),
    "value": (0, np.inf),
    "max_grad_norm": (1e-6, np.inf),
    "reward_weight": (-np.inf, np.inf),
    "grade_weight": (-np.inf, np.inf),
}

# Objective -> the weights that make it.
OBJECTIVES: dict[str, dict[str, float]] = {
    "reward": {"reward_weight": 1.0, "grade_weight": 0.0},
    "grade": {"reward_weight": 0.0, "grade_weight": 1.0},
    "mix": {"reward_weight": 1.0, "grade_weight": 1.0},
}


def _divides(name: str, part: int, whole_name: str, whole: int) -> None:
    if whole % part:
        small = [n for n in range(1, math.isqrt(whole) + 1) if whole % n == 0]
        legal = {*small, *(whole // n for n in small)}
        near = sorted(sorted(legal, key=lambda n: (abs(n - part), n))[:8])
        raise ValueError(
            f"{name} is {part}, which does not divide {whole_name} = {whole}: "
            f"use one of {', '.join(map(str, near))}"
        )
