"""What is done with a fit: each method answers, and agrees with `reconstruct`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy import sparse

import nmd_lab
from nmd_lab.data.matching import Axis
from nmd_lab.result.entries import index_of

from .case import Case
from .containers import contents
from .faults import Fault
from .matrices import Array
from .recompute import rounding_of


class Use(NamedTuple):
    """A fit, its case and its data.

    Attributes
    ----------
    fit : Decomposition
        Fit.
    case : Case
        Case that gave it.
    X : object
        Data in their container.
    observed : dict
        The keyword argument `observed`, if the container has one.
    model : ndarray (m, n)
        Flat reconstruction.
    rng : Generator
        Random numbers.
    """

    fit: nmd_lab.Decomposition
    case: Case
    X: Any
    observed: dict[str, Any]
    model: Array
    rng: np.random.Generator


def near(one: Any, two: Any, what: str, size: float = 0.0, rounding: float | Array = 0.0) -> None:
    """Raise a Fault if two results are not equal within the rounding of single precision.

    `rounding` of each entry counts where all compared entries are small because terms of WH cancel.
    """
    one, two = np.asarray(one, float), np.asarray(two, float)
    size = max(size, np.abs(two).max(initial=1e-300))
    if one.shape != two.shape or not (np.abs(one - two) <= 1e-4 * size + rounding).all():
        raise Fault(f"{what} disagrees with reconstruct()")


def _named(fit: nmd_lab.Decomposition, axis: Axis, positions: Any) -> Any:
    """Return the labels of rows or columns, or their positions if they have none."""
    index = index_of(fit.labels, axis)
    return positions if index is None else index[positions]


def _predict(use: Use) -> None:
    i, j = (use.rng.integers(size, size=5) for size in use.model.shape)
    rounding = rounding_of(use.fit)[i, j]
    named = _named(use.fit, "rows", i), _named(use.fit, "columns", j)
    near(use.fit.predict(*named), use.model[i, j], "predict", rounding=rounding)


def _predict_test(use: Use) -> None:
    predicted, rounding = use.fit.predict(use.X), rounding_of(use.fit)
    if type(predicted) is not type(use.X) and isinstance(use.X, pd.DataFrame | xr.DataArray):
        raise Fault("predict of test data has another type", type(predicted).__name__)
    if sparse.issparse(predicted) and predicted.shape == use.case.shape:
        entries = predicted.tocoo()
        expected, rounding = use.model[entries.coords], rounding[entries.coords]
        near(entries.data, expected, "predict of sparse test data", rounding=rounding)
    if use.case.container in ("nan", "fortran", "strided", "frozen", "memmap", "frame"):
        values = np.asarray(predicted, float)
        if (np.isnan(values) != ~use.case.seen).any():
            raise Fault("predict of test data is not NaN where they are missing")
        expected, rounding = use.model[use.case.seen], rounding[use.case.seen]
        near(values[use.case.seen], expected, "predict of test data", rounding=rounding)


def _top(use: Use) -> None:
    fit, model = use.fit, use.model
    row, k = int(use.rng.integers(model.shape[0])), int(use.rng.integers(1, 5))
    name, first = _named(fit, "rows", row), _named(fit, "columns", [0])
    best = fit.top(name, k, exclude=first if model.shape[1] > 1 else None)
    near(best.values, model[row, best.position.values], "top", np.abs(model).max())
    if not (np.diff(best.values) <= 1e-6 * np.abs(model).max()).all():
        raise Fault("top is not sorted")
    several = fit.top(_named(fit, "rows", [row, 0, -1]), k)
    alone = fit.top(name, k)
    if several.values[0].tobytes() != alone.values.tobytes():
        raise Fault("top of several rows is not that of each")
    fit.top([name], k, exclude=use.X)


def _residual(use: Use) -> None:
    case, fit = use.case, use.fit
    residual = fit.residual(use.X, **use.observed)
    size = float(np.abs(case.matrix.astype(float)[case.seen]).max() + np.abs(use.model).max())
    if sparse.issparse(residual):
        i, j = residual.tocoo().coords
        expected = case.matrix.astype(float)[i, j] - use.model[i, j]
        if np.abs(residual.tocoo().data - expected).max(initial=0) > 1e-3 * size:
            raise Fault("a sparse residual is not X - reconstruct()")
        return
    if case.container in ("weights", "observations") or residual.size != case.seen.size:
        return
    flat = fit.labels.flatten(residual.values)
    if (np.isnan(flat) != ~case.seen).any():
        raise Fault("residual is not NaN where X is missing")
    expected = (case.matrix.astype(float) - use.model)[case.seen]
    if np.abs(flat[case.seen] - expected).max() > 1e-3 * size:
        raise Fault("residual is not X - reconstruct()")


def _score(use: Use) -> None:
    score, case = use.fit.score(use.X, **use.observed), use.case
    if not (np.isfinite(score) and score <= 1):
        raise Fault("score is not finite, or above 1", repr(score))
    if case.container in ("nan", "observed", "masked", "frame", "frozen"):
        x, y = case.matrix.astype(float)[case.seen], use.model.astype(float)[case.seen]
        unit = np.abs(x).max()
        if unit > 0:
            expected = 1 - np.sum(((x - y) / unit) ** 2) / np.sum((x / unit) ** 2)
            if abs(score - expected) > 1e-3 * (1 + abs(expected)):
                raise Fault("score is not 1 - |X - reconstruct()|^2 / |X|^2", f"{score}")


def _fold_in(use: Use) -> None:
    if not np.isfinite(use.fit.fold_in(use.X, unknown="offsets", **use.observed).values).all():
        raise Fault("fold_in is not finite")


def _append(use: Use) -> None:
    fit, X = use.fit, use.X
    if use.case.container == "frame":
        X = X.set_axis([f"new {i}" for i in range(len(X))])
    longer = fit.append(X, unknown="offsets", **use.observed)
    again = fit.append(fit.fold_in(X, unknown="offsets", **use.observed))
    m, n = fit.shape
    if longer.shape[1] != n or longer.shape[0] <= m:
        raise Fault("append gives another shape", f"{fit.shape} became {longer.shape}")
    model = longer.labels.flatten(longer.reconstruct().values)
    if not np.isfinite(model).all():
        raise Fault("append gives predictions that are not finite")
    near(model[:m], use.model, "append")
    if model.tobytes() != again.labels.flatten(again.reconstruct().values).tobytes():
        raise Fault("append of rows is not append of what fold_in gives")
    longer.top(_named(longer, "rows", [longer.shape[0] - 1]), 2)
    _saved(use._replace(fit=longer))


def _rotate(use: Use) -> None:
    method = ("size", "svd", "varimax", "quartimax")[use.rng.integers(4)]
    rotated = use.fit.rotate(method)
    (W, H), (V, G) = use.fit.factors, rotated.factors
    if V.dtype != W.dtype or not (np.isfinite(V).all() and np.isfinite(G).all()):
        raise Fault("rotate gives factors that are not finite, or of another precision", method)
    # an SVD is exact for factors that differ by rounding of their norms
    W, H, V, G = (factor.astype(float) for factor in (W, H, V, G))
    number = np.finfo(use.fit.W.dtype)
    rounding = 1e3 * number.eps * np.linalg.norm(W) * np.linalg.norm(H)
    # W of "svd" has the size of WH, and what is below the smallest number becomes 0
    rounding += 2 * use.fit.rank * number.smallest_subnormal
    if np.abs(W @ H - V @ G).max() > rounding:
        raise Fault("rotate changes WH", method)
    if (np.take_along_axis(G, np.abs(G).argmax(1)[:, None], 1) < 0).any():
        raise Fault("rotate leaves a negative sign", method)
    if not np.isfinite(rotated.objective):
        raise Fault("rotate gives an objective that is not finite", method)
    if method == "size" and rotated.rotate().W.values.tobytes() != rotated.W.values.tobytes():
        raise Fault("rotate by size again changes the components")
    _saved(use._replace(fit=rotated))


def _explained(use: Use) -> None:
    shares = use.fit.explained.values
    W, H = use.fit.factors
    if not np.isfinite(shares).all():
        raise Fault("explained is not finite")
    product = W.astype(float) @ H.astype(float)
    # where terms cancel, a share is large
    if np.abs(product).max() > 0 and abs(shares.sum() - 1) > 1e-6 * (1 + np.abs(shares).max()):
        raise Fault("explained does not have the sum 1", str(shares.sum()))


def _saved(use: Use) -> None:
    fit = use.fit
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.nc"
        fit.save(path)
        loaded = nmd_lab.load(path)
        if len(list(Path(folder).iterdir())) > 1:
            raise Fault("save leaves a file behind")
    for name in ("W", "H", "history"):
        if not getattr(loaded, name).identical(getattr(fit, name)):
            raise Fault("a loaded fit is not the saved one", name)
    if repr(loaded.parameters) != repr(fit.parameters) or loaded.stop_reason != fit.stop_reason:
        raise Fault("a loaded fit has other parameters")
    if not loaded.reconstruct().identical(fit.reconstruct()):
        raise Fault("a loaded fit has another reconstruct()")


def _split(use: Use) -> None:
    X, case = use.X, use.case
    parts = nmd_lab.split_observed(X, 0.3, random_state=case.seed)
    again = nmd_lab.split_observed(X, 0.3, random_state=case.seed)
    for one, two in zip(parts, again, strict=True):
        if contents(one) != contents(two):
            raise Fault("the same seed splits in another way")
    if case.container in ("nan", "fortran", "strided", "frozen"):
        train, test = (~np.isnan(np.asarray(part, float)) for part in parts)
        whole = ~np.isnan(np.asarray(X, float))
        if (train & test).any() or ((train | test) != whole).any():
            raise Fault("split_observed loses an entry, or keeps one twice")
    use.fit.score(parts[1])


def _compare(use: Use) -> None:
    nmd_lab.compare(use.fit, use.fit.rotate())
    nmd_lab.compare([use.fit, use.fit], use.X, **use.observed)


def _shown(use: Use) -> None:
    fit = use.fit
    _ = (repr(fit), fit._repr_html_(), fit.starts, fit.selection, fit.optimality, fit.to_pandas())


def _again(use: Use) -> None:
    others = {**use.observed} | ({} if "init" in use.case.options else {"init": use.fit})
    use.case.call(use.X, **others)


USES: dict[str, Callable[[Use], None]] = {
    "predict": _predict,
    "predict test data": _predict_test,
    "top": _top,
    "residual": _residual,
    "score": _score,
    "fold_in": _fold_in,
    "append": _append,
    "rotate": _rotate,
    "explained": _explained,
    "compare": _compare,
    "save": _saved,
    "split": _split,
    "shown": _shown,
    "again": _again,
}
"""The uses by name."""
