"""Rotations of components; correlations of the columns of T, and loadings of a few factors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import minimize

from nmd_lab._runtime.checks import check_integer, check_word
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import COMPONENT, Labels

from .draws import Draws
from .fold_in import rows_of
from .predict import TINY, main_columns, tails_of
from .predictive import Array

SIMPLICITY = {"varimax": 1.0, "quartimax": 0.0}
"""Weight of the spread within a component in the criterion of each orthogonal rotation."""

MAX_ITER = 1000  # largest number of iterations for an orthogonal rotation
TOL = 1e-12  # relative increase of the criterion below which the iteration ends


Rotation = Literal["size", "svd", "varimax", "quartimax"]
"""Canonical forms of the components of a fit."""


def canonical_form(W: FloatArray, H: FloatArray, method: str) -> tuple[FloatArray, FloatArray]:
    """Return W and H with the same product, in a form of `Decomposition.rotate`."""
    W, H = W.astype(np.float64), H.astype(np.float64)
    if method != "size":
        W, H = _svd(W, H)
    if method in SIMPLICITY:
        R = orthogonal_rotation(H.T, SIMPLICITY[method])
        W, H = W @ R, R.T @ H
    order = np.argsort(-np.linalg.norm(W, axis=0) * np.linalg.norm(H, axis=1), kind="stable")
    return _with_signs(W[:, order], H[order])


def rotate(fit: Any, method: str) -> Any:
    """Return a fit with its components in a canonical form; see `Decomposition.rotate`."""
    check_word("method", method, get_args(Rotation))
    W, H = fit._factors
    W, H = (each.astype(W.dtype) for each in canonical_form(W, H, method))
    factors = {"W": fit._labels.label_rows(W), "H": fit._labels.label_columns(H)}
    parameters = dict(fit.parameters)
    alpha = float(parameters.get("alpha", 0.0))
    if method != "size" and alpha > 0:
        before, after = (
            sum(float(np.sum(np.square(factor, dtype=np.float64))) for factor in factors)
            for factors in (fit._factors, (W, H))
        )
        parameters["objective"] = fit.objective + alpha / 2 * (after - before)
        parameters.pop("optimality", None)
    return replace(fit, **factors, parameters=parameters)


def main_components(fit: Any, k: int) -> xr.DataArray:
    """Return the main columns of each row of H; see `Decomposition.top_of_components`."""
    # Fractions of components do not depend on the size of W and H, whose squares may underflow
    W, H = (f.astype(np.float64) / (float(np.abs(f).max()) or 1.0) for f in fit._factors)
    overlaps = (W.T @ W) * (H @ H.T)
    shares, total = overlaps.sum(axis=1), float(overlaps.sum())
    shares = shares / total if total > 0 else np.zeros_like(shares)
    return main_columns(fit._labels, fit.H, k).assign_coords(explained=(COMPONENT, shares))


def _svd(W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return U S and Vᵀ of the singular value decomposition of WH, without forming WH."""
    Q_W, R_W = np.linalg.qr(W)
    Q_H, R_H = np.linalg.qr(H.T)
    U, sizes, Vt = np.linalg.svd(R_W @ R_H.T, full_matrices=False)
    return (Q_W @ U) * sizes, Vt @ Q_H.T


