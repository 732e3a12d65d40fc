"""Libraries that complete ratings, and ours, in one calling form.

Each has a name, the settings to choose from, the numbers of iterations to choose from, and `fit`,
which returns a function that predicts at rows and columns.  All use one thread, rank 10, and a
seed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse

import nmd_lab as nmd

RANK = 10

Array = np.ndarray
Predict = Callable[[Array, Array], Array]


class Ours:
    name = "nmd_lab"
    package = "nmd_lab"
    settings: ClassVar[list[dict[str, Any]]] = [
        {"alpha": alpha, "nonlinearity": f}
        for alpha in (8, 10, 12, 15)
        for f in ("identity", "minmax")
    ]
    iterations = (2, 5, 10, 20, 30, 60)

    @staticmethod
    def fit(train: sparse.coo_array, iterations: int, alpha: float, nonlinearity: Any) -> Predict:
        if nonlinearity == "minmax":  # within the scale of the ratings
            nonlinearity = nmd.MinMax(float(train.data.min()), float(train.data.max()))
        return nmd.complete(
            train, RANK, nonlinearity, offsets="both", constraint="observed", alpha=alpha,
            max_iter=iterations, tol=0, random_state=0, threads=1, progress=False,
        ).predict  # fmt: skip


class CMFRec:
    name = "cmfrec"
    package = "cmfrec"
    settings: ClassVar[list[dict[str, Any]]] = [
        {"lambda_": strength, "use_cg": use_cg}
        for strength in (8, 10, 12, 15)
        for use_cg in (False, True)
    ]
    iterations = (2, 5, 10, 20, 30, 60)

    @staticmethod
    def fit(train: sparse.coo_array, iterations: int, **setting: Any) -> Predict:
        from cmfrec import CMF

        model = CMF(k=RANK, niter=iterations, nthreads=1, random_state=1, verbose=False, **setting)
        model.fit(sparse.coo_matrix(train))
        # Lines without a rating may hold any number here: let them fall back to the offsets.
        W, users = _where_rated(train.row, model.A_, model.user_bias_)
        H, items = _where_rated(train.col, model.B_, model.item_bias_)
        return _predictor(model.glob_mean_, users, items, W, H)


def _where_rated(lines: Array, factors: Array, biases: Array) -> tuple[Array, Array]:
    """Return factors and biases, zero for lines without a rating."""
    rated = np.bincount(lines, minlength=biases.size) > 0
    return np.where(rated[:, None], factors, 0), np.where(rated, biases, 0)


class LensKit:
    name = "lenskit ALS"
    package = "lenskit"
    settings: ClassVar[list[dict[str, Any]]] = [{"regularization": r} for r in (0.05, 0.1, 0.2)]
    iterations = (5, 10, 20)

    @staticmethod
    def fit(train: sparse.coo_array, iterations: int, **setting: Any) -> Predict:
        import torch
        from lenskit.als import BiasedMFScorer
        from lenskit.data import from_interactions_df

        torch.set_num_threads(1)
        table = {"user_id": train.row, "item_id": train.col, "rating": train.data}
        scorer = BiasedMFScorer(features=RANK, epochs=iterations, **setting)
        scorer.train(from_interactions_df(pd.DataFrame(table)))
        W, user_bias = _filled(scorer.bias.users, train.shape[0], scorer.user_embeddings,
                               scorer.bias.user_biases)  # fmt: skip
        H, item_bias = _filled(scorer.bias.items, train.shape[1], scorer.item_embeddings,
                               scorer.bias.item_biases)  # fmt: skip
        return _predictor(float(scorer.bias.global_bias), user_bias, item_bias, W, H)


def _filled(vocabulary: Any, size: int, factors: Any, biases: Any) -> tuple[Array, Array]:
    """Return factors and biases of all lines, zero for those without a rating."""
    numbers = vocabulary.numbers(np.arange(size), missing="negative")
    known = numbers >= 0
    all_factors, all_biases = np.zeros((size, RANK)), np.zeros(size)
    all_factors[known] = np.asarray(factors)[numbers[known]]
    all_biases[known] = np.asarray(biases)[numbers[known]]
    return all_factors, all_biases


class Surprise:
    name = "scikit-surprise SVD"
    package = "surprise"
    settings: ClassVar[list[dict[str, Any]]] = [{"reg_all": reg} for reg in (0.02, 0.05, 0.1)]
    iterations = (10, 20, 40)

    @staticmethod
    def fit(train: sparse.coo_array, iterations: int, **setting: Any) -> Predict:
        from surprise import SVD, Dataset, Reader

        scale = (float(train.data.min()), float(train.data.max()))
        table = pd.DataFrame({"user": train.row, "item": train.col, "rating": train.data})
        data = Dataset.load_from_df(table, Reader(rating_scale=scale)).build_full_trainset()
        model = SVD(n_factors=RANK, n_epochs=iterations, random_state=0, **setting).fit(data)
        W, H = np.zeros((train.shape[0], RANK)), np.zeros((train.shape[1], RANK))
        users, items = np.zeros(train.shape[0]), np.zeros(train.shape[1])
        for inner in data.all_users():
            W[data.to_raw_uid(inner)], users[data.to_raw_uid(inner)] = (
                model.pu[inner],
                model.bu[inner],
            )
        for inner in data.all_items():
            H[data.to_raw_iid(inner)], items[data.to_raw_iid(inner)] = (
                model.qi[inner],
                model.bi[inner],
            )
        return _predictor(data.global_mean, users, items, W, H)


def _predictor(mean: float, users: Array, items: Array, W: Array, H: Array) -> Predict:
    def predict(rows: Array, columns: Array) -> Array:
        products = np.einsum("pk,pk->p", W[rows], H[columns])
        return mean + users[rows] + items[columns] + products

    return predict


METHODS: dict[str, Any] = {method.name: method for method in (Ours, CMFRec, LensKit, Surprise)}


def installed(name: str) -> bool:
    """Return whether a method's package can be imported."""
    return importlib.util.find_spec(METHODS[name].package) is not None
