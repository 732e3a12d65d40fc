"""Part `memory`: many fits in one process leave its memory as it was."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import resource
import time
import warnings
from pathlib import Path

import numpy as np

import nmd_lab

from .case import LOSSES, NONLINEARITIES, model_of
from .containers import contained
from .ledger import Ledger

FITS, GROWTH = 300, 20 << 20
"""Number of fits after the warm-up, and bytes by which they may grow the process."""

CONTAINERS = ("nan", "observed", "csr", "frame", "data array", "observations")


def fit_number(k: int) -> None:
    """Do one of many kinds of fits, and use its result."""
    rng = np.random.default_rng(k)
    X = rng.random((60, 50))
    container = CONTAINERS[k % len(CONTAINERS)]
    given, others = contained(container, X, rng.random(X.shape) < 0.8)
    f, loss = model_of(NONLINEARITIES[k % 5]), LOSSES[k // 5 % 3]
    options = {"max_iter": 10, "tol": 0, "random_state": k, "n_init": 1 + k % 2}
    options |= {"offsets": ("none", "both")[k // 15 % 2], "alpha": k % 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nmd_lab.warnings.NMDWarning)
        fit = nmd_lab.complete(given, 4, f, loss, **options, **others)
    fit.reconstruct()
    fit.fold_in(given, **others)
    fit.to_dataset()
    nmd_lab.compare([fit])


def resident() -> int:
    """Return the resident memory of this process, in bytes, after what is free went back."""
    gc.collect()
    with contextlib.suppress(OSError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def growth(count: int, warm_up: int = 60) -> int:
    """Return by how many bytes so many fits grow the process, after a warm-up."""
    for k in range(warm_up):
        fit_number(k)
    before = resident()
    for k in range(warm_up, warm_up + count):
        fit_number(k)
    return resident() - before


def run(ledger: Ledger, seconds: float, seed: int) -> None:
    """Measure the growth, again and again until the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        grown = growth(FITS)
        ledger.passed("memory")
        if grown > GROWTH:
            text = f"{FITS} fits grow the process by {grown / 2**20:.1f} MiB"
            ledger.failed("memory", "memory grows", text, "fuzz.memory.growth(300)")
