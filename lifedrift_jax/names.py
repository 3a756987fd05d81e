"""Names that people type, checked against the legal ones. Plain Python, no JAX."""

import difflib
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

LISTED = 60  # names that an error lists


def spaced(name: str) -> str:
    """A name as words: its underscores are spaces."""
    return name.replace("_", " ")


def unknown(what: str, value: Any, legal: Iterable[str]) -> ValueError:
    """The error for a `value` that is no legal `what`: names the closest, lists all but for
    those that make the line too long.
    """
    legal = list(legal)
    close = difflib.get_close_matches(value, legal, n=1) if isinstance(value, str) else []
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    listed = legal if len(legal) <= LISTED else [*legal[:12], f"... ({len(legal)} in all)"]
    return ValueError(f"no {what} {value!r}{hint}: use one of {', '.join(listed)}")


def checked_index(what: str, value: Any, legal: Sequence[str]) -> int:
    """The index of one of `legal`, given as its name or its index.

    Args:
        what: what is chosen, for the error.
        value: a name of `legal`, or an integer (Python, NumPy or JAX, of shape ()) in
            [0, len(legal)). Text is only ever read as a name, never as a number.
        legal: the names, in index order.

    Raises:
        ValueError: anything else, bools and floats included; lists the legal names.
    """
    index = index_of(value, legal)
    if not 0 <= index < len(legal):
        numbered = (f"{i} {name}" for i, name in enumerate(legal))
        raise unknown(what, value, legal if isinstance(value, str) else numbered)
    return index


def index_of(value: Any, legal: Sequence[str]) -> int:
    """The index that `value`, a name of `legal` or an integer, stands for; -1 if none."""
    if isinstance(value, str):
        return legal.index(value) if value in legal else -1
    if isinstance(value, bool | np.bool_):
        return -1
    try:
        return operator.index(value)
    except TypeError:
        return -1
