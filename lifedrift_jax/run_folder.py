"""Folders of long work: what it is, how far it is, its rows, its summary.

Files that these classes write are written beside their place and renamed into it, so that a
reader, or a run that resumes after a kill, never sees half a file. A sweep's folder holds

    sweep.json              what is played; a run resumes only if all of it agrees
    totals.npz              the running totals and the number of chunks done
    episodes/FIRST.parquet  rows of the chunk whose first episode is FIRST, if asked for
    summary.json            the result; the same bytes however often the run was killed
    timing.json             clock times of the latest call
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import jax
import numpy as np

from lifedrift_jax.summary import Totals


class Folder:
    """A folder that one piece of work has claimed.

    Args:
        path: the folder, made if it is missing.
        description: what decides the results, plain JSON values.

    Class attributes:
        kind: what the work is, for messages.
        description_file: where its description lies.
        progress: pattern of files that only such work leaves.

    Raises:
        ValueError: the folder holds other work; the message names the first difference.
        OSError: the folder cannot be written.
    """

    kind = "run"
    description_file = "config.json"
    progress = "checkpoints"

    def __init__(self, path: str | Path, description: dict[str, Any]):
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._claim(description)

    def _claim(self, description: dict[str, Any]) -> None:
        file = self.path / self.description_file
        text = _json(description)
        if not file.exists():
            if any(self.path.glob(self.progress)):
                raise ValueError(
                    f"{self.path} holds {self.progress} but no {self.description_file}: "
                    "use a new folder"
                )
            _write_text(file, text)
            return
        old, new = read_description(file), json.loads(text)
        if old != new:
            raise ValueError(
                f"{self.path} holds another {self.kind}: {_difference(old, new)}; "
                "use a new folder, or remove that one"
            )

    def save(self, name: str, write: Callable[[BinaryIO], Any]) -> None:
        """Let `write` fill a file, and show it whole."""
        _write(self.path / name, write)

    def save_json(self, name: str, content: dict[str, Any]) -> None:
        """Write a JSON file."""
        write_json(self.path / name, content)

    def save_table(self, name: str, columns: Mapping[str, Any]) -> None:
        """Write a Parquet file; `columns` holds arrays or lists of equal length.

        Raises:
            ImportError: pyarrow is missing.
        """
        arrow = _pyarrow()
        table = arrow.table(dict(columns))
        self.save(name, lambda stream: arrow.parquet.write_table(table, stream))


def write_json(file: Path, content: dict[str, Any]) -> None:
    """Write a JSON file, whole or not at all; no NaN, no infinity."""
    _write_text(file, _json(content))


def read_description(file: Path) -> dict[str, Any]:
    """What a description file says; raise ValueError if it is damaged."""
    try:
        return dict(json.loads(file.read_text()))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file} is damaged ({error}): remove the folder") from error


class RunFolder(Folder):
    """The folder of a sweep. See `Folder`."""

    kind = "sweep"
    description_file = "sweep.json"
    progress = "totals.npz"

    def save_totals(self, totals: Totals, chunks_done: int) -> None:
        """Record that the first `chunks_done` chunks are in `totals`."""
        leaves = {f"leaf_{i:02d}": x for i, x in enumerate(jax.tree.leaves(totals))}
        _write(
            self.path / "totals.npz",
            lambda stream: np.savez(stream, chunks_done=chunks_done, **leaves),
        )

    def load_totals(self, template: Totals, num_chunks: int) -> tuple[Totals | None, int]:
        """The recorded totals, with the structure of `template`, and the chunks done.

        Args:
            template: shapes of the totals of a chunk.
            num_chunks: how many chunks the sweep has.

        Raises:
            ValueError: the file is damaged, or of another sweep.
        """
        file = self.path / "totals.npz"
        if not file.exists():
            return None, 0
        expected = jax.tree.leaves(template)
        try:
            with open(file, "rb") as stream, np.load(stream) as stored:
                leaves = [stored[f"leaf_{i:02d}"] for i in range(len(expected))]
                done = int(stored["chunks_done"])
        except Exception as error:
            raise ValueError(f"{file} is damaged ({error}): remove the folder") from error
        if [x.shape for x in leaves] != [x.shape for x in expected] or not 0 < done <= num_chunks:
            raise ValueError(f"{file} is damaged (it does not fit the sweep): remove the folder")
        return jax.tree.unflatten(jax.tree.structure(template), leaves), done

    def check_rows(self, firsts: Iterable[int]) -> None:
        """Raise ValueError if the rows of a finished chunk, by its first episode, are lost."""
        arrow = _pyarrow()
        for first in firsts:
            file = self.path / _rows_name(first)
            try:
                arrow.parquet.read_metadata(file)
            except (OSError, arrow.ArrowInvalid) as error:
                raise ValueError(
                    f"{file} is lost or damaged ({error}): remove the folder"
                ) from error

    def save_rows(self, first: int, columns: Mapping[str, np.ndarray]) -> None:
        """Write the rows of the chunk that begins with episode number `first`."""
        (self.path / "episodes").mkdir(exist_ok=True)
        self.save_table(_rows_name(first), columns)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("rows need pyarrow: pip install 'lifedrift_jax[cli]'") from None
    return pyarrow


def _rows_name(first: int) -> str:
    return f"episodes/{first:012d}.parquet"


def _beside(place: Path) -> Path:
    """A name of this process alone: two runs of one sweep write the same files, whole. It
    begins with a dot, so that readers of a Parquet dataset pass over what a kill left.
    """
    return place.with_name(f".{place.name}.partial-{os.getpid()}")


def _difference(old: Any, new: Any, name: str = "") -> str:
    """The first value that differs, by its dotted name."""
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f"{name} had {len(old)} entries, now {len(new)}"
        old, new = (dict(enumerate(x)) for x in (old, new))
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return f"{name} was {old!r}, now {new!r}"
    one_side = old.keys() ^ new.keys()
    key = next(key for key in {**old, **new} if key in one_side or old[key] != new[key])
    return _difference(old.get(key), new.get(key), f"{name}.{key}".strip("."))


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _write(place: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Let `write` fill a file beside `place`, then rename it into place."""
    beside = _beside(place)
    with open(beside, "wb") as stream:
        write(stream)
    os.replace(beside, place)


def _write_text(place: Path, text: str) -> None:
    _write(place, lambda stream: stream.write(text.encode()))
