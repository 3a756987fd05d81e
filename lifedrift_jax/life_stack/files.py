"""Plain data: in JSON and YAML files, as dataclasses, and how to say what is wrong in it."""

import copy
import json
import math
import reprlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

from lifedrift_jax.names import unknown

MAX_DEPTH = 20  # of lists and dicts inside each other
PLAIN = "use text, a boolean, a finite number, a list or a dict"
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def fault(place: str, value: Any, legal: str) -> ValueError:
    """The error for a `value` at a place, such as `routes[1].id`, and what is `legal` there."""
    return ValueError(f"{place} is {short(value)}: {legal}")


def short(value: Any) -> str:
    """A value in one line, shortened if it is long."""
    return " ".join(_SHORT.repr(value).split())


def listed(names: Iterable[Any]) -> str:
    """What to use instead, as words: all of the legal names, or the first of very many."""
    names = list(names)
    words = [name if _is_clear(name) else short(name) for name in names[:32]]
    more = ["..."] * (len(names) > len(words))
    return f"use one of {', '.join(words + more)}" if names else "there is none to name"


def at(place: str, key: Any) -> str:
    """The place of an entry of a dict, or of a field, in `place`, which is "" for the whole."""
    if not isinstance(key, str) or not key.isidentifier() or len(key) > 60:
        return f"{place}[{short(key)}]"
    return f"{place}.{key}" if place else key


def is_number(value: Any) -> bool:
    """Whether a value is a finite number. A bool is none, nor is an int beyond all floats."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max and not math.isnan(value)


def check_plain(place: str, value: Any, *, null: bool, depth: int = MAX_DEPTH) -> None:
    """Raise ValueError for what JSON has no form for, and for None unless `null`."""
    if isinstance(value, str | bool) or is_number(value) or (null and value is None):
        return
    if not isinstance(value, list | dict):
        raise fault(place, value, PLAIN)
    if not depth:
        raise fault(place, value, f"at most {MAX_DEPTH} lists and dicts may be inside each other")
    if isinstance(value, list):
        for number, part in enumerate(value):
            check_plain(f"{place}[{number}]", part, null=null, depth=depth - 1)
        return
    for key, part in value.items():
        if not isinstance(key, str):
            raise fault(at(place, key), part, "use text as the key")
        check_plain(at(place, key), part, null=null, depth=depth - 1)


def read(path: Path) -> Any:
    """The data of a .json, .yaml or .yml file.

    Raises:
        ValueError: the file cannot be read as such, or a key stands twice in a dict.
        ImportError: PyYAML is missing, and the file is YAML.
    """
    parse = _from_yaml if _is_yaml(path) else _from_json
    return parse(path.read_text(encoding="utf-8"))


def write(path: Path, data: Mapping[str, Any]) -> None:
    """Write data that `check_plain` lets pass as a .json, .yaml or .yml file."""
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    if _is_yaml(path):
        # PyYAML loses rare line breaks, such as U+0085, unless it escapes all but ASCII.
        clear = text.replace("\n", "").isprintable()
        # By way of JSON, so that subclasses of str and float become these.
        text = _yaml().safe_dump(json.loads(text), sort_keys=False, allow_unicode=clear)
    path.write_text(text, encoding="utf-8")


def built(part: type, data: Any, place: str = "") -> Any:
    """A dataclass of dicts and lists, copied; what they leave out of dicts and lists is empty.

    Raises:
        ValueError: a field is unknown or missing, or dataclasses have to be made of other data.
    """
    if not isinstance(data, dict):
        raise fault(place or "the task", data, f"use a dict with the fields of {part.__name__}")
    hints = get_type_hints(part)
    for name in data:
        if name not in hints:
            raise ValueError(f"{at(place, name)}: {unknown('field', name, hints)}")
    values = {}
    for name, hint in hints.items():
        container = get_origin(hint) or hint
        if name in data:
            values[name] = _value(hint, data[name], at(place, name))
        elif container in (list, dict):
            values[name] = container()
        else:
            raise ValueError(f"{at(place, name)} is missing: every {part.__name__} has one")
    return part(**values)


def _value(hint: Any, data: Any, place: str) -> Any:
    """A field's value, copied."""
    (element,) = get_args(hint) or (None,)
    if not isinstance(element, type) or not is_dataclass(element):
        return copy.deepcopy(data)
    if not isinstance(data, list):
        raise fault(place, data, "use a list")
    return [built(element, row, f"{place}[{number}]") for number, row in enumerate(data)]


def _is_clear(name: Any) -> bool:
    return isinstance(name, str) and name.isprintable() and 0 < len(name) <= 60


def _is_yaml(path: Path) -> bool:
    kind = path.suffix.lower()
    if kind not in (".json", ".yaml", ".yml"):
        raise fault("the file's suffix", path.suffix, listed([".json", ".yaml", ".yml"]))
    return kind != ".json"


def _from_json(text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _refuse_twins([key for key, _ in pairs])
        return dict(pairs)

    return json.loads(text, object_pairs_hook=unique)


def _from_yaml(text: str) -> Any:
    yaml = _yaml()
    try:
        rest, seen = [yaml.compose(text, Loader=yaml.SafeLoader)], set()
        while rest:
            node = rest.pop()
            if id(node) in seen:  # an alias
                continue
            seen.add(id(node))
            if isinstance(node, yaml.MappingNode):
                _refuse_twins([key.value for key, _ in node.value if key.id == "scalar"])
                rest += [value for _, value in node.value]
            elif isinstance(node, yaml.SequenceNode):
                rest += node.value
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _refuse_twins(keys: list[str]) -> None:
    seen = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"the key {short(key)} stands twice in one dict")
        seen.add(key)


def _yaml() -> ModuleType:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError("YAML files need: pip install 'lifedrift_jax[cli]'") from None
    return yaml
