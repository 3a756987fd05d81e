"""The texts of compiled tasks, found again by the number that params hold.

Arrays hold no words. What `compile_task` has compiled in this process can be told in its own
words; of other params, such as generated tasks, names are numbers.
"""

import hashlib
import json

from lifedrift_jax.life_stack.layout import Layout
from lifedrift_jax.life_stack.schema import Task

_KEPT: dict[int, Layout] = {}


def number(task: Task) -> int:
    """A number in [1, 2**31) that follows from the task's content."""
    content = json.dumps(task.to_dict(), sort_keys=True).encode()
    return int.from_bytes(hashlib.sha256(content).digest()[:4]) % (2**31 - 1) + 1


def keep(layout: Layout) -> None:
    """Remember the texts of a task."""
    _KEPT[number(layout.task)] = layout


def of(task_number: int) -> Layout | None:
    """The layout, with its Task, of a number; None if it was not compiled here."""
    return _KEPT.get(task_number)
