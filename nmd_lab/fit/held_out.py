"""Folds of held-out entries, and the error there, for early stopping and for trials.

A fold has entries at random, moved gaps, test rows, or thinned counts.  A choice for large data has
some of the rows alone.

Where absent entries are zeros, every entry counts, so that none can be left out.  A part of a count
can: of x events each is held out with probability 1/10.  If x is a Poisson number, the two parts
are independent, and their means are as nine to one.  A fit to the larger part is judged by nine
times the smaller one at all entries.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray, IntArray
from nmd_lab.data.observations import Observations
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.split import some_rows, split
from nmd_lab.kernels.envelope import Tiles
from nmd_lab.kernels.products import CsrStorage
from nmd_lab.model.loss import NORMAL, POISSON
from nmd_lab.model.model import Model


class HeldOut:
    """Observed entries that are not used in the fit; the model is compared with them."""

    def __init__(
        self, observations: SparseObservations, model: Model, rest: Observations | None = None
    ) -> None:
        self.model, self._floor = model, None
        if rest is not None and not model.is_mixed and model.loss.noise_model == POISSON:
            self._floor = independent_means(rest, observations.rows, observations.indices)
        self.values: NDArray[Any] = observations.values
        self.weights, self.limits = observations.weights, observations.limits
        self.storage = CsrStorage(observations.shape, observations.indptr, observations.indices)
        self.positions = observations.rows, observations.indices

    def rmse(self, W_aug: FloatArray, H_aug: FloatArray, model: Model | None = None) -> float:
        """Return the root mean squared error of the expected values.

        It is in the units of X; for several kinds, in those of each column.  Another model has
        learned parameters.
        """
        return float(np.sqrt(np.average(self._squares(W_aug, H_aug, model), weights=self.weights)))

    def squared_errors(
        self, W_aug: FloatArray, H_aug: FloatArray, model: Model | None = None
    ) -> tuple[float, float]:
        """Return the weighted sum of the squared errors, and the sum of the weights."""
        squares = self._squares(W_aug, H_aug, model)
        if self.weights is None:
            return float(np.sum(squares)), float(squares.size)
        return float(np.sum(self.weights * squares)), float(np.sum(self.weights))

    def _squares(self, W_aug: FloatArray, H_aug: FloatArray, model: Model | None) -> FloatArray:
        """Return the squared error of each entry."""
        model, t = self.model if model is None else model, self.storage.all_products(W_aug, H_aug)
        expected = model.expected(t, *self.positions)
        errors = model.in_units(self._targets(expected) - expected, *self.positions)
        squares: FloatArray = np.square(errors, dtype=np.float64)
        return squares

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
        return scores if self.weights is None else self.weights * scores

    def _losses(self, W_aug: FloatArray, H_aug: FloatArray) -> FloatArray:
        """Return the loss of each entry, in the units of X."""
        model, t = self.model, self.storage.all_products(W_aug, H_aug)
        x, limits = self.values, self.limits
        if limits is None and self._floor is not None:
            means, shares = self._floor
            y = np.clip(model.modelled(t).astype(np.float64), *model.loss.domain)
            losses = model.loss(x, y + shares * (means - y))
        elif limits is None:
            losses = model.losses(x.astype(np.float64), t, *self.positions)
        else:
            compared = model.compares(*self.positions)
            nearest = self._targets(model.modelled(t, *self.positions).astype(np.float64))
            within = np.where(compared, nearest, x).astype(np.float64)
            losses = model.losses(within, t, *self.positions)
            if (at := ~compared & (limits.codes != 0)).any():
                i, j = (each[at] for each in self.positions)
                losses[at] = model.losses(x[at], t[at], i, j, limits.at(at))
        return losses

    def _targets(self, model: FloatArray) -> FloatArray:
        """Return the values to compare a model with."""
        if self.limits is None:
            return self.values
        return self.limits.nearest(self.values, model, self.model.limits.smallest)


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


SHARE = 0.1  # fraction of the observed entries that a fold holds out
ENOUGH = 2000  # held-out entries from which one fold is enough
MAX_HELD_OUT = 100_000  # largest number of held-out entries of a fold
MAX_FOLDS = 10  # largest number of folds, with which each entry is held out about once
MAX_SAMPLED = 500  # largest number of rows, and of columns, from which this is computed


class Fold(NamedTuple):
    """Observed entries for a trial, and others at which it is judged.

    Attributes
    ----------
    rest : Observations
        Entries that are fitted.
    held_out : SparseObservations
        Entries that are not.
    """

    rest: Observations
    held_out: SparseObservations

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Mask of the held-out entries: those whose values are known."""
        limits = self.held_out.limits
        return np.ones(self.held_out.values.size, bool) if limits is None else limits.codes == 0

    def sparse(self) -> Fold:
        """Return the same entries, of which only the observed ones are stored."""
        return self._replace(rest=self.rest.as_sparse())


