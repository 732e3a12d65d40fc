"""What the choice of ρ does: fixed values and rules, on all twelve models.

The paper's appendix: 100 x 80, rank 5, 1000 iterations, ten matrices.  X has 5 % of Gaussian noise
here, so that a good objective is a number and not a race to zero; zeros stay zeros, which KL needs,
and X stays within f's range.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import xarray as xr

import nmd_lab as nmd
from nmd_lab import datasets

from .cells import Cell, Scores, run_cells
from .fits import LOSSES, MODELS, NAME, SIGN, default_settings, paper_settings
from .report import general, prose, pyplot, save, table

TITLE = "The penalty ρ"
SHAPE = (100, 80, 5)
FIXED = ("0.01", "0.1", "1", "10", "100")
RULES = ("paper", "balanced", "auto")
DEFAULT = "all by default"
POINTS = 30


def run(folder: Path) -> xr.Dataset:
    """Return the lowest relative error by model, choice of ρ and seed, and curves."""
    options = {"shape": SHAPE, "noise": 0.05, "max_iter": 1000}
    cells = [
        Cell({"nonlinearity": f, "loss": d, "penalty": penalty, "seed": seed}, options)
        for f, d, penalty, seed in product(MODELS, LOSSES, (*FIXED, *RULES, DEFAULT), range(10))
    ]
    return run_cells(folder / "penalty_ablation", cells, work, n_jobs=2, attrs=options)


def work(
    *,
    nonlinearity: str,
    loss: str,
    penalty: str,
    seed: int,
    shape: tuple[int, int, int],
    noise: float,
    max_iter: int,
) -> Scores:
    """Fit one noisy matrix with one choice of ρ."""
    made = datasets.synthetic(*shape, nonlinearity, noise=noise, random_state=seed)
    X = made.X.clip(0, 1 if nonlinearity == "minmax" else None).where(made.clean > 0, 0).values
    if penalty == DEFAULT:
        options = default_settings()
    else:
        options = paper_settings(float(penalty) if penalty in FIXED else penalty)
    fit = nmd.decompose(
        X, shape[2], nonlinearity, loss, max_iter=max_iter, random_state=seed, **options
    )
    curve = np.minimum.accumulate(fit.history.relative_error.values[:max_iter])
    at = np.minimum(np.geomspace(1, max_iter, POINTS).astype(int), curve.size) - 1
    return {"error": curve[-1], "curve": ("iteration", curve[at])}


def section(results: xr.Dataset, figures: Path) -> str:
    """Return the page's section."""
    m, n, rank = results.attrs["shape"]
    mean = results.error.mean("seed")
    choices = [str(choice) for choice in results.penalty.values]
    rows = []
    for f, d in product(MODELS, LOSSES):
        here = mean.sel(nonlinearity=f, loss=d)
        texts = [
            f"**{text}**" if text == general(float(here.min()), 3) else text
            for text in (general(float(here.sel(penalty=c)), 3) for c in choices)
        ]
        rows.append([f"{NAME[f]} + {SIGN[d]}", *texts])
    plain = mean.sel(penalty=[c for c in choices if c != DEFAULT]).min("penalty")
    worst = (mean / plain).max(("nonlinearity", "loss"))
    numbers = {
        "max_iter": results.attrs["max_iter"],
        "count": results.sizes["seed"],
        "worst": ", ".join(f"{c} {float(worst.sel(penalty=c)):.2f}" for c in choices),
    }
    header = ["model", *(f"ρ = {c}" if c in FIXED else c for c in choices)]
    return "\n\n".join(
        [
            prose(ABOUT, m=m, n=n, rank=rank, **numbers),
            table(header, rows),
            figure(results, figures),
            prose(FINDINGS, **numbers),
        ]
    )


ABOUT = """
    Lowest relative error within {max_iter} iterations, mean over {count} matrices of {m} x {n} with
    5 % of noise off the zeros, rank {rank}.  All choices of ρ start at the SVD and run the plain
    ADMM; the last column is `decompose` without any option.  The least of a row is bold.
"""

FINDINGS = """
    - The worst ratio of each choice to the best of the eight plain ones, over the twelve models:
      {worst}.
"""


def figure(results: xr.Dataset, figures: Path) -> str:
    """Draw the error over the iterations, a panel a model."""
    plt = pyplot()
    fig, axes = plt.subplots(4, 3, figsize=(9.5, 9), sharex=True, layout="constrained")
    curves = results.curve.mean("seed")
    iterations = np.geomspace(1, results.attrs["max_iter"], POINTS).astype(int)
    for (i, f), (j, d) in product(enumerate(MODELS), enumerate(LOSSES)):
        for k, choice in enumerate(results.penalty.values):
            style = {"ls": "--", "lw": 1.0} if choice in FIXED else {"ls": "-", "lw": 1.8}
            color = "black" if choice == DEFAULT else f"C{k}"
            curve = curves.sel(nonlinearity=f, loss=d, penalty=choice)
            axes[i, j].loglog(iterations, curve, label=choice, color=color, **style)
        axes[i, j].set(title=f"{NAME[f]} + {SIGN[d]}", xlabel="iteration" if i == 3 else "")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=9)
    caption = "Mean of the lowest relative error so far, by the choice of ρ."
    return save(fig, figures, "penalty_ablation", caption)
