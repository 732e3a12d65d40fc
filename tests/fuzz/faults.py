"""What counts as a fault: every answer but a result, or one documented sentence."""

from __future__ import annotations

import traceback
import warnings
from pathlib import Path

import sklearn

import nmd_lab

PACKAGE = Path(nmd_lab.__file__).parent
SKLEARN = Path(sklearn.__file__).parent

SENTENCES = (
    ValueError,
    TypeError,
    MemoryError,
    FloatingPointError,
    IndexError,
    KeyError,
    OSError,
    ImportError,
)
"""Exceptions that the docstrings name."""


class Fault(AssertionError):
    """A broken promise.

    Parameters
    ----------
    promise : str
        What should hold; equal faults have equal promises.
    details : str, optional
        Numbers of this example.
    """

    def __init__(self, promise: str, details: str = "") -> None:
        super().__init__(f"{promise}: {details}" if details else promise)
        self.promise = promise


def message_of(error: BaseException) -> str:
    """Return the text of an exception; that of a KeyError without its quotation marks."""
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)


def place_of(error: BaseException) -> str:
    """Return file and function of the last frame of nmd_lab, and the library that raised."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if PACKAGE in Path(frame.filename).parents]
    if not ours:
        return "outside nmd_lab"
    last, inner = ours[-1], frames[-1]
    place = f"{Path(last.filename).relative_to(PACKAGE).as_posix()}:{last.name}"
    if inner is last:
        return place
    return f"{place} > {Path(inner.filename).stem}:{inner.name}"


def is_documented(error: BaseException, kinds: tuple[type[BaseException], ...] = SENTENCES) -> bool:
    """Return whether an exception is one sentence of nmd_lab, or of scikit-learn's checks."""
    if isinstance(error, Fault) or not isinstance(error, kinds):
        return False
    raised_in = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    if SKLEARN in raised_in.parents:
        return isinstance(error, ValueError | TypeError)
    text = message_of(error)
    return PACKAGE in raised_in.parents and "\n" not in text and text.rstrip().endswith((".", "?"))


def kind_of(error: BaseException) -> str:
    """Return a text that is equal for equal faults."""
    if isinstance(error, Fault):
        return error.promise
    return f"{type(error).__name__} in {place_of(error)}"


def check_warnings(caught: list[warnings.WarningMessage]) -> None:
    """Raise a Fault if a warning is not one of nmd_lab's own."""
    for one in caught:
        if not issubclass(one.category, nmd_lab.warnings.NMDWarning):
            where = f"{Path(one.filename).parent.name}/{Path(one.filename).name}"
            raise Fault(f"foreign {one.category.__name__} in {where}", str(one.message))
