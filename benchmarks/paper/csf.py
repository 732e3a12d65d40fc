"""The two regimes in which the paper finds Square easy, beside the coordinate solver of CSF.

Uniform factors on [0, 1], 100 x 80, rank 5, and Gaussian ones, 10 x 10, rank 2; the paper runs 15
iterations, ten matrices each.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import xarray as xr

import nmd_lab as nmd
from benchmarks import methods

from .cells import Cell, Scores, run_cells
from .fits import LOSSES, SETTINGS, SIGN
from .report import general, least_so_far, prose, pyplot, save, table

TITLE = "Square (CSF) where it is easy"
REGIMES = {"uniform": (100, 80, 5), "gaussian": (10, 10, 2)}
SOLVERS = {"paper": "the paper's settings", "default": "by default", "csf": "CSF, by coordinates"}
PRINTED = {"uniform": "about 1e-4", "gaussian": "below 1e-2"}
EARLY = 15


def run(folder: Path) -> xr.Dataset:
    """Return relative errors by regime, solver, loss, seed and iteration."""
    options = {"max_iter": 300}
    cells = [
        Cell({"regime": regime, "solver": solver, "loss": d, "seed": seed}, options)
        for regime, solver, d, seed in product(REGIMES, SOLVERS, LOSSES, range(10))
        if solver != "csf" or d == "frobenius"
    ]
    return run_cells(folder / "csf", cells, work, n_jobs=2, attrs=options)


def squares(regime: str, seed: int) -> tuple[np.ndarray, int]:
    """Return X = (WH)² and its rank under the square."""
    m, n, rank = REGIMES[regime]
    rng = np.random.default_rng(seed)
    draw = rng.random if regime == "uniform" else rng.standard_normal
    return (draw((m, rank)) @ draw((rank, n))) ** 2, rank


def work(*, regime: str, solver: str, loss: str, seed: int, max_iter: int) -> Scores:
    """Fit one matrix by one solver."""
    X, rank = squares(regime, seed)
    if solver == "csf":
        fit = methods.csf(X, rank, max_iter=max_iter, tol=0.0)
    else:
        options = SETTINGS[solver](max_iter=max_iter, random_state=seed)
        fit = nmd.decompose(X, rank, "square", loss, **options)
    curve = fit.history.relative_error.values
    return {"error": fit.relative_error, "curve": ("iteration", curve[:max_iter])}


def section(results: xr.Dataset, figures: Path) -> str:
    """Return the page's section."""
    last = results.attrs["max_iter"]
    curves = least_so_far(results.curve)
    rows = []
    for regime, d, solver in product(REGIMES, LOSSES, SOLVERS):
        if solver == "csf" and d != "frobenius":
            continue
        lowest = curves.sel(regime=regime, loss=d, solver=solver)
        rows.append(
            [
                f"{regime}, {SIGN[d]}",
                SOLVERS[solver],
                PRINTED[regime] if solver == "paper" else "",
                *(general(float(lowest[:, k - 1].median("seed"))) for k in (EARLY, last)),
                general(float(lowest[:, last - 1].max("seed"))),
            ]
        )
    columns = (
        f"paper, {EARLY} iterations",
        f"median, {EARLY} iterations",
        f"median, {last} iterations",
        f"worst, {last} iterations",
    )
    about = prose(ABOUT, count=results.sizes["seed"])
    header = ["regime and loss", "solver", *columns]
    return "\n\n".join([about, table(header, rows), figure(results, figures)])


ABOUT = """
    Lowest relative error so far on X = (WH)², {count} matrices a regime: uniform factors (100 x 80,
    rank 5; the signs are all known) and Gaussian ones (10 x 10, rank 2).  An iteration of the
    coordinate solver changes every entry of W and H once.
"""


def figure(results: xr.Dataset, figures: Path) -> str:
    """Draw the mean error over the iterations, a line a loss."""
    plt = pyplot()
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    curves = least_so_far(results.curve).mean("seed") + 1e-16
    iterations = np.arange(1, results.sizes["iteration"] + 1)
    lines = [(d, solver) for d in LOSSES for solver in ("paper", "default")]
    styles = {"paper": "--", "default": "-", "csf": ":"}
    for ax, regime in zip(axes, REGIMES, strict=True):
        for d, solver in (*lines, ("frobenius", "csf")):
            curve = curves.sel(regime=regime, loss=d, solver=solver)
            color = "C3" if solver == "csf" else f"C{LOSSES.index(d)}"
            label = f"{SIGN[d]}, {SOLVERS[solver]}"
            ax.loglog(iterations, curve, styles[solver], color=color, label=label)
        m, n, rank = REGIMES[regime]
        ax.set(title=f"{regime} factors, {m} x {n}, rank {rank}", xlabel="iteration")
    axes[0].set_ylabel("mean of the lowest error so far")
    axes[1].legend(fontsize=7)
    return save(fig, figures, "csf", "Square in its two easy regimes.")
