"""Equivalent forms of the components of a fit, and the share that each of them explains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self, cast, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import minimize

from nmd_lab._runtime.checks import check_word
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import COMPONENT

from .factors import Factors
from .rankings import main_columns

Rotation = Literal["size", "svd", "varimax", "quartimax"]

SIMPLICITY = {"varimax": 1.0, "quartimax": 0.0}
"""Weight of the spread within a component in the criterion of each orthogonal rotation."""

PROMAX = 4  # power of the loadings of varimax to which promax turns

MAX_ITER = 1000  # largest number of iterations for an orthogonal rotation
TOL = 1e-12  # relative increase of the criterion below which the iteration ends


class Components(Factors):
    """The components of a fit: their forms, shares and main columns."""

    def top_of_components(self, k: int = 10) -> xr.DataArray:
        """Return the k columns with the numbers of largest size in each row of H, the main terms.

        Parameters
        ----------
        k : int, default 10
            Number of columns.

        Returns
        -------
        xarray.DataArray (rank, k)
            Numbers of H along `component` and `place` (1 has the largest absolute value), with the
            labels of the columns as coordinates.  The coordinate `position` has the positions of
            the columns, and `explained` the share of each component in WH: ⟨w h, WH⟩ / ‖WH‖², where
            w h is its term of WH.  The shares have the sum 1; for orthogonal components, as after
            ``rotate("svd")``, they are ‖w h‖² / ‖WH‖², and a component that others cancel may have
            a negative one.  Offsets and f do not count.

        Raises
        ------
        TypeError, ValueError
            If `k` is invalid.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> fit = nmd.decompose(wine / wine.std(), 3, w_constraint="nonnegative", random_state=0)
        >>> top = fit.top_of_components(k=2)
        >>> top.column.shape, round(float(top.explained.sum()), 6)
        ((3, 2), 1.0)
        """
        top = main_columns(self._labels, self.H, k)
        return top.assign_coords(explained=(COMPONENT, self._explained()))

    def rotate(self, method: Rotation = "size") -> Self:
        """Return the fit with its components in a canonical form; WH stays the same.

        A fit leaves order, signs and scales of its components open, and often more: W M and M⁻¹ H
        have the same product for every invertible M.  In each form below the components are ordered
        by the size of their term w h of WH, largest first, and the entry of largest absolute value
        of each row of H is positive.

        Parameters
        ----------
        method : {"size", "svd", "varimax", "quartimax"}, default "size"
            "size": only the order and the signs change.  "svd": the singular value decomposition of
            WH, with orthonormal rows of H, and orthogonal columns of W whose norms are the singular
            values.  "varimax": the rows of H of "svd", rotated so that each has few large entries;
            they stay orthonormal.  "quartimax": likewise, so that each column of H has few large
            entries.

        Returns
        -------
        Decomposition
            Fit with the new W and H.  Offsets, predictions and errors are those of this fit, up to
            rounding.  Under a ridge (alpha > 0) the forms other than "size" change the norms of the
            factors: `objective` has the new ones, `parameters` lacks the optimality, and `fold_in`
            weighs its own ridge anew.

        Raises
        ------
        ValueError
            If the method is unknown.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> digits = nmd.datasets.digits(100)
        >>> fit = nmd.decompose(digits, 5, "relu", random_state=0)
        >>> svd = fit.rotate("svd")
        >>> bool(np.allclose(svd.H @ svd.H.rename(component="other"), np.eye(5)))
        True
        >>> bool(np.allclose(svd.reconstruct(), fit.reconstruct()))
        True
        """
        check_word("method", method, get_args(Rotation))
        W, H = self._factors
        W, H = W.astype(np.float64), H.astype(np.float64)
        if method != "size":
            W, H = _svd(W, H)
        if method in SIMPLICITY:
            R = orthogonal_rotation(H.T, SIMPLICITY[method])
            W, H = W @ R, R.T @ H
        W, H = _ordered(W, H)
        return cast(Self, _with_factors(self, W, H, rescaled=method != "size"))

    def _explained(self) -> FloatArray:
        """Return the share of each component in WH."""
        # The shares do not depend on the size of W and H, whose squares may underflow.
        W, H = (
            factor.astype(np.float64) / (float(np.abs(factor).max()) or 1.0)
            for factor in self._factors
        )
        overlaps = (W.T @ W) * (H @ H.T)
        total = float(overlaps.sum())
        return overlaps.sum(axis=1) / total if total > 0 else np.zeros(self.rank)


def _svd(W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return U S and Vᵀ of the singular value decomposition of WH, without forming WH."""
    Q_W, R_W = np.linalg.qr(W)
    Q_H, R_H = np.linalg.qr(H.T)
    U, sizes, Vt = np.linalg.svd(R_W @ R_H.T, full_matrices=False)
    return (Q_W @ U) * sizes, Vt @ Q_H.T


