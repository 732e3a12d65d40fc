"""The machine: its processor, and what its arithmetic and its memory reach on one thread."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np

from .timing import in_turn, table


def description() -> str:
    """Return processor, number of cores, memory and versions."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    memory = int(Path("/proc/meminfo").read_text(encoding="utf-8").split()[1]) / 2**20
    return (
        f"{names[0]}, {len(names)} cores, {memory:.0f} GiB, Python {platform.python_version()}, "
        f"NumPy {np.__version__}"
    )


def peaks(quick: bool = False) -> str:
    """Return a table: the speed of a large matrix product and of a copy."""
    size = 600 if quick else 2000
    rows = []
    for dtype in (np.float64, np.float32):
        A, B = (np.ones((size, size), dtype) for _ in range(2))
        C, long = np.empty_like(A), np.ones(4 * size * size, dtype)
        other = np.empty_like(long)
        works = (
            lambda A=A, B=B, C=C: np.dot(A, B, out=C),
            lambda long=long, other=other: np.copyto(other, long),
        )
        product, copy = np.median(in_turn(works, 7), axis=0)
        rows.append(
            (
                np.dtype(dtype).name,
                f"{2 * size**3 / product / 1e9:.0f}",
                f"{2 * long.nbytes / copy / 1e9:.1f}",
            )
        )
    return table(("precision", "GFLOP/s of a product", "GB/s of a copy, read and written"), rows)
