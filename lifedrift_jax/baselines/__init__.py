"""Baseline policies, and the table of their names."""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from lifedrift_jax.baselines.simple import constant, random, round_robin
from lifedrift_jax.core import Env, Policy
from lifedrift_jax.names import checked_index, unknown

__all__ = ["constant", "make_policy", "policy_names", "random", "round_robin"]

Builder = Callable[[Env, Any, str], Policy]


def _constant(env: Env, params: Any, action: str) -> Policy:
    index = checked_index("action", int(action) if action.isdecimal() else action, env.action_names)
    return constant(index, env.action_names[index])


def _of_family(family: str, function: str, env: Env, params: Any, argument: str) -> Policy:
    return getattr(importlib.import_module(f"lifedrift_jax.baselines.{family}"), function)()


def _of_task(family: str, function: str, env: Env, params: Any, argument: str) -> Policy:
    if params is None:
        raise ValueError(f"the policy {function!r} is of one task: make_policy needs its params")
    return getattr(importlib.import_module(f"lifedrift_jax.baselines.{family}"), function)(
        _unwrapped(env), params
    )


# Name -> builder, called with env, params, and what the name holds in place of ACTION.
_ANY_FAMILY: dict[str, Builder] = {
    "random": lambda env, params, _: random(),
    "constant:ACTION": _constant,
    "round_robin": lambda env, params, _: round_robin(env),
}
# Family -> name -> function of `baselines.<family>`, imported when it is asked for.
_FAMILIES: dict[str, dict[str, str]] = {
    "life_drift": {"rule": "rule_based", "greedy": "greedy"},
    "life_stack": {"greedy": "greedy"},
    "task_flow": {
        "heuristic": "heuristic",
        "heuristic_without_aether": "without_aether",
        "heuristic_without_raptor": "without_raptor",
        "heuristic_without_awfro_x": "without_awfro_x",
        "earliest_deadline": "earliest_deadline",
        "delegate_all": "delegate_all",
        "planner": "planner",
    },
}
# The same for policies that are made for one task, of (env, params).
_TASKS: dict[str, dict[str, str]] = {"life_stack": {"optimal": "optimal"}}


def policy_names(env: Env) -> tuple[str, ...]:
    """Names that `make_policy` knows for `env`; ACTION stands for an action's name or index."""
    return tuple(_builders(env))


def make_policy(name: str, env: Env, params: Any = None) -> Policy:
    """The policy of a name, the same object for the same policy.

    Args:
        name: one of `policy_names(env)`, such as `random`, `constant:insert_break`,
            `constant:2` or `greedy`.
        env: what it is to play; wrappers around a family's env make no difference.
        params: the task, for policies that are made for one, such as `optimal`.

    Raises:
        ValueError: no such policy for this env, or no such action; lists the legal names.
    """
    builders = _builders(env)
    kind, colon, argument = name.partition(":")
    key = f"{kind}:ACTION" if colon else kind
    if key not in builders:
        raise unknown(f"policy for {type(env).__name__}", name, builders)
    return builders[key](env, params, argument)


def _builders(env: Env) -> dict[str, Builder]:
    family = _family(env)
    tables = ((_of_family, _FAMILIES), (_of_task, _TASKS))
    return _ANY_FAMILY | {
        name: partial(builder, family, function)
        for builder, table in tables
        for name, function in table.get(family, {}).items()
    }


def _family(env: Env) -> str:
    """The folder of the package that the env's class comes from."""
    modules = (cls.__module__.split(".") for cls in type(_unwrapped(env)).__mro__)
    return next(parts[1] for parts in modules if parts[0] == "lifedrift_jax")


def _unwrapped(env: Env) -> Env:
    while hasattr(env, "env"):
        env = env.env
    return env
