"""Checkpoints of a run: written in the background, kept whole, restored bit for bit.

Orbax writes each one under another name and renames it, so a kill leaves whole checkpoints
only. Random keys are stored as their words and become keys again by the template.
"""

import logging
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lifedrift_jax.rng import IMPLEMENTATION, is_key

FORMAT = 1  # raised when what a checkpoint holds changes
KEPT = 2  # the newest, and the one before in case the newest is damaged on disk


class Checkpoints:
    """The checkpoints of one run, numbered by how many rows of metrics it had.

    Args:
        path: their folder, made if it is missing.
        identity: digest of all that decides the results; others are refused on restoring.
    """

    def __init__(self, path: Path, identity: bytes = bytes(32)):
        try:
            import orbax.checkpoint as ocp
        except ImportError:
            raise ImportError(
                "checkpoints need orbax: pip install 'lifedrift_jax[train]'"
            ) from None
        logging.getLogger("absl").setLevel(logging.WARNING)
        self._arguments = ocp.args
        self._path = path.resolve()
        self._identity = np.frombuffer(identity, np.uint8)
        options = ocp.CheckpointManagerOptions(
            max_to_keep=KEPT, create=True, cleanup_tmp_directories=True
        )
        self._manager = ocp.CheckpointManager(self._path, options=options)

    def save(self, number: int, tree: Any) -> None:
        """Begin to write a pytree of arrays as checkpoint `number`; it may change afterwards."""
        content = {
            "format": np.array(FORMAT, np.int32),
            "identity": self._identity,
            "tree": jax.tree.map(_stored, tree),
        }
        self._manager.save(number, args=self._arguments.StandardSave(content))

    def latest(self) -> int | None:
        """Number of the newest whole checkpoint, None if there is none."""
        return self._manager.latest_step()

    def restore(self, number: int, template: Any) -> Any:
        """Checkpoint `number`, NumPy leaves and keys, in the structure of `template`.

        Args:
            template: arrays or their shapes.

        Raises:
            ValueError: it is damaged, of another format, or of something else.
        """
        place = self._path / str(number)
        shapes = {
            "format": np.array(0, np.int32),
            "identity": np.zeros_like(self._identity),
            "tree": jax.tree.map(_empty, template),
        }
        try:
            content = self._manager.restore(number, args=self._arguments.StandardRestore(shapes))
        except Exception as error:  # whatever orbax, tensorstore or the disk raise
            reason = " ".join(str(error).split())[:200]
            raise ValueError(
                f"checkpoint {place} is damaged or of another program ({reason}): remove it to "
                "go on from an older one"
            ) from error
        if content["format"] != FORMAT:
            raise ValueError(f"checkpoint {place} has format {content['format']}, not {FORMAT}")
        if not np.array_equal(content["identity"], self._identity):
            raise ValueError(
                f"checkpoint {place} is of another run: its key, params, sizes or numbers differ; "
                "use a new folder"
            )
        for stored, expected in zip(*map(jax.tree.leaves, (content, shapes)), strict=True):
            if (stored.shape, stored.dtype) != (expected.shape, expected.dtype):
                raise ValueError(
                    f"checkpoint {place} is of another program: it holds {stored.dtype}"
                    f"{list(stored.shape)} for {expected.dtype}{list(expected.shape)}"
                )
        return jax.tree.map(_restored, content["tree"], template)

    def close(self) -> None:
        """Wait until everything is written."""
        self._manager.close()


def _stored(x: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(x) if is_key(x) else x)


def _empty(x: Any) -> np.ndarray:
    data = jax.eval_shape(jax.random.key_data, x) if is_key(x) else x
    return np.zeros(data.shape, data.dtype)


def _restored(stored: np.ndarray, template: Any) -> Any:
    if not is_key(template):
        return stored
    return jax.random.wrap_key_data(jax.numpy.asarray(stored), impl=IMPLEMENTATION)