def _with_signs(W: FloatArray, H: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return W and H with the same product, where the largest entry of a row of H is positive."""
    signs = np.where(np.max(H, axis=1) < np.max(-H, axis=1), -1.0, 1.0)
    return W * signs, H * signs[:, None]


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
    # Promax turns to the fourth power of the loadings of varimax, with their signs.
    nearest, *_ = np.linalg.lstsq(simple, simple * np.abs(simple) ** 3)
    T = np.linalg.inv(R @ nearest).T
    return np.asarray(T / np.linalg.norm(T, axis=0))


OBLIQUE = {"oblimin": oblimin_rotation, "promax": promax_rotation}
"""Rotations to factors that may correlate."""


def latent_correlations(draws: Draws, labels: Labels, level: float) -> xr.Dataset:
    """Return mean and interval of the correlation of each pair of columns, with labels."""
    standard, tails = standardised_loadings(draws), tails_of(level)
    n = standard.shape[1]
    moments = np.empty((3, n, n))
    for column in range(n):
        r = np.matvec(standard, standard[:, column])
        r[:, column] = 1.0  # a column with itself, noise included
        moments[:, column] = r.mean(axis=0), *np.quantile(r, tails, axis=0)
    of_columns = labels.labelled(np.empty(n), labels.columns)
    second = of_columns.rename(
        {name: f"{name}_" for name in {*of_columns.dims, *of_columns.coords}}
    )
    dims, shape = (*of_columns.dims, *second.dims), (*of_columns.shape, *second.shape)
    arrays = zip(("mean", "low", "high"), moments, strict=True)
    variables = {name: (dims, values.reshape(shape)) for name, values in arrays}
    return xr.Dataset(variables, {**of_columns.coords, **second.coords}, {"level": level})


def standardised_loadings(draws: Draws) -> Array:
    """Return G (draws, n, d) whose G G' has the correlations off its diagonal."""
    covariances = draws.row_prior.covariances
    loadings = draws.H.astype(np.float64)
    if "row_offsets" in draws.numbers:  # its partner in H is one
        loadings = np.concatenate([loadings, np.ones((*loadings.shape[:2], 1))], axis=2)
    scaled: Array = loadings @ np.linalg.cholesky(covariances)
    rho = draws.numbers["rho"].astype(np.float64)
    scaled /= np.sqrt(np.sum(np.square(scaled), axis=2) + 1 / rho)[:, :, None]
    return scaled


FactorRotation = Literal["none", "varimax", "oblimin", "promax"]
"""How factors are turned."""

MIN_SQUARES = 0.03  # sum of the squares of the loadings of a negligible component


FactorDraws = tuple[Array, Array, Array]
"""A few factors in each draw, the same ones in all: standardised loadings (draws, n, factors);
turns (draws, d, factors), so that scores are standardised rows of W times these; and correlations
of the factors."""


def factor_draws(draws: Draws, factors: int | None, rotation: str) -> FactorDraws:
    """Return the factors of each draw: those of its correlations, turned to those of the mean."""
    check_word("rotation", rotation, get_args(FactorRotation))
    factors = None if factors is None else check_integer("factors", factors, 1)
    G = standardised_loadings(draws)
    n, d = G.shape[1:]
    if n < 2:
        raise ValueError(
            "X has 1 column, which shares no factor with others: draw with more columns."
        )
    most = min(d, n - 1)
    if factors is not None and factors > most:
        raise ValueError(
            f"factors={factors} is too large for {n} columns and draws with {d} components: give "
            f"at most {most}."
        )
    reference = _reference(G, factors)
    loadings = common_factors(G, G @ _nearest_rotation(G.mT @ reference))
    loadings = loadings @ _nearest_rotation(loadings.mT @ reference)
    turns = _nearest_rotation(np.linalg.solve(G.mT @ G + MIN_SQUARES * np.eye(d), G.mT @ loadings))
    return _rotated(loadings, turns, rotation)


def _reference(G: Array, factors: int | None) -> Array:
    """Return the principal axes of the common factors of the mean correlations.

    Without a number of factors, it is the smallest one that leaves of the mean correlations less
    than their standard deviation over the draws, in the root mean square over all pairs of columns.
    """
    n, d = G.shape[1:]
    total, squares = np.zeros((n, n)), np.zeros((n, n))
    for loadings in G:
        products = loadings @ loadings.T
        total += products
        squares += products**2
    mean = total / len(G)
    values, vectors = np.linalg.eigh(mean)
    root = (vectors * np.sqrt(np.maximum(values, 0)))[None]
    pairs = ~np.eye(n, dtype=bool)
    unsure = float(np.sum((squares / len(G) - mean**2)[pairs]))
    for count in [factors] if factors is not None else range(1, min(d, n - 1) + 1):
        found = common_factors(root, _principal_axes(mean, count)[None])[0]
        if float(np.sum((mean - found @ found.T)[pairs] ** 2)) <= unsure:
            break
    return np.asarray(found @ np.linalg.svd(found, full_matrices=False)[2].T)


def _principal_axes(common: Array, factors: int) -> Array:
    """Return the principal axes where the communality of a column is that by all others.

    That is the squared multiple correlation, a lower bound of the communality (Guttman, 1956).
    """
    correlations = common.copy()
    np.fill_diagonal(correlations, 1.0)
    reduced = correlations.copy()
    np.fill_diagonal(reduced, 1 - 1 / np.diag(np.linalg.pinv(correlations, hermitian=True)))
    values, vectors = np.linalg.eigh(reduced)
    return np.asarray((vectors * np.sqrt(np.maximum(values, MIN_SQUARES**2)))[:, ::-1][:, :factors])


def common_factors(G: Array, L: Array) -> Array:
    """Return L (..., n, k) whose L L' is nearest to G G' off the diagonal, from a start near it.

    Components of G that only one column has count for nothing.  A column has at most the
    communality that G gives it.
    """
    most = np.sum(G**2, axis=-1, keepdims=True)
    for _ in range(500):
        gram, communality = L.mT @ L, np.sum(L**2, axis=-1, keepdims=True)
        gradient = G @ (G.mT @ L) - (most - communality) * L - L @ gram
        # More than a quarter of any negative eigenvalue is added, so that none grows.
        moved = L + 0.5 * gradient @ np.linalg.inv(gram + 0.25 * np.eye(L.shape[-1]))
        beyond = np.sum(moved**2, axis=-1, keepdims=True) / np.maximum(most, TINY)
        moved /= np.sqrt(np.maximum(beyond, 1.0))
        change, L = np.abs(moved - L).max(), moved
        if change < 1e-5:  # of a loading
            break
    return L


def _rotated(loadings: Array, turns: Array, rotation: str) -> FactorDraws:
    """Return the factors in the rotation that suits their mean loadings, largest first."""
    mean = loadings.mean(axis=0)
    k = mean.shape[1]
    turn: FloatArray = np.eye(k)
    if rotation != "none" and k > 1:
        turn = orthogonal_rotation(mean, SIMPLICITY["varimax"])
    if rotation in OBLIQUE and k > 1:
        turn = turn @ OBLIQUE[rotation](mean @ turn)
    pattern = mean @ np.linalg.inv(turn).T
    shares = np.sum(pattern * (pattern @ (turn.T @ turn)), axis=0)
    turn = _with_signs(turn, pattern.T)[0][:, np.argsort(-shares, kind="stable")]
    return loadings @ np.linalg.inv(turn).T, turns @ turn, turn.T @ turn


def _nearest_rotation(matrix: FloatArray) -> Array:
    """Return the matrix with orthonormal columns that is nearest to a matrix."""
    U, _, Vt = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(U @ Vt)


OTHER = f"{COMPONENT}_"
"""Dimension of the second of two factors."""

NAMES = {
    *("loading", "low", "high", "communality", "communality_low", "communality_high"),
    *("share", "factor_correlation", OTHER, "mean", "sd"),
}
"""Names that dimensions and coordinates of X do not have in the results."""


def labelled_loadings(
    draws: Draws, labels: Labels, factors: int | None, rotation: str, level: float
) -> xr.Dataset:
    """Return loadings and communalities along the columns of X; see `Posterior.loadings`."""
    tails, (loadings, _, correlation) = tails_of(level), factor_draws(draws, factors, rotation)
    # Correlated factors share what they explain together, l Φ l', in equal parts.
    mean, common = loadings.mean(axis=0), np.sum(loadings * (loadings @ correlation), axis=2)
    labels = labels.rename(labels.clashes(NAMES))
    of_both = (*labels.columns, COMPONENT)
    variables: dict[str, Any] = {}
    for names, values, dims in (
        (("loading", "low", "high"), loadings, of_both),
        (("communality", "communality_low", "communality_high"), common, of_both[:-1]),
    ):
        moments = [values.mean(axis=0), *np.quantile(values, tails, axis=0)]
        for name, moment in zip(names, moments, strict=True):
            variables[name] = labels.labelled(moment, dims)
    variables["share"] = COMPONENT, np.mean(mean * (mean @ correlation), axis=0)
    variables["factor_correlation"] = (COMPONENT, OTHER), correlation
    counts = {OTHER: np.arange(len(correlation))}
    return xr.Dataset(variables, counts, {"rotation": rotation, "level": level})


def labelled_scores(posterior: Any, X: Any, factors: int | None, rotation: str) -> xr.Dataset:
    """Return where rows stand on the factors; see `Posterior.factor_scores`."""
    draws, labels = posterior._draws, posterior._labels
    (_, turns, _), at = factor_draws(draws, factors, rotation), np.arange(draws.shape[0])
    if X is not None:
        _, draws, data = rows_of(posterior, X, enough=len(draws))
        labels, at = data.observations.labels, data.rows
    labels = labels.rename(labels.clashes(NAMES))
    prior = draws.row_prior
    weights = np.linalg.solve(np.linalg.cholesky(prior.covariances).mT, turns)
    scores = (draws.row_vectors[:, at] - prior.centres[:, None]) @ weights
    moments = {"mean": scores.mean(axis=0), "sd": scores.std(axis=0)}
    return xr.Dataset({name: labels.label_rows(values) for name, values in moments.items()})


def main_loadings(posterior: Any, k: int, factors: int | None, rotation: str) -> xr.DataArray:
    """Return the largest loadings of each factor; see `Posterior.top_of_components`."""
    k, (loadings, *_) = check_integer("k", k, 1), factor_draws(posterior._draws, factors, rotation)
    mean = posterior._labels.label_columns(loadings.mean(axis=0).T)
    return main_columns(posterior._labels, mean.rename("loading"), k)
