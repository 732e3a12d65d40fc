"""Part `memory`: many fits in one process, which leave its memory as it was."""

from __future__ import annotations

import ctypes
import gc
import resource
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import nmd_lab

from .matrices import contained

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
