"""Our envs as gymnasium environments, one at a time or many in one compiled program.

Importing this module registers every id of `lifedrift_jax.registered()` with gymnasium, as
`lifedrift/<family>.<task>-vN` (gymnasium allows one slash):

    import gymnasium, lifedrift_jax.wrappers.gymnasium
    env = gymnasium.make("lifedrift/life_drift.drift_correction-v0")
    envs = gymnasium.make_vec("lifedrift/life_drift.drift_correction-v0", num_envs=8)

or without the import, `gymnasium.make("lifedrift_jax.wrappers.gymnasium:lifedrift/...")`.
Further arguments are overrides of params, as in `lifedrift_jax.make`.

Episodes are addressed by (seed, index) and equal those of `rollout.episode`, bit for bit.
`info` has these entries after each reset and step:

* `seed`, `episode_index`: which episode this is;
* `step`: steps taken;
* `score`: the grade so far, final at the end of the episode;
* `action_mask`: [A] int8, 1 = legal, as `Discrete.sample(mask)` takes it;
* the env's own entries.
"""

try:
    import gymnasium as _  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"{__name__} needs gymnasium: pip install 'lifedrift_jax[gym]'"
    ) from error

from lifedrift_jax.wrappers.gymnasium.registration import make, make_vector, register_all
from lifedrift_jax.wrappers.gymnasium.single import GymnasiumEnv
from lifedrift_jax.wrappers.gymnasium.vector import GymnasiumVectorEnv

__all__ = ["GymnasiumEnv", "GymnasiumVectorEnv", "make", "make_vector", "register_all"]

register_all()
