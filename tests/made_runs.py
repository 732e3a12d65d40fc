"""Short runs of every kind, as (function, arguments, options)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from helpers import NONNEGATIVE, given
from oracles import PAIRS as PAIRS

import nmd_lab as nmd

STORAGES = ("dense", "masked", "observed", "zeros")

Run = tuple[str, tuple[Any, ...], dict[str, Any]]


def noisy(f: str, shape: tuple[int, int] = (24, 18)) -> np.ndarray:
    """Return data in [0, 1] for MinMax and >= 0 for all others."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1]))
    X = {"minmax": A / 3 + 0.5, "relu": np.maximum(A, 0), "square": A * A}.get(f, np.abs(A))
    X = X + 0.05 * np.abs(rng.normal(size=shape))
    return np.clip(X, 0, 1) if f == "minmax" else X


def fit_of(f: str, loss: str, storage: str, shape: tuple[int, int] = (24, 18)) -> Run:
    """Return a fit of a pair."""
    X, rng, (m, n) = noisy(f, shape), np.random.default_rng(1), shape
    options: dict[str, Any] = {"max_iter": 40, "tol": 1e-4, "random_state": 0}
    seen = rng.random(shape) < (0.25 if storage == "observed" else 0.6)
    seen[np.arange(m), np.arange(m) % n] = True
    partly = options | {"alpha": 0.01, "offsets": "none" if storage == "masked" else "both"}
    verb, data, options = {
        "dense": ("decompose", X, options),
        "float32": ("decompose", X.astype(np.float32), options),
        "zeros": ("decompose", sp.csr_array(np.where(seen, X, 0)), options),
        "with NaN": ("complete", np.where(seen, X, np.nan), partly),
        "weighted": ("complete", X, partly | {"weights": np.where(seen, 2.0, 0.0)}),
    }.get(storage, ("complete", X, partly | {"observed": seen}))
    return verb, (data, 2, given(f), loss), options


def others() -> dict[str, Run]:
    """Return runs with more than one start, with a choice, constraints, learning and draws."""
    X, rng = noisy("relu"), np.random.default_rng(2)
    seen = rng.random(X.shape) < 0.7
    counts = rng.poisson(3 * X).astype(float)
    short = {"max_iter": 40, "random_state": 0}
    wide_first = nmd.ADMM(homotopy=True)
    large = noisy("relu", (300, 230))
    chain = {"draws": 12, "tune": 6, "chains": 2, "random_state": 0, "observed": seen}
    levels = np.clip(np.round(2 * X) + 1, 1, 4)
    return {
        "starts": ("decompose", (X, 2), short | {"n_init": 3}),
        "starts side by side": (
            *("decompose", (large, 2)),
            {"max_iter": 20, "n_init": 3, "random_state": 0, "compute": nmd.Compute(threads=2)},
        ),
        "validation": (
            *("complete", (X, 4, "identity")),
            {"observed": seen, "alpha": 0.01, "validation": 0.1, "random_state": 0},
        ),
        "nonnegative": ("decompose", (X, 2, "identity"), short | NONNEGATIVE),
        "learning": ("decompose", (counts, 2, "exp", nmd.losses.NegativeBinomial()), short),
        "gaussian chains": ("sample", (X, 2), chain),
        "ordinal chains": ("sample", (levels, 2, "identity", "ordinal"), chain),
        "chains in order": ("sample", (X, 2), chain | {"order": rng.permutation(24)}),
        "table in order": (
            *("sample", (dated(X, seen),)),
            {"draws": 12, "tune": 6, "chains": 2, "random_state": 0},
        ),
        "auto": ("complete", (X,), {"observed": seen, "random_state": 0}),
        "divergence": ("decompose", (X, 2, "identity", "kl"), short | NONNEGATIVE),
        "orthonormal": ("decompose", (X, 2, "relu"), short | {"h_constraint": "orthonormal"}),
        "homotopy": ("decompose", (noisy("minmax"), 2, "minmax"), short | {"solver": wide_first}),
        "unseeded": ("decompose", (X, 2), {"max_iter": 20, "init": "random"}),
        "chains with noise before f": ("sample", (X, 2, "relu"), chain),
        "poisson chains": ("sample", (counts, 2, "relu", "kl"), chain),
        "learned f": ("decompose", (X, 2, "monotone"), short),
        "learned f of columns": ("decompose", (X, 2, ["monotone"] * X.shape[1]), short),
    }


def dated(X: np.ndarray, seen: np.ndarray) -> pd.DataFrame:
    """Return a table whose rows are days, some of them without any cell."""
    dates = pd.date_range("2020-01-01", periods=len(X))
    frame = pd.DataFrame(np.where(seen, X, np.nan)[:, :6], index=dates)
    frame.iloc[4:7] = frame.iloc[15:18] = np.nan
    return frame


def kept(options: dict[str, Any], path: Path | str, every: float = 60) -> dict[str, Any]:
    """Return the options of a run with a checkpoint."""
    compute = options.get("compute", nmd.Compute())
    return options | {"compute": replace(compute, checkpoint=path, checkpoint_every=every)}


def bits_of(result: Any) -> dict[str, bytes]:
    """Return all numbers of a result but times, as bytes, with its model and its ending."""
    arrays = result._to_dataset().drop_vars("seconds", errors="ignore").data_vars
    mean = result.mean if isinstance(result, nmd.Posterior) else result.offsets.mean
    texts = repr((result.nonlinearity, result.loss, str(result.stop_reason), mean))
    found = {str(name): np.ascontiguousarray(each).tobytes() for name, each in arrays.items()}
    return found | {"texts": texts.encode()}
