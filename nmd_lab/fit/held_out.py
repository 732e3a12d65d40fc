"""What `validation` holds out, for early stopping and for trials, and the errors there."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.checks import errors_about, new_stream
from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.data.folds import Fold, draw_folds, make_fold, row_folds, row_splits, split, without
from nmd_lab.data.inputs import at_observed, is_mask
from nmd_lab.data.matching import match_data
from nmd_lab.data.observations import Observations, row_ranges
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.units import facts_of
from nmd_lab.kernels.products import CsrStorage
from nmd_lab.model.loss import NORMAL, POISSON
from nmd_lab.model.model import Model
from nmd_lab.request.options import Options
from nmd_lab.request.settings import Choice

from .summary import DataSummary


def hold_out(known: DataSummary, X: Any, options: Options, rng: np.random.Generator) -> DataSummary:
    """Return what is known without what is held out; without empty rows in `decompose`."""
    choice: Choice = options.validation
    observations = known.observations
    if not choice.stops_early:
        folds, drawn = _folds_of_trials(observations, X, choice, new_stream(rng))
        return known._replace(folds=folds, drawn=drawn)
    rest, held_out = _out_of_the_fit(observations, X, choice, rng)
    if options.absent_are_zeros:
        refuse_empty(rest)
    held_out = held_out.as_sparse()
    facts, folds = facts_of(rest, by_column=known.facts.columns is not None), [Fold(rest, held_out)]
    return known._replace(observations=rest, facts=facts, held_out=held_out, folds=folds)


def _out_of_the_fit(
    observations: Observations, X: Any, choice: Choice, rng: np.random.Generator
) -> tuple[Observations, Any]:
    """Return the observations of the fit, and others that stop it early."""
    splitter = choice.splitter
    if choice.is_share:
        rest, held_out = split(observations, float(splitter), new_stream(rng))
        if not held_out.n_observed:
            raise ValueError(
                f"validation={splitter} holds out none of the {rest.n_observed} observed "
                "entries, since each row and column keeps one: give validation=None, or more data."
            )
        return rest, held_out
    if is_mask(splitter):
        hidden = _mask_of(observations, X, splitter, "validation")
        return observations.select(~hidden), observations.select(hidden)
    with errors_about("validation"):
        matched = match_data(observations.labels, splitter, owner="X")
    rest, held_out = without(observations, matched.as_sparse(observations.labels))
    if not rest.n_observed:
        raise ValueError(
            "validation holds out every observed entry of X: give fewer entries, or a fraction "
            "between 0 and 1."
        )
    return rest, held_out


def _folds_of_trials(
    observations: Observations, X: Any, choice: Choice, rng: np.random.Generator
) -> tuple[list[Fold], str]:
    """Return folds that judge the trials alone, and how they were drawn."""
    splitter = choice.splitter
    if choice.has_masks:
        masks = [
            _mask_of(observations, X, mask, f"splitter[{position}]")
            for position, mask in enumerate(splitter)
        ]
        return [make_fold(observations, mask) for mask in masks], "given"
    if choice.splits_rows:
        splits = row_splits(splitter, choice.groups, X, observations, rng)
        folds = row_folds(splits, observations, rng)
        if not folds:
            raise ValueError(
                f"splitter={splitter!r} holds out nothing, since each row and column keeps an "
                "entry: give fewer splits, or more data."
            )
        return folds, f"by {type(splitter).__name__}"
    return draw_folds(observations, rng, splitter)


def _mask_of(observations: Observations, X: Any, mask: Any, name: str) -> NDArray[np.bool_]:
    """Return a mask at the observed entries, of which it hides some."""
    if observations.remote:
        raise ValueError(f"{name} is a mask, and X is on workers: give a fraction of the entries.")
    hidden = at_observed(name, mask, X, observations)
    if hidden.all() or not hidden.any():
        every = "every" if hidden.all() else "no"
        raise ValueError(
            f"{name} holds out {every} observed entry of X: give a mask with True at some of them."
        )
    return hidden


def refuse_empty(observations: Observations) -> None:
    """Raise ValueError if a row or a column has no observed entry."""
    both = zip(("row", "column"), observations.empty_rows_and_columns(), strict=True)
    for name, empty in both:
        if empty.size:
            raise ValueError(
                f"X has no observed entry in {name} {empty[0]}: drop it, or use complete(), which "
                "lets it fall back to f of the offsets."
            )


@singledispatch
def score_of(held_out: Any, model: Model) -> Any:
    """Return what compares the model with held-out entries, None without any."""
    return None if held_out is None else HeldOut(held_out, model)


class HeldOut:
    """Observed entries that are not used in the fit; the model is compared with them."""

    def __init__(
        self, observations: SparseObservations, model: Model, rest: Observations | None = None
    ) -> None:
        self.model, self._floor = model, None
        plain = observations.limits is None and not model.is_mixed
        if rest is not None and plain and model.loss.noise_model == POISSON:
            self._floor = independent_means(rest, observations.rows, observations.indices)
        self.values: NDArray[Any] = observations.values
        weights = observations.weights
        self.limits = None if observations.exact.all() else observations.limits
        self.weights = np.ones(observations.values.size) if weights is None else weights
        self.storage = CsrStorage(observations.shape, observations.indptr, observations.indices)
        self.positions = observations.rows, observations.indices

    def rmse(self, W_aug: FloatArray, H_aug: FloatArray, model: Model | None = None) -> float:
        """Return the root mean squared error of the expected values.

        It is in the units of X; for several kinds, in those of each column.  Another model has
        learned parameters.
        """
        total, weight = self.squared_errors(W_aug, H_aug, model)
        return math.sqrt(total / weight)

    def squared_errors(
        self, W_aug: FloatArray, H_aug: FloatArray, model: Model | None = None
    ) -> tuple[float, float]:
        """Return the weighted sum of the squared errors, and the sum of the weights."""
        squares = self._squares(W_aug, H_aug, model)
        return float(np.sum(self.weights * squares)), float(np.sum(self.weights))

    def _squares(self, W_aug: FloatArray, H_aug: FloatArray, model: Model | None) -> FloatArray:
        """Return the squared error of each entry."""
        model, t = self.model if model is None else model, self.storage.all_products(W_aug, H_aug)
        expected, x = model.expected(t, *self.positions), self.values
        if self.limits is not None:  # those that the expected ones are nearest to
            x = self.limits.nearest(x, expected, self.model.limits.smallest)
        errors = model.in_units(x - expected, *self.positions)
        return np.asarray(np.square(errors, dtype=np.float64))

    def scores(self, W_aug: FloatArray, H_aug: FloatArray, metric: str) -> FloatArray:
        """Return the weighted score of each entry by a metric of `Choice`: half a square for RMSE.

        It is in the units of X, or of the columns of several kinds.
        """
        if metric in ("rmse", "mae"):
            squares = self._squares(W_aug, H_aug, None)
            scores = 0.5 * squares if metric == "rmse" else np.sqrt(squares)
        else:
            scores = self._losses(W_aug, H_aug)
        if metric == "log_score":
            scores = self.model.log_scores(scores, self.values, *self.positions)
        return self.weights * scores

    def _losses(self, W_aug: FloatArray, H_aug: FloatArray) -> FloatArray:
        """Return the loss of each entry, in the units of X, with limits as a fit has it."""
        model, x, t = self.model, self.values, self.storage.all_products(W_aug, H_aug)
        if self._floor is None:
            return model.losses(x, t, *self.positions, self.limits)
        (means, shares), y = self._floor, model.modelled(t).astype(np.float64)
        y = np.clip(y, *model.loss.domain)
        return model.loss(x, y + shares * (means - y))


def independent_means(
    rest: Observations, rows: IntArray, columns: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the mean of each entry if rows and columns are independent, and its share.

    A count is never impossible because the factors are 0 there: the entries of its row, and one
    more, do not show that.  Each row and each column has one more entry, with the mean of all.
    """
    i, j, x = rest.entries()
    (m, n), mean = rest.shape, float(np.mean(x, dtype=np.float64))
    of_rows, of_columns = np.bincount(i, minlength=m) + 1, np.bincount(j, minlength=n) + 1
    sums = np.bincount(i, x, m) + mean, np.bincount(j, x, n) + mean
    means = (sums[0] / of_rows)[rows] * (sums[1] / of_columns)[columns] / (mean or 1.0)
    return means, 1.0 / of_rows[rows]


