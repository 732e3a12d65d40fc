"""An image of rank 4 seen through Poisson noise, by four models.

The paper's protocol: the MIT logo with values in [0.5, 1], MATLAB's ``poissrnd`` of these values
(so that an entry is a count with a mean of at most one), rank 4, and the error against the clean
image.  The paper gives each run 10 seconds; we give each as many iterations instead.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import xarray as xr

import nmd_lab as nmd
from nmd_lab import datasets

from . import data
from .cells import Cell, Scores, run_cells
from .fits import NAME, SETTINGS, SIGN
from .report import bold_if_least, mean_std, prose, save, show_pictures, table

TITLE = "An image under Poisson noise"
RANK = 4
BOUNDS = nmd.MinMax(0.5, 1.0)
MODELS = (("minmax", "kl"), ("minmax", "frobenius"), ("minmax", "l1"), ("relu", "kl"))
NAMES = {f"{f}+{d}": f"{NAME[f]} + {SIGN[d]}" for f, d in MODELS}
WAYS = {"paper": "the paper's settings", "default": "by default"}
PRINTED = {"minmax+kl": 9.89, "minmax+frobenius": 19.94, "minmax+l1": 12.84, "relu+kl": 29.48}
"""Relative errors in percent, from the paper's table."""


def run(folder: Path, quick: bool = False, source: str | None = None) -> xr.Dataset:
    """Return the clean-image error by model, way and draw, and pictures of the stand-in."""
    source = source or data.source_of("mit_logo")
    options = {"source": source, "max_iter": 200 if quick else 2000, "picture": False}
    results = run_cells(
        folder / "poisson_logo",
        cells(WAYS, range(2 if quick else 5), options),
        work,
        n_jobs=1 if quick else 2,
        attrs={"data": data.load("mit_logo", source).description, **options},
    )
    pictured = options | {"source": "stand-in", "picture": True}
    pictures = run_cells(folder / "poisson_logo", cells(["default"], range(1), pictured), work)
    return results.assign(
        {name: pictures[name] for name in ("picture", "clean_picture", "noisy_picture")}
    )


def cells(ways: object, seeds: range, options: dict[str, object]) -> list[Cell]:
    return [
        Cell({"model": model, "way": way, "seed": seed}, options)
        for model, way, seed in product(NAMES, ways, seeds)
    ]


def work(*, model: str, way: str, seed: int, source: str, max_iter: int, picture: bool) -> Scores:
    """Fit one noisy image and compare with the clean one."""
    clean = data.load("mit_logo", source).X
    X = datasets.poisson(clean, random_state=seed)
    f, d = model.split("+")
    fit = nmd.decompose(
        X,
        RANK,
        BOUNDS if f == "minmax" else f,
        d,
        random_state=seed,
        **SETTINGS[way](max_iter=max_iter),
    )
    image = fit.reconstruct().values
    scores: Scores = {
        "error": 100 * nmd.metrics.relative_error(clean, image),
        "objective": fit.relative_error,
        "seconds": float(fit.history.seconds[-1]),
    }
    if picture:
        for name, array in (("picture", image), ("clean_picture", clean), ("noisy_picture", X)):
            scores[name] = (("y", "x"), array)
    return scores


def section(results: xr.Dataset, figures: Path) -> str:
    """Return the page's section."""
    mean = results.error.mean("seed")
    rows = []
    for model, name in NAMES.items():
        errors = [
            bold_if_least(
                mean_std(results.error.sel(model=model, way=way), 2),
                mean.sel(model=model, way=way),
                mean.sel(way=way).min(),
                digits=2,
            )
            for way in WAYS
        ]
        objectives = [
            f"{float(results.objective.sel(model=model, way=way).mean()):.4f}" for way in WAYS
        ]
        rows.append([name, f"{PRINTED[model]:.2f}", *errors, *objectives])
    header = ["model", "the paper's number", *(f"ours, {words}" for words in WAYS.values())]
    header += [f"objective, {words}" for words in WAYS.values()]
    about = prose(ABOUT, draws=results.sizes["seed"], max_iter=results.attrs["max_iter"])
    return "\n\n".join([about, table(header, rows), picture(results, figures)])


ABOUT = """
    ‖clean − reconstruction‖ / ‖clean‖ in percent, mean ± standard deviation over {draws} draws,
    after {max_iter} iterations (the paper gives 10 seconds). The image has values in [0.5, 1], and
    each entry of X is a Poisson count with that mean, as `poissrnd` draws it: mostly 0, 1 or 2, far
    outside the bounds. The last two columns hold what was minimised, as relative error in the
    loss's own sense.
"""


def picture(results: xr.Dataset, figures: Path) -> str:
    """Draw the stand-in: clean, noisy and what each model makes of it."""
    chosen = results.sel(way="default").isel(seed=0)
    images = [chosen.clean_picture[0].values, chosen.noisy_picture[0].values]
    images += [chosen.picture.sel(model=model).values for model in NAMES]
    figure = show_pictures(
        [images[:3], images[3:]], ["", ""], ["", "", ""], size=1.5, limits=(0.4, 1.1)
    )
    names = ["clean", "noisy", *NAMES.values()]
    for ax, name in zip(np.ravel(figure.axes), names, strict=True):
        ax.set_title(name, fontsize=9)
    return save(
        figure,
        figures,
        "poisson_logo",
        "A generated block image of rank 4 under Poisson noise; ours by default, grey from 0.4 to "
        "1.1.",
    )
