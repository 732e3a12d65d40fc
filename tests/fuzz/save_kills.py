"""Kills of a process that saves: the old file stays whole, or the new one is whole."""

from __future__ import annotations

import random
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np

import nmd_lab

from .faults import Fault, kind_of
from .ledger import Ledger
from .processes import forked, stop

PART = "kills: save"


@cache
def fits() -> list[nmd_lab.Decomposition]:
    """Return two fits that differ."""
    X = np.random.default_rng(0).random((300, 200))
    options = {"tol": 0, "max_iter": 3, "solver": nmd_lab.ADMM(refine=False)}
    return [nmd_lab.complete(X, 20, random_state=seed, init="random", **options) for seed in (0, 1)]


def kill_once(seed: int) -> None:
    """Kill a process that saves two fits in turn, and look at the file."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.nc"
        fits()[0].save(path)

        def work() -> None:
            while True:
                for fit in fits():
                    fit.save(path)

        child = forked(work)
        time.sleep(chance.uniform(0, 0.15))
        stop(child)
        try:
            loaded = nmd_lab.load(path)
        except ValueError as error:
            raise Fault("a kill of save leaves a damaged file", str(error)) from error
        if not any(loaded.W.identical(fit.W) and loaded.H.identical(fit.H) for fit in fits()):
            raise Fault("a kill of save leaves a mixture of two files")
        fits()[1].save(path)
        left = [file.name for file in Path(folder).iterdir() if file != path]
        if left:
            raise Fault("a kill of save leaves a file that the next save does not remove", left[0])


def look(ledger: Ledger, seed: int) -> None:
    """Kill once, and record it."""
    ledger.passed(PART)
    try:
        kill_once(seed)
    except Exception as error:
        ledger.failed(PART, kind_of(error), str(error), f"fuzz.save_kills.kill_once({seed})")
