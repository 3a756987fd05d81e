"""PPO in one jitted program: short functions to import, and `python -m train` to run.

    from train import PPOConfig, Hyper, ppo
    result = ppo.train_jit(key, env, params, PPOConfig(), Hyper())

`train` trains any environment of `lifedrift_jax.Env`. It lives in a checkout, beside the
package: copy a module and change it where your research needs another one.
"""

from train.config import Hyper, PPOConfig

__all__ = ["Hyper", "PPOConfig"]