def orthogonal_rotation(loadings: FloatArray, weight: float) -> NDArray[np.float64]:
    """Return the rotation R for which loadings @ R has the largest sum of fourth powers."""
    n, rank = loadings.shape
    R, reached = np.eye(rank), 0.0
    for _ in range(MAX_ITER):
        rotated = loadings @ R
        gradient = rotated**3 - weight / n * rotated * np.sum(rotated**2, axis=0)
        U, sizes, Vt = np.linalg.svd(loadings.T @ gradient)
        R, before, reached = U @ Vt, reached, float(sizes.sum())
        if reached <= before * (1 + TOL):
            break
    return R


def oblimin_rotation(loadings: FloatArray) -> NDArray[np.float64]:
    """Return T of unit columns for which the loadings (T')⁻¹ share their squares the least.

    The criterion of direct oblimin with γ = 0: the sum over pairs of columns of ⟨l², k²⟩ / 2.  The
    columns of T are the factors in coordinates where they began as orthogonal ones.
    """
    rank = loadings.shape[1]

    def columns(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        sizes = np.linalg.norm(x.reshape(rank, rank), axis=0)
        return x.reshape(rank, rank) / sizes, sizes

    def criterion(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        T, sizes = columns(x)
        back = np.linalg.inv(T).T
        rotated = loadings @ back
        others = np.sum(rotated**2, axis=1, keepdims=True) - rotated**2
        gradient = -back @ (rotated * others).T @ rotated
        value = float(np.sum(rotated**2 * others)) / 4
        return value, (gradient - T * np.sum(T * gradient, axis=0)).ravel() / np.tile(sizes, rank)

    found = minimize(
        criterion,
        np.eye(rank).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MAX_ITER, "gtol": TOL, "ftol": TOL},
    )
    return columns(found.x)[0]


def promax_rotation(loadings: FloatArray) -> NDArray[np.float64]:
    """Return T of unit columns for which the loadings (T')⁻¹ are nearest to powers of varimax ones.

    The target is l |l|³ for each loading l of varimax, which leaves the large ones and makes small
    ones smaller.
    """
    R = orthogonal_rotation(loadings, SIMPLICITY["varimax"])
    simple = loadings @ R
    nearest, *_ = np.linalg.lstsq(simple, simple * np.abs(simple) ** (PROMAX - 1))
    T = np.linalg.inv(R @ nearest).T
    unit: NDArray[np.float64] = T / np.linalg.norm(T, axis=0)
    return unit


OBLIQUE = {"oblimin": oblimin_rotation, "promax": promax_rotation}
"""Rotations to factors that may correlate."""


def _ordered(W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the components from the largest to the smallest, with canonical signs."""
    sizes = np.linalg.norm(W, axis=0) * np.linalg.norm(H, axis=1)
    order = np.argsort(-sizes, kind="stable")
    W, H = W[:, order], H[order]
    largest = np.take_along_axis(H, np.argmax(np.abs(H), axis=1)[:, None], axis=1).ravel()
    signs = np.where(largest < 0, -1.0, 1.0)
    return W * signs, H * signs[:, None]


def _with_factors(fit: Any, W: FloatArray, H: FloatArray, *, rescaled: bool) -> Any:
    """Return the fit with other factors in its own precision."""
    dtype = fit.W.dtype
    W, H = W.astype(dtype), H.astype(dtype)
    labelled_W, labelled_H = fit._labels.label_factors(W, H)
    parameters = dict(fit.parameters)
    alpha = float(parameters.get("alpha", 0.0))
    if rescaled and alpha > 0:
        before, after = (
            sum(float(np.sum(np.square(factor, dtype=np.float64))) for factor in factors)
            for factors in (fit._factors, (W, H))
        )
        parameters["objective"] = fit.objective + alpha / 2 * (after - before)
        parameters.pop("optimality", None)
    return replace(fit, W=labelled_W, H=labelled_H, parameters=parameters)
