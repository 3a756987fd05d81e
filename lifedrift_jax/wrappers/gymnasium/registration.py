"""Our ids in gymnasium's registry."""

from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode

import lifedrift_jax
from lifedrift_jax.wrappers.gymnasium.single import GymnasiumEnv
from lifedrift_jax.wrappers.gymnasium.vector import GymnasiumVectorEnv
from lifedrift_jax.wrappers.time_limit import TimeLimit


def make(env_id: str, render_mode: None = None, **overrides: Any) -> GymnasiumEnv:
    """`GymnasiumEnv` of `lifedrift_jax.make(env_id, **overrides)`."""
    return GymnasiumEnv(*lifedrift_jax.make(env_id, **overrides), render_mode)


def make_vector(
    env_id: str,
    num_envs: int = 1,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    max_episode_steps: int | None = None,
    render_mode: None = None,
    **overrides: Any,
) -> GymnasiumVectorEnv:
    """`GymnasiumVectorEnv` of `lifedrift_jax.make(env_id, **overrides)`.

    `max_episode_steps` puts a `TimeLimit` around the env.
    """
    env, params = lifedrift_jax.make(env_id, **overrides)
    if max_episode_steps is not None:
        env = TimeLimit(env, max_episode_steps)
    return GymnasiumVectorEnv(env, params, num_envs, autoreset_mode, render_mode)


def register_all() -> tuple[str, ...]:
    """Register every id of `lifedrift_jax.registered()` that gymnasium does not know yet.

    Call it again after `lifedrift_jax.register`.

    Returns:
        gymnasium's ids, in the order of registration.
    """
    ids = {f"lifedrift/{env_id.replace('/', '.')}": env_id for env_id in lifedrift_jax.registered()}
    for gymnasium_id, env_id in ids.items():
        if gymnasium_id not in gymnasium.registry:
            gymnasium.register(
                gymnasium_id,
                entry_point="lifedrift_jax.wrappers.gymnasium:make",
                vector_entry_point="lifedrift_jax.wrappers.gymnasium:make_vector",
                kwargs={"env_id": env_id},
            )
    return tuple(ids)
