"""Compute what the page "Try it" shows: fits of digits, and completions of a clipped picture.

    python docs/try_it.py

writes ``docs/_static/try_it_data.js``, a script with one object, so that the page works without a
server too.  ``make docs`` calls it.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import griddata
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

import nmd_lab as nmd

HERE = Path(__file__).parent
PICTURE = HERE.parent / "examples/gallery/plot_clipped_picture.py"
RANKS = (2, 4, 6, 8, 12, 16, 24)
EACH = 3
"""Pictures of each digit on the page."""
HOLES = (20, 40, 60, 80)
"""Missing pixels, in per cent."""
STEP = 2
"""Every other pixel of the picture is taken."""
DRAWS = 200
"""Draws of the posterior, and sweeps before them."""


def short(values: Any, digits: int = 3) -> Any:
    """Return numbers with a few digits, as lists."""
    return np.round(np.asarray(values, dtype=float), digits).tolist()


def relative(X: NDArray[Any], model: NDArray[Any]) -> float:
    """Return the relative error of a model."""
    return float(np.linalg.norm(X - model) / np.linalg.norm(X))


def in_order(product: NDArray[Any], rank: int, rows: NDArray[Any]) -> dict[str, Any]:
    """Return factors of a matrix, some of its rows alone, with the largest component first."""
    U, s, Vt = np.linalg.svd(product, full_matrices=False)
    return {"W": short((U * s)[rows, :rank]), "H": short(Vt[:rank], 4)}


def digits() -> dict[str, Any]:
    """Return fits of pictures of digits by components, with ReLU and without f."""
    data = nmd.datasets.digits()
    X = np.asarray(data, dtype=float).reshape(len(data), -1)
    X /= X.max()
    labels = np.asarray(data["label"] if "label" in data.coords else data.coords["digit"])
    rows = np.concatenate([np.flatnonzero(labels == k)[:EACH] for k in range(10)])
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    fits = []
    for rank in RANKS:
        fit = nmd.decompose(X, rank, "relu", random_state=0)
        product = fit.W.values @ fit.H.values
        linear = (U * s)[:, :rank] @ Vt[:rank]
        nmf = NMF(rank, init="nndsvda", max_iter=500, random_state=0)
        fits.append(
            {
                "rank": rank,
                "relu": in_order(product, rank, rows),
                "linear": in_order(linear, rank, rows),
                "errors": {
                    "ReLU": relative(X, np.maximum(product, 0)),
                    "linear": relative(X, linear),
                    "NMF": relative(X, nmf.fit_transform(X) @ nmf.components_),
                },
            }
        )
    return {"pictures": short(X[rows], 2), "labels": labels[rows].tolist(), "fits": fits}


def interpolation(given: NDArray[Any]) -> NDArray[Any]:
    """Return a picture whose holes are interpolated linearly; outside the hull, the nearest."""
    seen = ~np.isnan(given)
    grid, pixels = tuple(np.indices(given.shape)), np.argwhere(seen)
    linear, nearest = (griddata(pixels, given[seen], grid, way) for way in ("linear", "nearest"))
    return np.where(np.isnan(linear), nearest, linear)


def holes() -> dict[str, Any]:
    """Return a clipped picture, completed from fewer and fewer pixels."""
    with contextlib.redirect_stdout(io.StringIO()):
        picture = runpy.run_path(str(PICTURE))["picture"][::STEP, ::STEP]
    plt.close("all")
    order = np.random.default_rng(1).random(picture.shape)
    cases = []
    for share in HOLES:
        hidden = order < share / 100
        given = np.where(hidden, np.nan, picture)
        linear = nmd.complete(given, nonlinearity="identity", random_state=0).reconstruct().values
        models = {
            "linear": linear.clip(0, 1),
            "MinMax": nmd.complete(given, nonlinearity=nmd.MinMax(0, 1), random_state=0)
            .reconstruct()
            .values,
        }
        posterior = nmd.sample(
            given, 20, nmd.MinMax(0, 1), draws=DRAWS, tune=DRAWS, random_state=0, progress=False
        )
        rows, columns = np.indices(picture.shape)
        interval = np.asarray(posterior.predict_interval(rows.ravel(), columns.ravel(), level=0.9))
        low, high = interval.T.reshape(2, *picture.shape)
        models["posterior mean"] = posterior.reconstruct().values
        models["interpolation"] = interpolation(given)
        cases.append(
            {
                "share": share,
                "hidden": hidden.astype(int).ravel().tolist(),
                "models": {name: short(model.ravel(), 2) for name, model in models.items()},
                "low": short(low.ravel(), 2),
                "high": short(high.ravel(), 2),
                "errors": {
                    name: float(np.sqrt(np.mean((model - picture)[hidden] ** 2)))
                    for name, model in models.items()
                },
                "held": float(np.mean(((low <= picture) & (picture <= high))[hidden])),
            }
        )
    return {"shape": picture.shape, "picture": short(picture.ravel(), 2), "cases": cases}


def write(path: Path) -> None:
    """Compute everything, and write the script."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        data = {"digits": digits(), "holes": holes()}
    text = json.dumps(data, separators=(",", ":"))
    path.write_text(f"globalThis.TRY_IT = {text};\n", encoding="utf-8")


if __name__ == "__main__":
    write(HERE / "_static" / "try_it_data.js")