def draw_folds(
    observations: Observations, rng: np.random.Generator, *, blocks: bool = False
) -> tuple[list[Fold], str]:
    """Return the folds, none if nothing can be held out, and how they were drawn.

    `blocks` states that the missing entries of the data are blocks, even if they do not look so.

    A few thousand held-out entries are enough to tell settings apart.  If a fold has fewer, there
    are several folds.
    """
    n_observed = observations.n_observed
    share = min(SHARE, MAX_HELD_OUT / n_observed)
    structured = blocks or holes_depend_on_each_other(observations)
    fewest = 2 if structured else 1
    folds: list[Fold] = []
    for _ in range(MAX_FOLDS):
        if len(folds) >= fewest and n_held_out(folds) >= ENOUGH:
            break
        hidden = _moved_holes(observations, share, rng) if structured else None
        if hidden is not None and hidden.any():
            folds.append(make_fold(observations.select(~hidden), observations.select(hidden)))
        elif n_observed > 1:
            rest, held_out = split(observations, share, rng)
            if held_out.n_observed:
                folds.append(make_fold(rest, held_out))
    return folds, "as the missing entries are" if structured else "at random"


def n_held_out(folds: list[Fold]) -> int:
    """Return the number of held-out entries of all folds."""
    return sum(fold.held_out.n_observed for fold in folds)


def make_fold(rest: Observations, held_out: Observations) -> Fold:
    """Return a fold, without held-out entries of which only limits are known, unless all are so.

    A model that satisfies a limit may be far from the value, so that they measure no error.
    """
    fold = Fold(rest, held_out.as_sparse())
    is_known = fold.is_known
    if is_known.all() or not is_known.any():
        return fold
    return fold._replace(held_out=fold.held_out.select(is_known))


def holes_depend_on_each_other(observations: Observations) -> bool:
    """Return whether entries of a row are missing together, as in a block of pixels.

    For each pair of columns the number of rows in which both are missing is compared with what is
    expected if the missing entries of each column were in any rows; with twice as many they
    depend.
    """
    m, n = observations.shape
    share = observations.n_observed / (m * n)
    if share == 1 or share < 1 / 3 or min(m, n) < 4:  # nothing is missing, or most of it is
        return False
    rows = np.linspace(0, m - 1, min(m, MAX_SAMPLED)).astype(int)
    columns = np.linspace(0, n - 1, min(n, MAX_SAMPLED)).astype(int)
    if observations.labels.table is not None:  # the indicators of a category are always together
        columns = np.unique(observations.labels.table.first_of_cell[columns])
    excess = _missing(observations)[np.ix_(rows, columns)].astype(float)
    excess -= excess.mean(axis=0)
    together = np.square(excess.T @ excess)
    variances = np.square(excess).mean(axis=0)
    by_chance = rows.size * (variances.sum() ** 2 - np.square(variances).sum())
    return bool(together.sum() - np.trace(together) > 2 * by_chance > 0)


def _missing(observations: Observations) -> NDArray[np.bool_]:
    """Return a mask (m, n) of the missing entries."""
    missing = np.ones(observations.shape, dtype=bool)
    rows, columns, _ = observations.entries()
    missing[rows, columns] = False
    return missing