def row_losses(
    held_out: SparseObservations,
    rest: SparseObservations,
    model: Model,
    W: FloatArray,
    H: FloatArray,
) -> Any:
    """Return the mean loss of each row, a block at a time; absent entries are zeros.

    A mean of 0 makes each event impossible, and a row of N events does not show that: with the
    Poisson distribution a single held-out event would decide.  Each row is therefore judged as if
    it had one more event, which is in each column with the share of that column in all counts, as
    with a Dirichlet prior of total weight one.
    """
    (f, loss), (m, n), X = model.shown, held_out.shape, held_out.to_csr().astype(np.float64)
    more = np.bincount(rest.indices, rest.values, n) + 0.5
    more *= (loss.noise_model == POISSON) / more.sum()
    means = []
    for rows in row_ranges(m, m * n):
        y = np.clip(f(W[rows] @ H), *loss.domain) + more
        means.append(loss(X[rows].toarray(), y).mean(axis=1))
    return np.concatenate(means)


def check_counts(counts: SparseObservations, model: Model, metric: str) -> None:
    """Raise ValueError if thinning cannot select a rank: it needs counts, and their means."""
    x, (f, loss) = counts.values, model.shown
    wrong = x[(x < 0) | (x != np.floor(x)) | (x > 2.0**53)]  # up to which a double holds each
    if wrong.size:
        what, remedy = f"X has the value {wrong[0]:g}", "whole numbers >= 0"
    elif loss.noise_model not in (NORMAL, POISSON):
        what, remedy = f"loss={loss!r} is no loss of means", "loss='frobenius' or 'kl'"
    elif f.form not in ("identity", "relu"):
        what, remedy = f"nonlinearity={f!r} was given", "nonlinearity='identity' or 'relu'"
    elif metric != "deviance":
        what, remedy = f"metric={metric!r} was given", "metric='deviance'"
    elif counts.limits is not None:
        what, remedy = "X has limits", "X without them"
    else:
        return
    raise ValueError(
        "rank='auto' of a sparse X whose absent entries are zeros holds out a part of each "
        f"count, and {what}: give a rank, or {remedy}, or use complete()."
    )
