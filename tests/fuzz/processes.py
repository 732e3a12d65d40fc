"""Parts `kills` and `memory`: processes ended at random moments, and processes that grow."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from hypothesis import strategies as st

import nmd_lab

from .matrices import contained

STARTS, ITERATIONS = 3, 60
"""Numbers of starts, and of iterations of each, of fits that are interrupted."""

FITS: dict[str, dict[str, Any]] = {
    "plain": {"nonlinearity": "relu"},
    "warm-up": {"nonlinearity": "square"},
    "validation": {
        "nonlinearity": "identity",
        "validation": 0.2,
        "solver": nmd_lab.ADMM(patience=1000),
        "alpha": 1,
    },
    "sparse": {"solver": nmd_lab.ADMM(split="observed"), "offsets": "both"},
    "choice": {"alpha": "auto"},
}
"""Kinds of fits that are interrupted."""

WORKERS_LEAVE = 10.0
"""Seconds within which workers end after their parent."""


def forked(work: Callable[[], None], output: Path | str = os.devnull) -> int:
    """Run a function in a child, in a session of its own; return its process number."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(120)
            stream = os.open(output, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            work()
        finally:
            os._exit(0)
    return child


def stop(child: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a child, and wait for its end."""
    os.kill(child, number)
    os.waitpid(child, 0)


def left_of(session: int, seconds: float) -> list[str]:
    """Return the processes of a session that remain after a time; they are ended."""
    end, command = time.monotonic() + seconds, ["ps", "-o", "pid=,stat=", "-s", str(session)]
    while True:
        lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        left = [line.split()[0] for line in lines if "Z" not in line]
        if not left or time.monotonic() > end:
            break
        time.sleep(0.05)
    for process in left:
        os.kill(int(process), signal.SIGKILL)
    return left


@cache
def saved_fits() -> list[nmd_lab.Decomposition]:
    """Return two fits that differ."""
    X = np.random.default_rng(0).random((300, 200))
    options = {"tol": 0, "max_iter": 3, "solver": nmd_lab.ADMM(refine=False), "init": "random"}
    return [nmd_lab.complete(X, 20, random_state=seed, **options) for seed in (0, 1)]


def save_is_killed(moment: float) -> None:
    """Kill a process that saves two fits in turn: the old file stays whole, or the new one is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.nc"
        saved_fits()[0].save(path)

        def work() -> None:
            while True:
                for fit in saved_fits():
                    fit.save(path)

        child = forked(work)
        time.sleep(0.15 * moment)
        stop(child)
        loaded = nmd_lab.load(path)
        same = [loaded.W.identical(f.W) and loaded.H.identical(f.H) for f in saved_fits()]
        assert any(same), "a kill of save leaves a mixture of two files"
        saved_fits()[1].save(path)
        left = [file.name for file in Path(folder).iterdir() if file != path]
        assert not left, f"a kill of save leaves a file that the next save does not remove: {left}"


def study() -> nmd_lab.Study:
    """Return a study of 24 fits, each of some hundredths of a second."""
    X = np.random.default_rng(0).random((60, 40))
    options = {"rank": [2, 3, 4], "alpha": [0.0, 1.0], "n_splits": 4}
    return nmd_lab.Study(X, tol=0, max_iter=60, **options)


@cache
def whole_study() -> xr.Dataset:
    """Return the results of the study that nobody killed."""
    return study().run(progress=False).drop_vars("seconds")


def study_is_killed(moment: float, n_jobs: int) -> None:
    """Kill a study: it resumes without loss, and no worker stays."""
    whole_study()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.nc"
        child = forked(lambda: study().run(path, n_jobs=n_jobs, progress=False) and None)
        time.sleep((1.5 if n_jobs == 1 else 8) * moment)
        stop(child)
        assert not left_of(child, WORKERS_LEAVE), "a killed study leaves a process"
        results = study().run(path, progress=False).drop_vars("seconds")
        assert results.identical(whole_study()), "a resumed study has other results"
        names = {file.name for file in Path(folder).iterdir()}
        assert names == {"study.nc", "study.nc.fits"}, f"a killed study leaves a file: {names}"


def interrupted_fit(kind: str, callback: Any = None) -> nmd_lab.Decomposition:
    """Return a fit of some tenths of a second."""
    X = np.random.default_rng(0).random((40, 30))
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    options = {"n_init": STARTS, "max_iter": ITERATIONS, "tol": 0, "random_state": 0}
    options |= {"nonlinearity": "relu", "alpha": 0, "progress": False, "callback": callback}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nmd_lab.warnings.NMDWarning)
        return nmd_lab.complete(X, 3, **options | FITS[kind])


@cache
def duration(kind: str) -> float:
    """Return how long such a fit takes, in seconds."""
    interrupted_fit(kind)
    began = time.monotonic()
    interrupted_fit(kind)
    return time.monotonic() - began


def fit_is_interrupted(moment: float, kind: str) -> None:
    """Send Ctrl-C to a fit in a session: it gives the best so far with its reason."""
    seconds = 1.1 * duration(kind) * moment
    reading, writing = os.pipe()
    child = forked(lambda: _fit_and_tell(kind, writing))
    os.close(writing)
    with os.fdopen(reading) as told:
        told.readline()  # the fit begins
        time.sleep(seconds)
        os.kill(child, signal.SIGINT)
        error, n_iter, sentence, seen = json.loads(told.read() or "[null, null, null, null]")
    os.waitpid(child, 0)
    assert seen is not None, "Ctrl-C ends a fit without a result"
    assert error in ("", "KeyboardInterrupt"), f"Ctrl-C gives another exception: {error}"
    # an interrupt before the first iteration, or after the last one, may go through
    kept = not error or seen in (0, STARTS * ITERATIONS)
    assert kept, f"Ctrl-C loses a fit that has iterates: {seen}"
    assert error or (n_iter >= 1 and sentence), f"Ctrl-C gives a fit that is not valid: {n_iter}"


def _fit_and_tell(kind: str, writing: int) -> None:
    """Fit, and write as JSON what came of it; run in a child."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.ps1 = ">>> "  # a session in which somebody types commands
    told, seen = os.fdopen(writing, "w"), 0

    def count(_: nmd_lab.State) -> None:
        nonlocal seen
        seen += 1

    answer: tuple[str, int, str] | None = None
    try:
        told.write("begin\n")
        told.flush()
        fit = interrupted_fit(kind, count)
        finite = bool(np.isfinite(fit.reconstruct().values).all())
        answer = "", fit._n_iter if finite else 0, str(fit.stop_reason)
    except BaseException as error:
        answer = answer or (type(error).__name__, 0, "")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told.write(json.dumps([*answer, seen]))
    told.close()


@dataclass(frozen=True)
class Kill:
    """A process that is killed at a moment: a save, a study in so many processes, or a fit."""

    what: str
    moment: float

    @property
    def part(self) -> str:
        """What is killed."""
        return f"kills: {self.what}"

    def check(self) -> None:
        """Raise if something is lost."""
        what, _, more = self.what.partition(" ")
        if what == "save":
            save_is_killed(self.moment)
        elif what == "study":
            study_is_killed(self.moment, int(more))
        else:
            fit_is_interrupted(self.moment, more)


KILLED = ["save"] * 4 + ["study 1", "study 2"] * 2 + [f"fit {kind}" for kind in FITS]
kills = st.builds(Kill, st.sampled_from(KILLED), st.floats(0, 1))
"""Kills at random moments."""


GROWTH = 20 << 20
"""Bytes by which many fits may grow the process."""


@dataclass(frozen=True)
class Growth:
    """Many fits in one process, which leave its memory as it was."""

    seed: int = 0
    count: int = 300
    warm_up: int = 60
    part = "memory"

    def check(self) -> None:
        """Raise if the process grows."""
        for k in range(self.warm_up):
            self._fit(k)
        before = resident()
        for k in range(self.warm_up, self.warm_up + self.count):
            self._fit(k)
        grown = (resident() - before) / 2**20
        assert grown * 2**20 < GROWTH, f"memory grows: {grown:.1f} MiB by {self.count} fits"

    def _fit(self, k: int) -> None:
        """Do one of many kinds of fits, and use its result."""
        rng = np.random.default_rng([self.seed, k])
        container = ("nan", "observed", "csr", "frame", "data array", "observations")[k % 6]
        X, others = contained(container, rng.random((60, 50)), rng.random((60, 50)) < 0.8)
        f = ("relu", "square", nmd_lab.MinMax(0, 1), "modulus", "identity")[k % 5]
        loss = ("frobenius", "l1", "kl")[k // 5 % 3]
        options = {"max_iter": 10, "tol": 0, "random_state": k, "n_init": 1 + k % 2}
        options |= {"offsets": ("none", "both")[k // 15 % 2], "alpha": k % 4}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nmd_lab.warnings.NMDWarning)
            fit = nmd_lab.complete(X, 4, f, loss, **options, **others)
        fit.reconstruct()
        fit.fold_in(X, **others)
        fit._to_dataset()
        nmd_lab.compare([fit])


def resident() -> int:
    """Return the resident memory of this process, in bytes, after what is free went back."""
    gc.collect()
    with suppress(OSError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


growths = st.builds(Growth, st.integers(0, 999))
"""Many fits."""
