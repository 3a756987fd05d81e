"""Our gymnasium vector env with the interface that Stable-Baselines3 trains on."""

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from lifedrift_jax.wrappers.gymnasium import make_vector


class SB3Envs(VecEnv):
    """`num_envs` envs of an id. Done envs are at their next episode's first observation."""

    def __init__(self, env_id: str, num_envs: int) -> None:
        self.envs = make_vector(env_id, num_envs, "SameStep")
        single = self.envs.single_observation_space, self.envs.single_action_space
        super().__init__(num_envs, *single)

    def reset(self) -> np.ndarray:
        obs, _ = self.envs.reset(seed=self._seeds[0])
        self._reset_seeds()
        return obs

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        obs, reward, terminated, truncated, info = self.envs.step(self.actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(terminated | truncated):
            infos[i] = {
                "terminal_observation": info["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
            }
        return obs, reward, terminated | truncated, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise TypeError("the envs are one compiled program: none has attributes of its own")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        raise TypeError("the envs are one compiled program: none has methods of its own")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
