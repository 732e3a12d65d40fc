"""Other libraries that predict ratings; each is left out where it is not installed."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse

from .methods import OFFSET_RIDGES, RANKS, RIDGES, SAMPLER_RANKS, Fitted, Method
from .problems import Array, Ratings


class Peer(Method):
    """A method of another library."""

    def available(self) -> bool:
        return importlib.util.find_spec(self.package) is not None


class CMFRec(Peer):
    """Alternating least squares of cmfrec, with a ridge of its own for the offsets."""

    name = "cmfrec"
    package = "cmfrec"
    requirement = "cmfrec"
    grid: ClassVar = {
        "alpha": RIDGES,
        "rank": RANKS,
        "offset_alpha": OFFSET_RIDGES,
        "n_iter": (5, 10, 30),
    }
    start: ClassVar = {"alpha": 9.0, "rank": 8, "offset_alpha": 3.0, "n_iter": 10}

    def fit(self, train: Ratings, seed: int, **setting: Any) -> Fitted:
        from cmfrec import CMF

        alpha, offset_alpha = setting["alpha"], setting["offset_alpha"]
        model = CMF(
            k=setting["rank"],
            lambda_=[offset_alpha, offset_alpha, alpha, alpha, 1.0, 1.0],
            niter=setting["n_iter"],
            nthreads=1,
            random_state=seed + 1,
            verbose=False,
        )
        X = train.tocoo()
        model.fit(sparse.coo_matrix(X))
        # Lines without a rating may hold any number here: they fall back to the offsets.
        W, b = _where_rated(X.row, model.A_, model.user_bias_)
        H, c = _where_rated(X.col, model.B_, model.item_bias_)
        return _products(model.glob_mean_, b, c, W, H)


class Surprise(Peer):
    """Stochastic gradient descent of scikit-surprise."""

    name = "Surprise SVD"
    package = "surprise"
    requirement = "scikit-surprise"
    grid: ClassVar = {
        "reg_all": (0.02, 0.04, 0.07, 0.1, 0.15),
        "n_factors": (5, 10, 20, 50, 100),
        "n_epochs": (10, 20, 40, 80),
        "lr_all": (0.0025, 0.005, 0.01),
    }
    start: ClassVar = {"reg_all": 0.07, "n_factors": 20, "n_epochs": 40, "lr_all": 0.005}

    def fit(self, train: Ratings, seed: int, **setting: Any) -> Fitted:
        from surprise import SVD, Dataset, Reader

        X = train.tocoo()
        scale = (float(X.data.min()), float(X.data.max()))
        table = pd.DataFrame({"user": X.row, "item": X.col, "rating": X.data})
        data = Dataset.load_from_df(table, Reader(rating_scale=scale)).build_full_trainset()
        model = SVD(random_state=seed, **setting).fit(data)
        rank = setting["n_factors"]
        W, b = np.zeros((X.shape[0], rank)), np.zeros(X.shape[0])
        H, c = np.zeros((X.shape[1], rank)), np.zeros(X.shape[1])
        users = [data.to_raw_uid(inner) for inner in data.all_users()]
        items = [data.to_raw_iid(inner) for inner in data.all_items()]
        W[users], b[users], H[items], c[items] = model.pu, model.bu, model.qi, model.bi
        return _products(data.global_mean, b, c, W, H)


class MyFM(Peer):
    """Gibbs sampling of a factorisation machine on one-hot users and items."""

    name = "myFM"
    package = "myfm"
    requirement = "myfm"
    grid: ClassVar = {"rank": SAMPLER_RANKS}
    start: ClassVar = {"rank": 10}
    is_sampler = True

    def fit(self, train: Ratings, seed: int, **setting: Any) -> Fitted:
        from myfm import MyFMRegressor

        X = train.tocoo()
        model = MyFMRegressor(rank=setting["rank"], random_seed=seed)
        _learn(model, X, X.data, setting)

        def predict(rows: Array, columns: Array) -> Array:
            return model.predict(one_hot(rows, columns, X.shape))

        return Fitted(predict)


class MyFMOrdinal(MyFM):
    """The same with an ordered probit model of the levels."""

    name = "myFM, ordinal"

    def fit(self, train: Ratings, seed: int, **setting: Any) -> Fitted:
        from myfm import MyFMOrderedProbit

        X = train.tocoo()
        levels, y = np.unique(X.data, return_inverse=True)
        model = MyFMOrderedProbit(rank=setting["rank"], random_seed=seed)
        _learn(model, X, y, setting)

        def probabilities(rows: Array, columns: Array) -> Array:
            return model.predict_proba(one_hot(rows, columns, X.shape))

        def above(rows: Array, columns: Array, value: float) -> Array:
            return probabilities(rows, columns)[:, levels > value].sum(axis=1)

        return Fitted(lambda rows, columns: probabilities(rows, columns) @ levels, above)


def one_hot(rows: Array, columns: Array, shape: tuple[int, int]) -> sparse.csr_matrix:
    """Return a matrix (n, shape[0] + shape[1]) with two ones a row: its user, and its item."""
    n = len(rows)
    places = np.column_stack([rows, np.asarray(columns) + shape[0]]).ravel()
    return sparse.csr_matrix(
        (np.ones(2 * n), places, np.arange(0, 2 * n + 1, 2)), shape=(n, sum(shape))
    )


def _learn(model: Any, X: sparse.coo_array, y: Array, setting: dict[str, Any]) -> None:
    """Run the sampler of myFM, with a prior for users and one for items."""
    with contextlib.redirect_stderr(io.StringIO()):  # its progress bar
        model.fit(
            one_hot(X.row, X.col, X.shape),
            y,
            group_shapes=list(X.shape),
            n_iter=setting["tune"] + setting["draws"],
            n_kept_samples=setting["draws"],
        )


def _where_rated(lines: Array, factors: Array, offsets: Array) -> tuple[Array, Array]:
    """Return factors and offsets, zero for lines without a rating."""
    rated = np.bincount(lines, minlength=offsets.size) > 0
    return np.where(rated[:, None], factors, 0), np.where(rated, offsets, 0)


def _products(mean: float, b: Array, c: Array, W: Array, H: Array) -> Fitted:
    def predict(rows: Array, columns: Array) -> Array:
        return mean + b[rows] + c[columns] + np.einsum("nr,nr->n", W[rows], H[columns])

    return Fitted(predict)


PEERS: tuple[Method, ...] = (CMFRec(), Surprise(), MyFM(), MyFMOrdinal())
