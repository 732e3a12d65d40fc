"""How a command ends: exit codes, and errors and warnings in one line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Any

from cyclopts import CycloptsError

from ._command_line import in_shell
from .checkpoint.file import exists

BAD_INPUT = (
    FileNotFoundError, IsADirectoryError, LookupError, NotADirectoryError, PermissionError,
    TypeError, ValueError,
)  # fmt: skip
"""Errors that arguments or files cause."""


class ExitCode(IntEnum):
    """Exit codes of the command."""

    OK = 0
    FAILED = 1
    """Something else than the input, such as memory, a full disk or a missing library."""
    BAD_INPUT = 2
    """Arguments or data that make no sense."""
    INCOMPLETE = 3
    """A study some of whose fits failed or exceeded the time limit."""
    INTERRUPTED = 130
    """Ctrl-C; the last checkpoint, or the finished fits of a study, are there."""


def exit_code_of(command: Callable[[], int | None]) -> int:
    """Run a command and return its exit code; errors and warnings go to stderr."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            code = command()
    except KeyboardInterrupt as error:
        text = ": ".join(["interrupted", *map(str, error.args)])
        return _refuse(text, ExitCode.INTERRUPTED, kind="")
    except CycloptsError as error:
        return _refuse(str(error), ExitCode.BAD_INPUT)
    except BAD_INPUT as error:
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        return _refuse(in_shell(text), ExitCode.BAD_INPUT)
    except Exception as error:  # a user of the command has no use for a traceback
        return _refuse(str(error) or type(error).__name__, ExitCode.FAILED)
    return ExitCode.OK if code is None else int(code)


def _refuse(text: str, code: ExitCode, kind: str = "error: ") -> ExitCode:
    """Print a message in one line, and return the exit code."""
    print(f"nmd-lab: {kind}{' '.join(text.split())}", file=sys.stderr)
    return code


@contextmanager
def going_on_from(path: Path | None) -> Iterator[None]:
    """Say at Ctrl-C that the command goes on from a checkpoint or a journal, if there is one."""
    try:
        yield
    except KeyboardInterrupt as error:
        if path is None or not exists(path):
            raise
        raise KeyboardInterrupt(f"the same command goes on from {path}") from error


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning in one line, without the place in the code."""
    print(f"nmd-lab: warning: {' '.join(str(message).split())}", file=sys.stderr)
