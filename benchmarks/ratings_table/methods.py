"""Methods in one calling form: what they try, and `fit`, which gets training ratings and a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

import nmd_lab as nmd
from benchmarks.selection import simple

from .problems import Array, Ratings
from .scores import Above

Setting = dict[str, Any]

RANKS = (2, 3, 5, 8, 12, 20, 32)
RIDGES = (3.0, 4.5, 6.5, 9.0, 13.0, 18.0, 26.0)
OFFSET_RIDGES = (1.0, 3.0, 10.0, 30.0)
SAMPLER_RANKS = (5, 10, 20, 40)


class Fitted(NamedTuple):
    """What was learnt.

    Attributes
    ----------
    predict : callable
        Predictions (n,) at rows and columns.
    above : callable, optional
        Probability (n,) that the ratings there are above a value, if the method has its own.
    """

    predict: Callable[[Array, Array], Array]
    above: Above | None = None


class Method:
    """A method.

    Attributes
    ----------
    name : str
        As in the table.
    package : str
        What must be installed.
    requirement : str
        What pip installs for it.
    grid : dict
        The values of each parameter that is tuned, in order; empty if nothing is tuned.
    start : dict
        Where the walk over the grid begins.
    is_sampler : bool
        Whether `fit` wants `draws` and `tune`.
    is_ours_in_work : bool
        Whether it is done again when the library changes.
    """

    name: str
    package = "nmd_lab"
    requirement = "nmd-lab"
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {}
    start: ClassVar[Setting] = {}
    is_sampler = False
    is_ours_in_work = False

    def available(self) -> bool:
        """Return whether it is there."""
        return True

    def fit(self, train: Ratings, seed: int, **setting: Any) -> Fitted:
        """Learn from the stored entries of a csr_array (m, n)."""
        raise NotImplementedError


class Offsets(Method):
    """Mean and offsets of rows and of columns, each with its ridge."""

    name = "offsets alone"
    grid: ClassVar = {"row_ridge": simple.RIDGES, "column_ridge": simple.RIDGES}
    start: ClassVar = {"row_ridge": 10.0, "column_ridge": 10.0}

    def fit(self, train: Ratings, seed: int, **setting: float) -> Fitted:
        X = train.tocoo()
        ridges = setting["row_ridge"], setting["column_ridge"]
        mean, b, c = simple.offsets((X.row, X.col, X.data), X.shape, ridges)
        return Fitted(lambda rows, columns: mean + b[rows] + c[columns])


class Tuned(Method):
    """Our fit with given rank, ridges and nonlinearity."""

    name = "nmd.complete, tuned"
    grid: ClassVar = {
        "alpha": RIDGES,
        "rank": RANKS,
        "offset_alpha": OFFSET_RIDGES,
        "nonlinearity": ("identity", "minmax"),
    }
    start: ClassVar = {"alpha": 9.0, "rank": 8, "offset_alpha": 3.0, "nonlinearity": "identity"}

    def fit(self, train: Ratings, seed: int, **setting: Any) -> Fitted:
        if setting["nonlinearity"] == "minmax":  # within the scale of the ratings
            bounds = nmd.MinMax(float(train.data.min()), float(train.data.max()))
            setting |= {"nonlinearity": bounds}
        return Fitted(
            nmd.complete(
                train, offsets="both", random_state=seed, compute=nmd.Compute(threads=1), **setting
            ).predict
        )


class Default(Method):
    """Our fit as it is called without a number."""

    name = "nmd.complete(X)"
    is_ours_in_work = True

    def fit(self, train: Ratings, seed: int, **setting: Any) -> Fitted:
        return Fitted(
            nmd.complete(train, random_state=seed, compute=nmd.Compute(threads=1)).predict
        )


class Posterior(Method):
    """Our sampler with Gaussian noise."""

    name = "nmd.sample"
    grid: ClassVar = {"rank": SAMPLER_RANKS}
    start: ClassVar = {"rank": 10}
    is_sampler = True
    is_ours_in_work = True

    def options(self) -> dict[str, Any]:
        """Return further arguments of `nmd.sample`."""
        return {}

    def fit(self, train: Ratings, seed: int, **setting: Any) -> Fitted:
        posterior = nmd.sample(
            train,
            random_state=seed,
            progress=False,
            compute=nmd.Compute(threads=1),
            **setting,
            **self.options(),
        )

        def above(rows: Array, columns: Array, value: float) -> Array:
            return np.asarray(posterior.probability(rows, columns, above=value))

        return Fitted(posterior.predict, above)


class Ordinal(Posterior):
    """Our sampler with learned cut points between the levels of the ratings."""

    name = "nmd.sample, Ordinal"

    def options(self) -> dict[str, Any]:
        return {"loss": nmd.losses.Ordinal()}


OURS: tuple[Method, ...] = (Offsets(), Tuned(), Default(), Posterior(), Ordinal())
