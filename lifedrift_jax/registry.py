"""The table of environment ids. Families are imported when one of their ids is made."""

import difflib
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lifedrift_jax.core import Env

# id -> "module:function"; the function takes the id, and perhaps options, and returns (env, params)
_REGISTRY: dict[str, str] = {
    "life_drift/drift_correction-v0": "lifedrift_jax.life_drift:make",
    "life_drift/energy_balance-v0": "lifedrift_jax.life_drift:make",
    "life_drift/long_term_stability-v0": "lifedrift_jax.life_drift:make",
    "life_stack/flight_crisis-v0": "lifedrift_jax.life_stack:make",
    "life_stack/code_merge_crisis-v0": "lifedrift_jax.life_stack:make",
    "life_stack/train_delay-v0": "lifedrift_jax.life_stack:make",
    "life_stack/car_breakdown-v0": "lifedrift_jax.life_stack:make",
    "life_stack/rideshare_surge-v0": "lifedrift_jax.life_stack:make",
    "life_stack/transit_strike-v0": "lifedrift_jax.life_stack:make",
    "life_stack/career-v0": "lifedrift_jax.life_stack:make",
    "life_stack/finances-v0": "lifedrift_jax.life_stack:make",
    "life_stack/relationships-v0": "lifedrift_jax.life_stack:make",
    "life_stack/physical_health-v0": "lifedrift_jax.life_stack:make",
    "life_stack/mental_wellbeing-v0": "lifedrift_jax.life_stack:make",
    "life_stack/time-v0": "lifedrift_jax.life_stack:make",
    "task_flow/easy-v0": "lifedrift_jax.task_flow:make",
    "task_flow/medium-v0": "lifedrift_jax.task_flow:make",
    "task_flow/hard-v0": "lifedrift_jax.task_flow:make",
}
_ID = re.compile(r"(?P<family>\w+)/(?P<task>\w+)-v(?P<version>\d+)")


def registered() -> tuple[str, ...]:
    """All ids, in the order of registration."""
    return tuple(_REGISTRY)


def register(env_id: str, entry_point: str) -> None:
    """Add an id.

    Args:
        env_id: `family/task-vN`, not yet taken.
        entry_point: `"module:function"`; `function(env_id)` returns (env, params); further
            parameters that it has are options of `make`.

    Raises:
        ValueError: the id or the entry point has another form, or the id is taken.
    """
    if not _ID.fullmatch(env_id):
        raise ValueError(f"env_id is {env_id!r}: use family/task-vN, such as my_family/my_task-v0")
    if env_id in _REGISTRY:
        raise ValueError(f"env_id {env_id!r} is registered already, to {_REGISTRY[env_id]!r}")
    if not re.fullmatch(r"[\w.]+:\w+", entry_point):
        raise ValueError(f"entry_point is {entry_point!r}: use 'module:function'")
    _REGISTRY[env_id] = entry_point


def resolve(env_id: str) -> str:
    """The full id; an id without `-vN` means the highest registered version.

    Raises:
        ValueError: no such id; the message names the closest ones.
    """
    if env_id in _REGISTRY:
        return env_id
    versions = [i for i in _REGISTRY if i.rpartition("-v")[0] == env_id]
    if versions:
        return max(versions, key=lambda i: int(i.rpartition("-v")[2]))
    close = difflib.get_close_matches(env_id, _REGISTRY, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"use one of {', '.join(_REGISTRY)}"
    raise ValueError(f"no environment {env_id!r}: {hint}")


def make(env_id: str, /, **overrides: Any) -> tuple[Env, Any]:
    """An environment and its default params, leaves float32 and int32.

    Args:
        env_id: `family/task-vN`; without `-vN` the highest registered version.
        **overrides: params fields to replace, such as `cascade_threshold=0.9`, or by a dotted
            name inside a nested field: `make(env_id, **{"reward.alignment": 0.5})`. Values are
            cast to the field's dtype; they must have its shape and be finite. Some families
            have options beside: `make("life_stack/train_delay-v0", difficulty=5)`.

    Returns:
        (env, params). Equal ids give equal (hashable) envs, which share compilations.

    Raises:
        ValueError: unknown id, unknown field, or a value of the wrong kind, shape or range.
    """
    env_id = resolve(env_id)
    module, _, function = _REGISTRY[env_id].partition(":")
    entry_point = getattr(importlib.import_module(module), function)
    known = list(inspect.signature(entry_point).parameters)[1:]
    options = {name: overrides.pop(name) for name in known if name in overrides}
    env, params = entry_point(env_id, **options)
    return env, override(params, **overrides)


def override(params: Any, /, **overrides: Any) -> Any:
    """`params` with fields replaced, names, shapes and ranges checked (see `make`)."""
    names = list(_names(params))
    for name, value in overrides.items():
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"legal names: {', '.join(names)}"
            raise ValueError(f"no parameter {name!r}: {hint}")
        params = _replace(params, name, _cast(name, value, attrgetter(name)(params)))
    if overrides and hasattr(params, "validate"):
        params.validate()
    return params


def _names(record: Any, prefix: str = "") -> Iterator[str]:
    """Names of all fields of a dataclass, those of nested dataclasses as `outer.inner`."""
    for field in fields(record) if is_dataclass(record) else ():
        yield prefix + field.name
        yield from _names(getattr(record, field.name), f"{prefix}{field.name}.")


def _replace(record: Any, name: str, value: Any) -> Any:
    """`record` with the field of dotted name `name` replaced."""
    first, _, rest = name.partition(".")
    if rest:
        value = _replace(getattr(record, first), rest, value)
    return replace(record, **{first: value})


def _cast(name: str, value: Any, old: Any) -> Any:
    """`value` with the structure, shapes and dtypes of `old`; finite numbers only."""
    structure: Any = jax.tree.structure(old)
    if jax.tree_util.treedef_is_leaf(structure):
        return _cast_leaf(name, value, old)
    if jax.tree.structure(value) != structure:
        raise ValueError(f"{name} is {value!r}: it must be a {type(old).__name__}")

    def leaf(path: tuple, new: Any, default: jax.Array) -> jax.Array:
        inner = jax.tree_util.keystr(path, simple=True, separator=".")
        return _cast_leaf(f"{name}.{inner}", new, default)

    return jax.tree_util.tree_map_with_path(leaf, value, old)


def _cast_leaf(name: str, value: Any, old: jax.Array) -> jax.Array:
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} is {value!r}: its rows differ in length") from None
    if array.dtype.kind not in "iuf" and array.dtype != old.dtype:
        raise ValueError(f"{name} is {value!r}: it must be a number")
    if array.shape != old.shape:
        raise ValueError(f"{name} has shape {array.shape}: it must be {old.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(old.dtype)
    if not np.all(np.isfinite(array) & np.isfinite(cast)):
        raise ValueError(f"{name} is {value!r}: it must be finite in {old.dtype}")
    if np.issubdtype(old.dtype, np.integer) and np.any(cast != array):
        raise ValueError(
            f"{name} is {value!r}: it must be a whole number in the range of {old.dtype}"
        )
    return jnp.asarray(cast)
