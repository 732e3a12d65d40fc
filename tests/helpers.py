"""What many tests need: models and prepared fits, forms of data, parameter sets, and waiting."""

import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from nmd_lab import ADMM, MinMax
from nmd_lab.api.fits import prepare as prepared
from nmd_lab.data.inputs import form_of
from nmd_lab.fit.summary import Decided
from nmd_lab.request.options import Options

PLAIN = ADMM(refine=False, homotopy=False, polish=False)
"""Algorithm 1 alone."""
NONNEGATIVE = {"w_constraint": "nonnegative", "h_constraint": "nonnegative"}


def given(f: str) -> str | MinMax:
    """Return a nonlinearity by its name, but MinMax with the bounds 0 and 1, whatever the data."""
    return MinMax(0, 1) if f == "minmax" else f


def prepare(X: Any, rank: Any, nonlinearity: Any, loss: Any, **options: Any) -> Decided:
    """Return a fit that is ready to be solved."""
    asked = Options(rank=rank, nonlinearity=nonlinearity, loss=loss, **options)
    return prepared(X, form_of(X), asked)


def stored(X: np.ndarray, seen: np.ndarray | None = None, layout: str = "csr") -> Any:
    """Return a sparse matrix with the seen entries of X, by default those that are not NaN."""
    seen = ~np.isnan(X) if seen is None else seen
    return sparse.coo_array((X[seen], np.nonzero(seen)), shape=X.shape).asformat(layout)


def mask_of(observations: Any) -> np.ndarray:
    """Return where there are observations."""
    mask = np.zeros(observations.shape, bool)
    rows, columns, _ = observations.entries()
    mask[rows, columns] = True
    return mask


def some(sets: Sequence[Any], count: int) -> list[Any]:
    """Return the parameter sets of a test, those after the first `count` marked exhaustive."""
    rest = [each if isinstance(each, tuple) else (each,) for each in sets[count:]]
    return [*sets[:count], *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in rest)]


def peak(call: Callable[[], Any]) -> int:
    """Return the largest number of bytes that a call holds at a time.

    Call it once before: what is compiled and kept at the first call is not of the call.
    """
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


# Tables ------------------------------------------------------------------------------------------


def people(m, seed=0, w=None):
    """Return a table of every kind without holes, with labels of its own, of components w."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(m, 2)) if w is None else w
    cuts = ["never", "often", "always"]
    near = np.argmax(w @ [[2.0, -2.0, 0.0], [0.0, 0.0, 2.0]] + rng.normal(size=(m, 3)), axis=1)
    return pd.DataFrame(
        {
            "kg": (70 + 12 * w[:, 0] + 3 * rng.normal(size=m)).astype(np.float32),
            "dose": 0.01 * np.maximum(w @ [0.7, -0.7] + 0.2 * rng.normal(size=m), 0),
            "visits": pd.array(np.round(9 + 3 * w[:, 1] + rng.normal(size=m)), dtype="Int64"),
            "smokes": pd.array(w[:, 0] + 0.5 * rng.normal(size=m) > 0.3, dtype="boolean"),
            "mood": pd.Categorical.from_codes(
                np.digitize(w[:, 1] + 0.5 * rng.normal(size=m), [-0.6, 0.6]), cuts, ordered=True
            ),
            "town": pd.Categorical.from_codes(near, ["Ulm", "Bonn", "Köln"]),
            "sex": pd.Categorical.from_codes(
                (w[:, 0] + 0.3 * rng.normal(size=m) > 0).astype(int), ["f", "m"]
            ),
            "cm": 170 + 9 * w[:, 0] + 3 * rng.normal(size=m),
        },
        index=pd.Index([f"p{k}" for k in rng.permutation(m)], name="person"),
    )


def with_holes(frame, share=0.2, seed=1):
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < share)


def check_filled(filled, frame):
    """Check that a table is another one without its holes: types, order, labels, observed cells."""
    assert not filled.isna().to_numpy().any()
    pd.testing.assert_series_equal(filled.dtypes, frame.dtypes)
    pd.testing.assert_index_equal(filled.index, frame.index)
    pd.testing.assert_frame_equal(filled.where(frame.notna()), frame)


DAYS = pd.date_range("2020-01-01", periods=400, name="day")


def series(
    m: int, n: int, phi: tuple[float, ...] = (0.95, 0.8), noise: float = 0.2, seed: int = 0
) -> np.ndarray:
    """Return a matrix of rows in order: an autoregression of variance 1 for each φ, and noise."""
    rng, phis = np.random.default_rng(seed), np.array(phi)
    w = rng.normal(size=(m, phis.size))
    for t in range(1, m):
        w[t] = phis * w[t - 1] + np.sqrt(1 - phis**2) * w[t]
    return w @ rng.normal(size=(phis.size, n)) + noise * rng.normal(size=(m, n))


# Refusals: an exception with one sentence, which has some words -----------------------------------

KINDS = (ValueError, TypeError, KeyError, IndexError, OSError)


def check_sentence(error: BaseException, words: str) -> None:
    """Check that an exception has the words of a pattern, and is one sentence."""
    message = str(error.args[0])
    assert re.search(words, message), message
    assert "\n" not in message
    assert not re.search(r"[.!?] +[A-Z]", message), f"more than one sentence: {message}"


def check_all_refused(calls: Iterable[tuple[Any, ...]]) -> None:
    """Check a table of words, functions, and what each of them refuses, or no more than a call."""
    for words, call, *values in calls:
        for each in [partial(call, value) for value in values] or [call]:
            with pytest.raises(KINDS) as caught:
                each()
            check_sentence(caught.value, words)


# Nothing here depends on speed: a clock for tests, and limits that only end what hangs ------------

PATIENCE = 600.0
"""Seconds after which something hangs; a busy machine needs far less."""


def run_python(*arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run Python in a new process, which ends well, and return what it printed."""
    command = [sys.executable, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, **options)
    assert run.returncode == 0, run.stderr
    return run


class Clock:
    """A clock that moves on by one step of some seconds each time it is read."""

    def __init__(self, step: float = 0.01) -> None:
        self.step, self.now = step, 1000.0

    def __call__(self) -> float:
        """Read it."""
        self.now += self.step
        return self.now


def wait_for(condition: Callable[[], Any]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.005)
