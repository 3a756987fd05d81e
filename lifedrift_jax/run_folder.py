"""The folder of a sweep: what it was, how far it is, its rows, its summary.

Every file is written beside its place and renamed into it, so that a reader, or a run that
resumes after a kill, never sees half a file.

    sweep.json              what is played; a run resumes only if all of it agrees
    totals.npz              the running totals and the number of chunks done
    episodes/FIRST.parquet  rows of the chunk whose first episode is FIRST, if asked for
    summary.json            the result; the same bytes however often the run was killed
    timing.json             clock times of the latest call
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import jax
import numpy as np

from lifedrift_jax.summary import Totals


class RunFolder:
    """Files of one sweep.

    Args:
        path: the folder, made if it is missing.
        description: what is played, plain JSON values.

    Raises:
        ValueError: the folder holds another sweep; the message names the first difference.
        OSError: the folder cannot be written.
    """

    def __init__(self, path: str | Path, description: dict[str, Any]):
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._claim(description)

    def _claim(self, description: dict[str, Any]) -> None:
        file = self.path / "sweep.json"
        text = _json(description)
        if not file.exists():
            if any(self.path.glob("totals.npz")):
                raise ValueError(
                    f"{self.path} holds totals.npz but no sweep.json: use a new folder"
                )
            _write(file, text)
        elif file.read_text() != text:
            try:
                old = json.loads(file.read_text())
            except ValueError as error:
                raise ValueError(f"{file} is damaged ({error}): remove the folder") from error
            raise ValueError(
                f"{self.path} holds another sweep: {_difference(old, json.loads(text))}; "
                "use a new folder, or remove that one"
            )

    def save_totals(self, totals: Totals, chunks_done: int) -> None:
        """Record that the first `chunks_done` chunks are in `totals`."""
        leaves = {f"leaf_{i:02d}": x for i, x in enumerate(jax.tree.leaves(totals))}
        self._replace(
            "totals.npz", lambda stream: np.savez(stream, chunks_done=chunks_done, **leaves)
        )

    def load_totals(self, template: Totals) -> tuple[Totals | None, int]:
        """The recorded totals, with the structure of `template`, and the chunks done.

        Raises:
            ValueError: the file is damaged.
        """
        file = self.path / "totals.npz"
        if not file.exists():
            return None, 0
        try:
            with open(file, "rb") as stream, np.load(stream) as stored:
                leaves = [stored[name] for name in sorted(stored) if name != "chunks_done"]
                done = int(stored["chunks_done"])
            return jax.tree.unflatten(jax.tree.structure(template), leaves), done
        except Exception as error:
            raise ValueError(f"{file} is damaged ({error}): remove the folder") from error

    def save_rows(self, first: int, columns: dict[str, np.ndarray]) -> None:
        """Write the rows of the chunk that begins with episode number `first`."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise ImportError("rows need pyarrow: pip install 'lifedrift_jax[cli]'") from None
        (self.path / "episodes").mkdir(exist_ok=True)
        self._replace(
            f"episodes/{first:012d}.parquet",
            lambda stream: pyarrow.parquet.write_table(pyarrow.table(columns), stream),
        )

    def save_json(self, name: str, content: dict[str, Any]) -> None:
        """Write summary.json or timing.json."""
        _write(self.path / name, _json(content))

    def _replace(self, name: str, write: Callable[[BinaryIO], Any]) -> None:
        place = self.path / name
        beside = place.with_name(place.name + ".partial")
        with open(beside, "wb") as stream:
            write(stream)
        os.replace(beside, place)


def _difference(old: Any, new: Any, name: str = "") -> str:
    """The first value that differs, by its dotted name."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return f"{name} was {old!r}, now {new!r}"
    key = next(key for key in {**old, **new} if old.get(key) != new.get(key))
    return _difference(old.get(key), new.get(key), f"{name}.{key}".strip("."))


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _write(place: Path, text: str) -> None:
    beside = place.with_name(place.name + ".partial")
    beside.write_text(text)
    os.replace(beside, place)
