"""Time and memory of an iteration as the data grow: dense in m n, sparse in |Ω|."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr
from scipy import sparse

import nmd_lab as nmd
from benchmarks.common.memory import Peak, in_own_process

from .cells import Cell, Scores, run_cells
from .report import prose, pyplot, save, table

TITLE = "Time and memory"
DENSE = (250, 500, 1000, 2000, 4000)  # m; n is the same
SPARSE = (10_000, 100_000, 1_000_000, 10_000_000)  # |Ω|; 100 in a row, as many columns as rows
RANK = 10
KINDS = {
    "dense": ("decompose, ReLU + Frobenius", "m n"),
    "sparse": ("complete, Identity + Frobenius", "observed entries"),
}


def run(folder: Path) -> xr.Dataset:
    """Return seconds an iteration and peak memory in MiB, by kind and size."""
    sizes = {"dense": DENSE, "sparse": SPARSE}
    options = {"max_iter": 12}
    cells = [Cell({"kind": kind, "size": size}, options) for kind in sizes for size in sizes[kind]]
    return run_cells(folder / "scaling", cells, work, attrs=options)


def work(*, kind: str, size: int, max_iter: int) -> Scores:
    """Measure in a process of its own, so that the peak is that of this size."""
    seconds, mebibytes = in_own_process(measure, kind, size, max_iter)
    entries = size**2 if kind == "dense" else size
    return {"entries": entries, "seconds": seconds, "memory": mebibytes}


def measure(kind: str, size: int, max_iter: int) -> tuple[float, float]:
    """Return the median seconds of an iteration, and the MiB that a fit takes beyond its input."""
    make = dense if kind == "dense" else ratings
    fit_one(kind, make(40 if kind == "dense" else 2000), 3)  # compiles
    X = make(size)
    peak = Peak()
    history = fit_one(kind, X, max_iter).history
    return float(np.median(np.diff(history.seconds.values)[1:])), peak.beyond_start


def dense(m: int) -> np.ndarray:
    """Return a full m x m matrix with zeros."""
    rng = np.random.default_rng(0)
    low_rank = rng.standard_normal((m, RANK)) @ rng.standard_normal((RANK, m))
    return np.maximum(low_rank + rng.standard_normal((m, m)), 0)


def ratings(count: int) -> sparse.csr_array:
    """Return a square sparse matrix with 100 random entries in each row."""
    each = 100
    m = max(count // each, each)
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, m, (m, each)), axis=1).ravel()
    values = rng.standard_normal(m * each)
    X = sparse.csr_array((values, columns, np.arange(0, m * each + 1, each)), shape=(m, m))
    X.sum_duplicates()
    return X


def fit_one(kind: str, X: np.ndarray | sparse.csr_array, max_iter: int) -> nmd.Decomposition:
    """Run the plain iteration some times: what a step costs does not depend on the start."""
    options = {
        "init": "random",
        "max_iter": max_iter,
        "tol": 0.0,
        "random_state": 0,
        "progress": False,
        "solver": nmd.ADMM(split="everywhere", refine=False, polish=False),
        "compute": nmd.Compute(threads=1),
    }
    if kind == "dense":
        return nmd.decompose(X, RANK, "relu", **options)
    return nmd.complete(X, RANK, alpha=0, **options)


def slope(sizes: np.ndarray, values: np.ndarray) -> float:
    """Return the exponent between the three largest sizes."""
    return float(np.polyfit(np.log(sizes[-3:]), np.log(values[-3:]), 1)[0])


def section(results: xr.Dataset, figures: Path) -> str:
    """Return the page's section."""
    fig, axes = pyplot().subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    rows = []
    for k, (kind, (words, axis)) in enumerate(KINDS.items()):
        here = results.sel(kind=kind).dropna("size")
        sizes = here.entries.values
        for ax, name in zip(axes, ("seconds", "memory"), strict=True):
            label = f"{words}: slope {slope(sizes, here[name].values):.2f}"
            ax.loglog(sizes, here[name], "o-", color=f"C{k}", label=label)
        rows += [
            [words, f"{axis} = {n:.3g}", f"{s:.2g}", f"{mib:.1f}", f"{1e9 * s / n:.1f}"]
            for n, s, mib in zip(sizes, here.seconds.values, here.memory.values, strict=True)
        ]
    axes[0].set(xlabel="entries (m n, or observed)", ylabel="seconds an iteration")
    axes[1].set(xlabel="entries (m n, or observed)", ylabel="peak memory beyond the input [MiB]")
    for ax in axes:
        ax.legend(fontsize=7)
    return "\n\n".join(
        [
            prose(ABOUT, rank=RANK),
            table(["fit", "size", "s an iteration", "MiB", "ns an entry"], rows),
            save(fig, figures, "scaling", "Seconds and memory over the number of entries."),
        ]
    )


ABOUT = """
    Median seconds of an iteration on one thread and peak memory beyond the input; rank {rank},
    plain ADMM, float64. Sparse data have 100 entries a row, so that m + n grows with them. The
    slopes in the log-log figure are those of the three largest sizes; 1 is the slope of the design.
"""
