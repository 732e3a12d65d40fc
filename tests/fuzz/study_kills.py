"""Kills of studies in one and in two processes: they resume without loss, and no worker stays."""

from __future__ import annotations

import random
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
import xarray as xr

import nmd_lab

from .faults import Fault, kind_of
from .ledger import Ledger
from .processes import forked, stop, wait_until_gone

MEASURED = ["seconds"]
WORKERS_LEAVE = 10.0
"""Seconds within which workers end after their parent."""


def study() -> nmd_lab.Study:
    """Return a study of 24 fits, each of some hundredths of a second."""
    X = np.random.default_rng(0).random((60, 40))
    options = {"rank": [2, 3, 4], "alpha": [0.0, 1.0], "n_splits": 4}
    return nmd_lab.Study(X, tol=0, max_iter=60, **options)


@cache
def whole() -> xr.Dataset:
    """Return the results of the study that nobody killed."""
    return study().run(progress=False).drop_vars(MEASURED)


def kill_once(seed: int, n_jobs: int) -> None:
    """Kill a study, look at its processes, resume it, and compare."""
    chance = random.Random(seed)
    whole()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.nc"
        child = forked(lambda: study().run(path, n_jobs=n_jobs, progress=False) and None)
        time.sleep(chance.uniform(0, 1.5 if n_jobs == 1 else 8))
        stop(child)
        left = wait_until_gone(child, WORKERS_LEAVE)
        if left:
            raise Fault("a killed study leaves a process", f"{len(left)} after {WORKERS_LEAVE} s")
        results = study().run(path, progress=False).drop_vars(MEASURED)
        if not results.identical(whole()):
            raise Fault("a resumed study has other results")
        names = {file.name for file in Path(folder).iterdir()}
        if names != {"study.nc", "study.nc.fits"}:
            raise Fault("a killed study leaves a file", str(sorted(names)))


def look(ledger: Ledger, seed: int, n_jobs: int) -> None:
    """Kill once, and record it."""
    part = f"kills: study, {n_jobs} process" + "es" * (n_jobs > 1)
    ledger.passed(part)
    try:
        kill_once(seed, n_jobs)
    except Exception as error:
        again = f"fuzz.study_kills.kill_once({seed}, {n_jobs})"
        ledger.failed(part, kind_of(error), str(error), again)