def _moved_holes(
    observations: Observations, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return a mask of observed entries that are missing in other rows.

    Rows keep their order, so that a block of missing entries is moved as a whole.  Blocks are moved
    again and again until a fraction of the entries is hidden, or ten moves in turn hide nothing.  A
    row loses at most half of its entries, a column a fifth.
    """
    missing = _missing(observations)
    hidden, seen, (m, _) = np.zeros_like(missing), ~missing, missing.shape
    of_row, of_column = _may_lose(seen.sum(axis=1), 0.5), _may_lose(seen.sum(axis=0), 0.2)
    with_holes = np.flatnonzero(missing.any(axis=1))
    to_hide, without_gain = share * np.count_nonzero(seen), 0
    for _ in range(1000):
        before, shift = to_hide, int(rng.integers(m // 4, m - m // 4)) if m > 4 else 1
        first = int(rng.integers(with_holes.size))
        for row in np.roll(with_holes, first).tolist():
            to = (row + shift) % m
            cells = np.flatnonzero(missing[row] & seen[to] & ~hidden[to])
            if 0 < cells.size <= of_row[to] and np.all(of_column[cells] >= 1):
                hidden[to, cells] = True
                of_row[to] -= cells.size
                of_column[cells] -= 1
                to_hide -= cells.size
            if to_hide <= 0:
                break
        without_gain = 0 if to_hide < before else without_gain + 1
        if to_hide <= 0 or without_gain == 10:
            break
    rows, columns, _ = observations.entries()
    return np.asarray(hidden[rows, columns])


def _may_lose(counts: NDArray[np.integer], share: float) -> FloatArray:
    """Return how many of its entries each row (or column) may lose; one stays at least."""
    return np.asarray(np.minimum(np.maximum(share * counts, 1), counts - 1))


class RowSplit(NamedTuple):
    """Masks (m,) of the rows that teach a fit, and of those in which entries are held out."""

    train: NDArray[np.bool_]
    test: NDArray[np.bool_]


def row_splits(
    splitter: Any, groups: NDArray[np.intp] | None, m: int, rng: np.random.Generator
) -> list[RowSplit]:
    """Return the splits of m rows; a splitter without a seed gets one."""
    name = repr(splitter)
    if getattr(splitter, "random_state", 0) is None:
        splitter = copy.copy(splitter)
        splitter.random_state = int(rng.integers(2**31))
    arguments = {} if groups is None else {"groups": groups}
    try:
        pairs = list(splitter.split(np.zeros((m, 1)), **arguments))
    except (TypeError, ValueError) as error:
        remedy = "give groups=" if groups is None and "groups" in str(error) else "give another one"
        raise ValueError(
            f"splitter={name} cannot split the {m} rows of X ({str(error).rstrip('.')}): {remedy}."
        ) from error
    return [RowSplit(*(np.isin(np.arange(m), rows) for rows in pair)) for pair in pairs]


def row_folds(
    splits: list[RowSplit], observations: Observations, rng: np.random.Generator
) -> list[Fold]:
    """Return folds in which a fifth of the columns is held out in the test rows, the largest first.

    Each split holds out another fifth, in all its test rows: what is known of these columns comes
    from the training rows alone.  The indicators of a category are held out together.
    """
    n, table = observations.shape[1], observations.labels.table
    n_parts = max(2, min(5, n))
    parts = rng.permutation(math.ceil(n / n_parts) * n_parts)[:n] % n_parts
    parts = parts if table is None else parts[table.first_of_cell]
    folds: list[Fold] = []
    for shift in range(max(1, min(n_parts, MAX_FOLDS // max(len(splits), 1)))):
        if n_held_out(folds) >= ENOUGH:
            break
        for number, each in enumerate(splits):
            fold = _fold(each, parts == (number + shift) % n_parts, observations)
            folds += [] if fold is None else [fold]
    return sorted(folds, key=lambda fold: -fold.rest.n_observed)


def _fold(split: RowSplit, hidden: NDArray[np.bool_], observations: Observations) -> Fold | None:
    """Return the fold with some columns held out in the test rows; None if nothing can be.

    Neither rows that would keep no entry nor columns that no other row has are judged.
    """
    m, n = observations.shape
    rows, columns, _ = observations.entries()
    held = split.test[rows] & hidden[columns]
    rest = (split.train | split.test)[rows] & ~held
    known_rows, known_columns = np.zeros(m, bool), np.zeros(n, bool)
    known_rows[rows[rest]], known_columns[columns[rest]] = True, True
    held &= known_rows[rows] & known_columns[columns]
    if not held.any():
        return None
    return make_fold(observations.select(rest), observations.select(held))


CELLS = 300_000  # observed cells from which settings are chosen
CELLS_TABLE = 100_000  # the same for a table with classes or levels, which take longer
ROWS = 1000  # least number of rows for that


def sample_of_rows(
    observations: Observations, rng: np.random.Generator, *, has_classes: bool
) -> Observations:
    """Return as many of the rows as a choice needs, or all of them."""
    m, n = observations.shape
    cells = CELLS_TABLE if has_classes else CELLS
    number = max(ROWS, 4 * n, round(cells * m / observations.n_observed))
    return observations if m < 2 * number else some_rows(observations, number, rng)


def ridge_growth(shape: tuple[int, int], number: int) -> float:
    """Return the factor from the ridge of a number of rows to that of all rows.

    The ridge removes components up to the largest singular value of the noise, which grows as the
    sum of the roots of the sides.
    """
    m, n = shape
    return (math.sqrt(m) + math.sqrt(n)) / (math.sqrt(number) + math.sqrt(n))


def has_zeros(observations: Observations) -> TypeGuard[SparseObservations]:
    """Return whether absent entries are zeros, so that none can be held out."""
    return isinstance(observations, SparseObservations) and observations.absent_are_zeros


def thinned(counts: SparseObservations, rng: np.random.Generator) -> list[Fold]:
    """Return folds: most of each count, and a multiple of the others with the same mean.

    The others have the entries of which something is held out; if they are few, there are several
    folds, and no event is held out twice.
    """
    x, folds = counts.values, list[Fold]()
    left = x.astype(np.int64)
    while len(folds) < MAX_FOLDS and n_held_out(folds) < ENOUGH:
        share = min(SHARE / (1 - SHARE * len(folds)), 1.0)  # of the events that are in no fold
        held_out = rng.binomial(left, share)
        left -= held_out
        rest = x - held_out.astype(x.dtype)
        others = counts.with_values(((1 / SHARE - 1) * held_out).astype(x.dtype))
        others = replace(others.select(held_out > 0), absent_are_zeros=False)
        folds.append(Fold(counts.with_values(rest).select(rest > 0), others))
    return folds


EVENTS = {POISSON: 1.0}
"""Number of events that each row is judged with in addition to its own, by the noise.

A mean of 0 makes each event impossible, and a row of N events does not show that: with the Poisson
distribution a single held-out event would decide.  Each row is therefore judged as if it had one
more event, which is in each column with the share of that column in all counts, as with a Dirichlet
prior of total weight one.
"""


def row_losses(
    held_out: SparseObservations,
    rest: SparseObservations,
    model: Model,
    W: FloatArray,
    H: FloatArray,
) -> Any:
    """Return the mean loss of each row, a tile at a time; absent entries are zeros."""
    tiles = Tiles(held_out.shape, held_out.indptr, held_out.indices, held_out.values)
    (f, loss), sums = model.shown, np.zeros(held_out.shape[0])
    more = np.bincount(rest.indices, rest.values, rest.shape[1]) + 0.5
    more *= EVENTS.get(loss.noise_model, 0.0) / more.sum()
    for tile in tiles():
        y = np.clip(f(W[tile.rows] @ H[:, tile.columns]), *loss.domain) + more[tile.columns]
        x = np.zeros(y.size)
        x[tiles.positions[tile.stored]] = tiles.x[tile.stored]
        sums[tile.rows] += loss(x.reshape(y.shape), y).sum(axis=1)
    return sums / held_out.shape[1]


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
