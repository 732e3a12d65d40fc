"""An image of rank 4 seen through Poisson noise, by four models.

The paper's protocol: the MIT logo with values in [0.5, 1], MATLAB's ``poissrnd`` of these values
(so that an entry is a count with a mean of at most one), rank 4, and the error against the clean
image.  The paper gives each run 10 seconds; we give each as many iterations instead.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import xarray as xr

import nmd_lab as nmd
from nmd_lab import datasets

from . import data
from .cells import Cell, Scores, run_cells
from .fits import NAME, SETTINGS, SIGN, choose_alpha, default_settings
from .report import bold_if_least, is_full, mean_std, prose, save, show_pictures, table

TITLE = "An image under Poisson noise"
RANK = 4
BOUNDS = nmd.MinMax(0.5, 1.0)
MODELS = (("minmax", "kl"), ("minmax", "frobenius"), ("minmax", "l1"), ("relu", "kl"))
NAMES = {f"{f}+{d}": f"{NAME[f]} + {SIGN[d]}" for f, d in MODELS}
EARLY = 5  # times fewer iterations: near the paper's in number, we believe
WAYS = {
    "early": "the paper's settings, a fifth of the iterations",
    "paper": "the paper's settings",
    "default": "by default",
    "alpha": "alpha chosen",
}
PLAIN = ("paper", "default")  # what the pictures show
ALPHAS = (0.0, 1.0, 3.0, 10.0)
PRINTED = {"minmax+kl": 9.89, "minmax+frobenius": 19.94, "minmax+l1": 12.84, "relu+kl": 29.48}
"""Relative errors in percent, from the paper's table."""


def run(folder: Path, source: str | None = None) -> xr.Dataset:
    """Return the clean-image error by model, way and draw, and pictures of the stand-in."""
    source = source or data.source_of("mit_logo")
    options = {"source": source, "max_iter": 1000, "picture": False}
    results = run_cells(
        folder / "poisson_logo",
        cells(WAYS, range(5), options),
        work,
        n_jobs=2,
        attrs={"data": data.load("mit_logo", source).description, **options},
    )
    pictured = options | {"source": "stand-in", "picture": True}
    pictures = run_cells(folder / "poisson_logo", cells(PLAIN, range(1), pictured), work)
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
    nonlinearity = BOUNDS if f == "minmax" else f
    options = SETTINGS["paper" if way in ("early", "paper") else "default"](
        max_iter=max_iter // EARLY if way == "early" else max_iter, random_state=seed
    )
    scores: Scores = {}
    if way == "alpha":
        quickly = default_settings(max_iter=150, random_state=seed)
        scores["alpha"] = options["alpha"] = choose_alpha(
            X, RANK, nonlinearity, d, ALPHAS, seed=seed, **quickly
        )
    fit = nmd.decompose(X, RANK, nonlinearity, d, **options)
    image = fit.reconstruct().values
    scores |= {
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
            f"{float(results.objective.sel(model=model, way=way).mean()):.4f}" for way in PLAIN
        ]
        printed = [f"{PRINTED[model]:.2f}"] if is_full(results) else []
        rows.append([name, *printed, *errors, *objectives])
    used = data.label("mit_logo", results.attrs["source"])
    header = ["model", *(["the paper's number"] if is_full(results) else [])]
    header += [f"{used}: ours, {words}" for words in WAYS.values()]
    header += [f"{used}: objective, {WAYS[way]}" for way in PLAIN]
    about = prose(ABOUT, draws=results.sizes["seed"], max_iter=results.attrs["max_iter"])
    parts = [about, table(header, rows), picture(results, figures)]
    if is_full(results):
        parts.append(findings(results))
    return "\n\n".join(parts)


ABOUT = """
    ‖clean − reconstruction‖ / ‖clean‖ in percent, mean ± standard deviation over {draws} draws,
    after {max_iter} iterations (the paper gives 10 seconds). The image has values in [0.5, 1], and
    each entry of X is a Poisson count with that mean, as `poissrnd` draws it: mostly 0, 1 or 2, far
    outside the bounds. The last two columns have the minimised objective, as relative error in the
    loss's own sense."""


FINDINGS = """
    - **The cleanest images come from the worst minima.** With the paper's settings MinMax + KL
      stops at the objective {paper[1]:.4f} and the error {paper[0]:.2f} %; by default it
      continues to
      {default[1]:.4f} and {default[0]:.2f} %, since four unbounded components can fit some of the
      noise too. Without knowing the clean image one can choose a ridge on held-out noisy pixels
      (among {alphas}): {alpha[0]:.2f} %.
    - **ReLU + KL is not at its minimum in the paper**: its 29.48 % is near the {relu[0]:.2f} % that
      we see after a fifth of the iterations; it ends at {relu[1]:.2f} %.
"""


def findings(results: xr.Dataset) -> str:
    """Return the results of the table, in sentences with numbers."""
    mean = results.mean("seed")
    kl = {
        way: [
            float(mean[score].sel(model="minmax+kl", way=way)) for score in ("error", "objective")
        ]
        for way in WAYS
    }
    relu = mean.error.sel(model="relu+kl", way=["early", "paper"]).values
    return prose(FINDINGS, alphas=", ".join(f"{alpha:g}" for alpha in ALPHAS), relu=relu, **kl)


def picture(results: xr.Dataset, figures: Path) -> str:
    """Draw the stand-in: clean, noisy and what each model makes of it."""
    chosen = results.isel(seed=0).sel(way=list(PLAIN))
    given = [chosen.clean_picture[0, 0].values, chosen.noisy_picture[0, 0].values]
    rows = [
        [first, *(chosen.picture.sel(model=model, way=way).values for model in NAMES)]
        for first, way in zip(given, PLAIN, strict=True)
    ]
    names = [f"ours, {WAYS[way]}" for way in PLAIN]
    figure = show_pictures(rows, names, ["", *NAMES.values()], size=1.1, limits=(0.4, 1.1))
    for ax, title in zip(figure.axes[:: len(NAMES) + 1], ("clean", "noisy"), strict=True):
        ax.set_title(title, fontsize=9)
    return save(figure, figures, "poisson_logo", CAPTION)


CAPTION = (
    "A generated block image of rank 4 under Poisson noise, grey from 0.4 to 1.1: the image and "
    "its noisy version, then what each model makes of it."
)
