"""Learning from batches of rows: which earlier rows are remembered, and what they weigh."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.labels import Labels
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.data.stacking import some_rows, stacked
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.update import UPDATE, Swept, sweep

DOUBLING = 2
"""Growth of the number of rows after which a fit to all of them begins anew."""


@dataclass
class Memory:
    """Rows of earlier batches.

    Parameters
    ----------
    size : int
        Largest number of rows to remember.
    forgetting : float
        Share of the weight of the rows that each new batch takes away.
    rng : Generator
        Random numbers.

    Attributes
    ----------
    rows : SparseObservations or None
        Remembered rows.
    positions, batches : ndarray of int (k,)
        Number of each remembered row, and of its batch, in the order of arrival.
    n_rows, n_batches : int
        Numbers of rows and batches so far.
    n_fitted : int
        Number of rows at the last fit to all of them.
    """

    size: int
    forgetting: float
    rng: np.random.Generator
    rows: SparseObservations | None = None
    positions: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    batches: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    n_rows: int = 0
    n_batches: int = 0
    n_fitted: int = 0

    def add(self, batch: SparseObservations) -> None:
        """Add the rows of a batch after those that are remembered."""
        number, known = batch.shape[0], () if self.rows is None else (self.rows,)
        self.rows = stacked([*known, batch])
        new = np.arange(self.n_rows, self.n_rows + number)
        self.positions = np.append(self.positions, new)
        self.batches = np.append(self.batches, np.full(number, self.n_batches))
        self.n_rows, self.n_batches = self.n_rows + number, self.n_batches + 1

    @property
    def is_whole(self) -> bool:
        """Whether all rows are remembered."""
        return self.positions.size == self.n_rows

    @property
    def begins_anew(self) -> bool:
        """Whether there are so many new rows that all are to be fitted again."""
        grown = self.n_rows >= DOUBLING * self.n_fitted
        return self.is_whole and grown and (not self.forgetting or not self.n_fitted)

    def weights(self) -> NDArray[np.float64]:
        """Return the weight of each remembered row: 1 in the last batch, less in earlier ones."""
        age = self.n_batches - 1 - self.batches
        return (1.0 - self.forgetting) ** age.astype(float)

    def forgotten(self, fit: Decomposition) -> tuple[SparseObservations, float]:
        """Return predictions of a fit for some rows that are not remembered, and their weight.

        Parameters
        ----------
        fit : Decomposition
            Fit of all rows but those of the last batch.
        """
        assert self.rows is not None
        gone = np.setdiff1d(np.arange(fit.shape[0]), self.positions, assume_unique=True)
        drawn = self.rng.choice(gone, min(self.positions.size, gone.size), replace=False)
        shares = self.rows.counts(0) / self.positions.size
        weight = gone.size / drawn.size * float(np.mean(self.weights()))
        return fit.predicted_rows(np.sort(drawn), shares), weight

    def forget(self) -> None:
        """Keep as many rows as the memory has room for: all that arrived are equally likely."""
        excess = self.positions.size - self.size
        if excess <= 0:
            return
        assert self.rows is not None
        old = np.flatnonzero(self.batches < self.n_batches - 1)
        new = np.flatnonzero(self.batches == self.n_batches - 1)
        share = self.size * len(new) / self.n_rows
        n_new = min(int(share) + int(self.rng.random() < share % 1), len(new), self.size)
        n_new = max(n_new, self.size - len(old))
        kept = np.sort(
            np.concatenate(
                [
                    self.rng.choice(old, self.size - n_new, replace=False),
                    self.rng.choice(new, n_new, replace=False),
                ]
            )
        )
        self.rows = some_rows(self.rows, kept)
        self.positions, self.batches = self.positions[kept], self.batches[kept]


def with_new_rows(fit: Decomposition, memory: Memory, threads: int | None) -> Decomposition:
    """Return a fit that has learned from the rows of a memory, the last batch of which is new.

    Its predictions stand for the rows that are not remembered.
    """
    rows, weights = memory.rows, memory.weights()
    assert rows is not None
    if not memory.is_whole and fit.loss.smallest_at_x:
        others, weight = memory.forgotten(fit)
        rows, weights = stacked([rows, others]), np.append(weights, [weight] * others.shape[0])
    if rows.absent_are_zeros:  # they have no weights
        weights = np.ones_like(weights)
    swept = sweep(fit.model, rows, weights, UPDATE.sweeps, threads=threads)
    return _with(fit, memory, swept)


def _with(fit: Decomposition, memory: Memory, swept: Swept) -> Decomposition:
    """Return a fit with another H, and with the rows of W of a memory."""
    model, rows = swept.model, fit.offsets.rows
    before, n = fit.shape
    W = np.zeros((memory.n_rows, model.H.shape[0]), model.H.dtype)
    W[:before] = fit.moved_rows(model.H)
    own = slice(memory.positions.size)
    W[memory.positions] = swept.W[own]
    if rows is not None and swept.row_offsets is not None:
        rows = np.append(rows, np.zeros(memory.n_rows - before, rows.dtype))
        rows[memory.positions] = swept.row_offsets[own]
    labels = _more_rows(fit.labels, memory.n_rows, n)
    labelled_W, labelled_H = labels.label_factors(W, model.H)
    return replace(
        fit,
        W=labelled_W,
        H=labelled_H,
        labels=labels,
        offsets=model.offsets._replace(rows=rows),
        parameters={**fit.parameters, "appended_rows": memory.n_rows - memory.n_fitted},
    )


def _more_rows(labels: Labels, m: int, n: int) -> Labels:
    """Return labels of the columns of a fit, for more rows, which have no labels."""
    (row,), (column,) = labels.rows, labels.columns
    of_rows = [name for name, each in labels.coords.coords.items() if row in each.dims]
    coords = labels.coords.drop_vars(of_rows)
    return replace(labels, dims=(row, column), shape=(m, n), coords=coords)
