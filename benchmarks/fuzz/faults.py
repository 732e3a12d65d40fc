"""What counts as a fault: every answer but a result, or one documented sentence."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import sklearn
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

import nmd_lab

PACKAGE = Path(nmd_lab.__file__).parent
SKLEARN = Path(sklearn.__file__).parent

SENTENCES = (
    *(ValueError, TypeError, MemoryError, FloatingPointError, IndexError, KeyError, OSError),
    ImportError,
)
"""Exceptions that the docstrings name."""


def is_documented(error: BaseException, kinds: tuple[type[BaseException], ...] = SENTENCES) -> bool:
    """Return whether an exception is one sentence of nmd_lab, or of scikit-learn's checks."""
    if not isinstance(error, kinds):
        return False
    raised_in = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    if SKLEARN in raised_in.parents:
        return isinstance(error, ValueError | TypeError)
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return PACKAGE in raised_in.parents and "\n" not in text and text.rstrip().endswith((".", "?"))


@contextmanager
def answered(kinds: tuple[type[BaseException], ...] = SENTENCES) -> Iterator[None]:
    """Run calls that may end with a documented sentence and warn by `NMDWarning` only."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except Exception as error:
            if not is_documented(error, kinds):
                raise
    for one in caught:
        where = "/".join(Path(one.filename).parts[-2:])
        if not issubclass(one.category, nmd_lab.warnings.NMDWarning):
            raise AssertionError(f"foreign {one.category.__name__} in {where}: {one.message}")


def kind_of(error: BaseException) -> str:
    """Return a text that is equal for equal faults: a broken promise, or exception and place."""
    if isinstance(error, AssertionError):
        return str(error).partition(": ")[0]
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if PACKAGE in Path(frame.filename).parents]
    places = [f"{Path(f.filename).name}:{f.name}" for f in (*ours[-1:], frames[-1])]
    return f"{type(error).__name__} in {' > '.join(dict.fromkeys(places))}"


class Ledger:
    """Counts of tried examples by part, and of failures by part and kind."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.failures: Counter[tuple[str, str]] = Counter()

    def look(self, example: Any) -> None:
        """Try an example; print it if it is the first of its kind of failure."""
        self.tried[example.part] += 1
        try:
            example.check()
        except Exception as error:
            kind = example.part, kind_of(error)
            self.failures[kind] += 1
            if self.failures[kind] == 1:
                text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                again = f"python -m benchmarks.fuzz --again {str(example)!r}"
                print(": ".join(kind), text, again, sep="\n    ", flush=True)

    def explore(self, examples: st.SearchStrategy[Any], seconds: float, seed: int) -> None:
        """Look at examples until the time is over."""
        end, batch = time.monotonic() + seconds, 0
        while time.monotonic() < end:

            @hypothesis.seed(seed * 1_000_003 + batch)
            @hypothesis.settings(
                max_examples=200,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @hypothesis.given(examples)
            def some(example: Any) -> None:
                if time.monotonic() < end:
                    self.look(example)

            some()
            batch += 1

    def table(self) -> str:
        """Return the table of tried and failed."""
        failed: Counter[str] = Counter()
        for (part, _), count in self.failures.items():
            failed[part] += count
        lines = [f"{part:<28}{n:>9}{failed[part]:>9}" for part, n in sorted(self.tried.items())]
        return "\n".join([f"{'part':<28}{'tried':>9}{'failed':>9}", *lines]) + "\n"
