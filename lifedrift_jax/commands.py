"""What the command lines share: dataclasses as commands, errors in one line.

A command is a dataclass, which tyro reads, and the function that does it. What a command
needs is imported when it runs, so that help comes at once. Errors are one line on stderr and
exit code 2.
"""

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any

ERROR, INTERRUPTED, BROKEN_PIPE = 2, 130, 141  # exit codes
Settings = tuple[tuple[str, ...], ...]  # of --set: KEY=VALUE texts, one tuple a use


@dataclass(frozen=True)
class CommandLine:
    """A program of several commands.

    Attributes:
        prog: how it is called.
        description: one line for its help.
        version: what --version prints after the name.
        commands: command -> what does it.
        resumable: names of commands that go on where they were when they are run again.
    """

    prog: str
    description: str
    version: str
    commands: Mapping[type, Callable[[Any], None]]
    resumable: tuple[str, ...] = ()

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run a command and return the exit code.

        Args:
            argv: the arguments, by default those of the process.
        """
        argv = sys.argv[1:] if argv is None else list(argv)
        try:
            if argv == ["--version"]:
                print(f"{self.prog} {self.version}")
                return 0
            command = self.parse(argv)
            self.commands[type(command)](command)
            sys.stdout.flush()
        except SystemExit as stop:  # help was printed
            return int(stop.code or 0)
        except KeyboardInterrupt:
            resumes = argv and argv[0] in self.resumable
            hint = f": the same command resumes the {argv[0]}" if resumes else ""
            print(f"{self.prog}: interrupted{hint}", file=sys.stderr)
            return INTERRUPTED
        except BrokenPipeError:  # our output's reader has gone; Python flushes again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return BROKEN_PIPE
        except (ValueError, OSError, ImportError, FloatingPointError) as error:
            print(f"{self.prog}:", *str(error).split(), file=sys.stderr)
            return ERROR
        return 0

    def parse(self, argv: Sequence[str]) -> Any:
        """The command that `argv` asks for.

        Raises:
            ValueError: `argv` makes no command; what is wrong, in one line.
            ImportError: the extra `cli` is missing.
        """
        try:
            import rich  # noqa: F401
            import tyro
        except ImportError:
            raise ImportError("the command line needs: pip install 'lifedrift_jax[cli]'") from None
        style = tyro.conf
        named: list[Any] = [
            Annotated[c, style.subcommand(c.__name__.lower())] for c in self.commands
        ]
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                return tyro.cli(
                    reduce(or_, named),
                    prog=self.prog,
                    description=self.description,
                    args=argv,
                    config=(
                        style.PositionalRequiredArgs,
                        style.PositionalMetavarFromFieldName,
                        style.FlagCreatePairsOff,
                        style.UseAppendAction,
                    ),
                )
        except SystemExit as stop:
            if not stop.code:
                raise
            raise ValueError(_unboxed(said.getvalue())) from None


def settings(
    option: str, texts: Iterable[Sequence[str]], words: Sequence[str] = ()
) -> dict[str, Any]:
    """KEY=VALUE texts of an option as a dict; a key given twice takes the last value.

    Args:
        option: its name, for errors.
        texts: what was given, a list each time the option stands there.
        words: keys whose value may be a bare word, without the quotes that JSON has.

    Raises:
        ValueError: a text is no KEY=VALUE with a JSON value.
    """
    values = {}
    for text in (text for several in texts for text in several):
        name, _, value = text.partition("=")
        if name in words and value.isidentifier():
            value = json.dumps(value)
        try:
            values[name] = json.loads(value)
        except ValueError:
            raise ValueError(f"{option} {text}: use NAME=NUMBER or NAME=[NUMBER,...]") from None
    return values


def _unboxed(text: str) -> str:
    """The message of tyro's box, in one line; a rule inside the box becomes a semicolon."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()[1:-1]
    joined = " ".join(line.strip("│| ") for line in lines)
    return re.sub(r"\.? (─+|--+) ", "; ", joined)
