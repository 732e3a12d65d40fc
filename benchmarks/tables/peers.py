"""Imputers of other packages, with what each of them gives: points, fractions of classes, draws.

- KNN: the rule of scikit-learn's KNNImputer; k of 5, 10, 20, 40 and weights, equal or 1/distance,
  by a tenth of the known cells.  Probabilities: the weights of the neighbours.
- IterativeImputer with its Bayesian ridge, on K - 1 indicators of K classes, since K are collinear;
  20 copies by `sample_posterior=True`, of 5 rounds each.
- Trees: IterativeImputer with 50 extremely randomised trees, 4 rounds (the idea of MissForest).
  Then a classifier of 100 such trees learns each column of levels or classes from the others, as
  they were filled, and a quantile forest of 100 such trees the ends of the intervals of numbers.
- gcimpute: a Gaussian copula, on K - 1 indicators of K classes.  That of low rank has its rank of
  2, 4, 7 by a tenth of the cells, and no draws: `sample_imputation` of gcimpute 0.0.4 ends there in
  a NameError.
- vbpca_py: variational PCA; its rank of 2, 4, 7 by a tenth of the cells.  Copies: its means, with
  independent normal errors of its predictive variance.
- MixedImputer: chained gradient-boosted trees, without copies.
- miceforest: chained equations with gradient-boosted trees and mean matching, 5 rounds, 10 copies.
- mice of R: chained equations with predictive mean matching (pmm) or trees (cart) for all columns,
  5 rounds, 20 copies with pmm and 10 with cart.  In tables of more than 40 columns a column is
  predicted by those that correlate with it by 0.2 or more (`quickpred`).  Where pmm ends in a
  singular matrix, its ridge is 0.001.

Numbers are standardised, levels are their positions, and classes indicators.  Where a method has
draws and no probabilities, these are the fractions of the draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.metrics.pairwise import nan_euclidean_distances

from .data import Encoding, codes, kind_of, n_classes
from .methods import DRAWS, Method, answer_of, from_draws, marginal, numbers, ours, points
from .scores import LEVEL, Answer
from .with_r import mice_cart, mice_pmm

Array = np.ndarray

NEIGHBOURS, RANKS, CHOICE = (5, 10, 20, 40), (2, 4, 7), 0.1
MOST_FEATURES = 40
"""Encoded columns up to which IterativeImputer uses all; of more it takes the 30 nearest."""
MICE_COPIES, MICE_ROUNDS, ITERATIVE_COPIES, DRAW_ROUNDS = 10, 5, 20, 5


def held_out(Z: Array, seed: int) -> Array:
    """Return a tenth of the known cells of an encoded table, which choose a setting."""
    return (np.random.default_rng([1, seed]).random(Z.shape) < CHOICE) & ~np.isnan(Z)


def neighbours(seen: pd.DataFrame, seed: int) -> Answer:
    """Answer with the nearest neighbours."""
    encoding = Encoding(seen)
    Z, test = encoding.Z, held_out(encoding.Z, seed)
    without = np.where(test, np.nan, Z)
    ways = [(k, is_weighted) for k in NEIGHBOURS for is_weighted in (False, True)]
    errors = [np.mean((by_neighbours(without, without, *way) - Z)[test] ** 2) for way in ways]
    best = ways[int(np.argmin(errors))]
    shares = {}
    for name in seen:
        if kind_of(seen[name]) != "number":
            values = codes(seen[name])
            each = (values[:, None] == np.arange(n_classes(seen[name]))).astype(float)
            each[np.isnan(values)] = np.nan
            shares[name] = by_neighbours(Z, each, *best)
    return answer_of(seen, numbers(encoding, seen, by_neighbours(Z, Z, *best)), shares)


def by_neighbours(Z: Array, values: Array, k: int, is_weighted: bool) -> Array:
    """Return columns of values (n, q) with their NaN filled by the k nearest rows of Z."""
    distances = np.nan_to_num(nan_euclidean_distances(Z), nan=np.inf)
    filled = values.copy()
    for j in range(values.shape[1]):
        is_known = ~np.isnan(values[:, j])
        donors, rows = np.flatnonzero(is_known), np.flatnonzero(~is_known)
        near = distances[np.ix_(rows, donors)]
        best = np.argsort(near, axis=1, kind="stable")[:, :k]
        weights = np.ones(best.shape)
        if is_weighted:
            weights = 1 / np.maximum(np.take_along_axis(near, best, axis=1), 1e-7)
            weights[weights.sum(axis=1) == 0] = 1  # a row that shares no column with another
        filled[rows, j] = np.average(values[donors, j][best], axis=1, weights=weights)
    return filled


def iterative(seen: pd.DataFrame, seed: int) -> Answer:
    """Answer with IterativeImputer, and with copies of it."""
    encoding = Encoding(seen)
    Z = np.delete(encoding.Z, last_indicators(seen), axis=1)
    near = None if Z.shape[1] <= MOST_FEATURES else 30
    options: dict[str, Any] = {"n_nearest_features": near, "keep_empty_features": True}

    def filled(state: int) -> Array:
        values = IterativeImputer(random_state=state, **options).fit_transform(Z)
        return with_last(encoding, seen, values)

    point = filled(seed)
    options |= {"sample_posterior": True, "max_iter": DRAW_ROUNDS}
    draws = [filled(1000 * seed + k) for k in range(ITERATIVE_COPIES)]
    return from_draws(seen, np.stack(draws), point)


def last_indicators(seen: pd.DataFrame) -> list[int]:
    """Return the position of the last indicator of each class: the K of a column are collinear."""
    encoding = Encoding(seen)
    return [int(encoding.at(name)[-1]) for name in seen if kind_of(seen[name]) == "class"]


def with_last(encoding: Encoding, seen: pd.DataFrame, values: Array) -> Array:
    """Return encoded numbers with the last indicator of each class: one less the others."""
    last = last_indicators(seen)
    Z = np.empty((len(values), encoding.mean.size))
    Z[:, np.setdiff1d(np.arange(encoding.mean.size), last)] = values
    for j in last:
        others = encoding.back(Z, encoding.names[j])[:, :-1]
        Z[:, j] = (1 - others.sum(axis=1) - encoding.mean[j]) / encoding.size[j]
    return Z


def trees(seen: pd.DataFrame, seed: int) -> Answer:
    """Answer with extremely randomised trees."""
    encoding = Encoding(seen)
    each = ExtraTreesRegressor(50, max_features=0.4, min_samples_leaf=2, random_state=seed)
    options: dict[str, Any] = {"max_iter": 4, "random_state": seed, "keep_empty_features": True}
    Z = IterativeImputer(each, **options).fit_transform(encoding.Z)
    p = {n: _by_trees(encoding, seen, Z, n, seed) for n in seen if kind_of(seen[n]) != "number"}
    ends = {n: _ends_by_trees(encoding, seen, Z, n, seed) for n in seen if n not in p}
    return answer_of(seen, numbers(encoding, seen, Z), p, intervals=ends)


def _by_trees(encoding: Encoding, seen: pd.DataFrame, Z: Array, name: str, seed: int) -> Array:
    """Return the probabilities (n, K) of a column, from all others as they were filled."""
    values, others = codes(seen[name]), np.delete(Z, encoding.at(name), axis=1)
    known = ~np.isnan(values)
    forest = ExtraTreesClassifier(100, max_features=0.4, min_samples_leaf=2, random_state=seed)
    forest.fit(others[known], values[known].astype(int))
    p = np.zeros((len(Z), n_classes(seen[name])))
    p[:, forest.classes_] = forest.predict_proba(others)
    return p


def _ends_by_trees(encoding: Encoding, seen: pd.DataFrame, Z: Array, name: str, seed: int) -> Array:
    """Return the ends (n, 2) of the intervals of a column, from all others as they were filled."""
    from quantile_forest import ExtraTreesQuantileRegressor

    values, others = codes(seen[name]), np.delete(Z, encoding.at(name), axis=1)
    known = ~np.isnan(values)
    forest = ExtraTreesQuantileRegressor(
        100, max_features=0.4, min_samples_leaf=2, random_state=seed
    )
    forest.fit(others[known], values[known])
    return np.asarray(forest.predict(others, quantiles=[(1 - LEVEL) / 2, (1 + LEVEL) / 2]))


def copula(seen: pd.DataFrame, seed: int) -> Answer:
    """Answer with the Gaussian copula of gcimpute, whose marginals want the units of the table.

    It finds out itself which columns are numbers.  Where it takes one with many equal values for
    levels, and ends in an error at a value that is not among them, it is told.
    """
    from gcimpute.gaussian_copula import GaussianCopula

    encoding, last = Encoding(seen), last_indicators(seen)
    kept = np.setdiff1d(np.arange(encoding.mean.size), last)
    is_number = np.array([kind_of(seen[encoding.names[k]]) == "number" for k in kept])
    kinds = {"continuous": np.flatnonzero(is_number), "ordinal": np.flatnonzero(~is_number)}
    raw, model = encoding.raw[:, kept], GaussianCopula(random_state=seed)
    try:
        point = model.fit_transform(raw)
    except Exception:
        model = GaussianCopula(random_state=seed)
        point = model.fit_transform(raw, **kinds)

    def encoded(raw: Array) -> Array:
        return with_last(encoding, seen, (raw - encoding.mean[kept]) / encoding.size[kept])

    draws = np.moveaxis(model.sample_imputation(num=DRAWS), 2, 0)
    return from_draws(seen, np.stack([encoded(each) for each in draws]), encoded(point))


def low_rank_copula(seen: pd.DataFrame, seed: int) -> Answer:
    """Answer with the copula of low rank of gcimpute, whose draws end in a NameError."""
    from gcimpute.low_rank_gaussian_copula import LowRankGaussianCopula

    encoding = Encoding(seen)

    def filled(raw: Array, rank: int) -> Array:
        return encoding.standard(LowRankGaussianCopula(rank, random_state=seed).fit_transform(raw))

    test, errors = held_out(encoding.Z, seed), {}
    for rank in RANKS:
        with suppress(Exception):  # some ranks fail on some tables
            of_test = filled(np.where(test, np.nan, encoding.raw), rank)[test]
            errors[rank] = np.mean((of_test - encoding.Z[test]) ** 2)
    best = min(errors, key=errors.__getitem__)
    return Answer(points(encoding, seen, filled(encoding.raw, best)), {})


def variational_pca(seen: pd.DataFrame, seed: int) -> Answer:
    """Answer with variational PCA, and with its means and predictive variances."""
    from vbpca_py import VBPCA

    encoding = Encoding(seen)
    Z, test = encoding.Z, held_out(encoding.Z, seed)

    def fitted(values: Array, rank: int) -> Any:
        return VBPCA(rank, random_state=seed, num_cpu=1, runtime_tuning="off").fit(values)

    without = np.where(test, np.nan, Z)
    errors = {
        rank: np.mean((fitted(without, rank).reconstruction_ - Z)[test] ** 2)
        for rank in RANKS if rank < min(Z.shape)
    }  # fmt: skip
    model = fitted(Z, min(errors, key=errors.__getitem__))
    mean, size = model.reconstruction_, np.sqrt(model.predictive_variance_)
    rng = np.random.default_rng([2, seed])
    draws = mean + size * rng.normal(size=(DRAWS, *Z.shape))
    return from_draws(seen, np.where(np.isnan(Z), draws, Z), np.where(np.isnan(Z), mean, Z))


def mixed_imputer(seen: pd.DataFrame, seed: int) -> Answer:
    """Answer with MixedImputer, whose classes are words."""
    from mixedimputer import MixedImputer

    table = pd.DataFrame(index=seen.index)
    for k, name in enumerate(seen):
        values = codes(seen[name])
        is_known = ~np.isnan(values)
        if kind_of(seen[name]) in ("class", "yes"):
            words = np.array([f"c{v:.0f}" for v in np.nan_to_num(values)], dtype=object)
            values = np.where(is_known, words, None)
        table[f"x{k}"] = values
    filled = MixedImputer(random_state=seed).fit_transform(table)
    filled = pd.DataFrame(np.asarray(filled, dtype=object), columns=table.columns)
    points = {}
    for k, name in enumerate(seen):
        values = filled[f"x{k}"]
        if kind_of(seen[name]) in ("class", "yes"):
            values = values.str[1:]
        points[name] = values.to_numpy(dtype=float)
        if kind_of(seen[name]) == "level":
            points[name] = np.clip(points[name], 0, n_classes(seen[name]) - 1)
    return Answer(points, {})


def mice_forest(seen: pd.DataFrame, seed: int) -> Answer:
    """Answer with miceforest."""
    import miceforest

    table = seen.copy()
    for name in table:
        if kind_of(table[name]) == "yes":
            table[name] = table[name].astype(object).astype("category")
    table.columns = [f"c{k}" for k in range(table.shape[1])]
    kernel = miceforest.ImputationKernel(table, num_datasets=MICE_COPIES, random_state=seed)
    kernel.mice(MICE_ROUNDS, num_threads=1, verbose=False)
    encoding, draws = Encoding(seen), []
    for k in range(MICE_COPIES):
        copy = kernel.complete_data(k).set_axis(seen.columns, axis=1)
        draws.append(encoding.again(copy.astype(seen.dtypes.to_dict())))
    return from_draws(seen, np.stack(draws))


def old_names() -> None:
    """Give NumPy the names that gcimpute 0.0.4 asks for, which went with NumPy 2."""
    names = {"round_": "round", "float_": "float64", "product": "prod", "in1d": "isin"}
    for old, new in names.items():
        if not hasattr(np, old):
            setattr(np, old, getattr(np, new))


def quiet(fill: Callable[[pd.DataFrame, int], Answer]) -> Callable[[pd.DataFrame, int], Answer]:
    """Return a method without its warnings."""

    @wraps(fill)
    def filled(seen: pd.DataFrame, seed: int) -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            old_names()
            return fill(seen, seed)

    return filled


METHODS = {
    "nmd.sample": Method(ours),
    "mean, frequencies": Method(marginal),
    "KNN": Method(quiet(neighbours)),
    "IterativeImputer": Method(quiet(iterative)),
    "trees": Method(quiet(trees), ("quantile_forest",)),
    "gcimpute": Method(quiet(copula), ("gcimpute",)),
    "gcimpute, low rank": Method(quiet(low_rank_copula), ("gcimpute",)),
    "vbpca_py": Method(quiet(variational_pca), ("vbpca_py",)),
    "MixedImputer": Method(quiet(mixed_imputer), ("mixedimputer",)),
    "miceforest": Method(quiet(mice_forest), ("miceforest", "lightgbm")),
    "mice, pmm": Method(quiet(mice_pmm), programs=("Rscript",)),
    "mice, cart": Method(quiet(mice_cart), programs=("Rscript",)),
}
"""All methods by name, ours first."""
