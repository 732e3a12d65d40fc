"""New rows of X that share a unit: their problem with H fixed, for each of the three solvers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import CsrRows, FloatArray
from nmd_lab.model.model import Model

from .scaling import Scaling, scaling_for

Doubles = NDArray[np.float64]
Rows = slice | NDArray[np.intp]


@dataclass(frozen=True)
class UnitRows:
    """The problem of some new rows, all in the unit that their data have.

    Attributes
    ----------
    rows : CsrRows
        Observed entries.
    scaling : Scaling
        The unit.
    Ht : ndarray (n, width)
        Transpose of H, after a column of a constant if rows have offsets.
    base : ndarray (n,)
        What is added to WH inside f: mean and column offsets.
    alphas : ndarray (width,)
        Ridges.
    ridge : float
        Ridge that keeps the steps solvable.
    absent_are_zeros : bool
        Whether the entries that are not among these are zeros.
    """

    rows: CsrRows
    scaling: Scaling
    Ht: Doubles
    base: Doubles
    alphas: Doubles
    ridge: float
    absent_are_zeros: bool = False

    @cached_property
    def model(self) -> Model:
        """The model in this unit."""
        return self.scaling.scaled_model()

    @cached_property
    def starting_T(self) -> Doubles:
        """Starting T at the entries."""
        T = self.model.pseudo_inverse(self.rows.values, columns=self.rows.indices)
        return T.astype(np.float64, copy=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of W."""
        return self.rows.indptr.size - 1, self.Ht.shape[1]

    def take(self, rows: NDArray[np.intp]) -> UnitRows:
        """Return the problem of some of the rows."""
        return replace(self, rows=self.rows.take(rows))

    def sums(self, numbers: FloatArray) -> Doubles:
        """Return the weighted sum of numbers at the entries over each row."""
        weighted = self.rows.weights * numbers
        return np.bincount(self.rows.row_of_entry, weighted, self.shape[0]).astype(np.float64)

    def natural_penalties(self) -> Doubles:
        """Return the natural ρ of each row; see `nmd_lab.solver.problem.natural_penalty`."""
        model, rows, T = self.model, self.rows, self.starting_T
        if model.is_mixed:  # WH = 0 is the best constant
            loss = self.sums(model.losses(rows.values, np.zeros_like(T), 0, rows.indices))
            spread = 0.5 * self.sums(np.square(T))
        else:
            n_absent, absent = np.zeros(self.shape[0]), 0.0
            if self.absent_are_zeros:
                n_absent = len(self.Ht) - self.sums(np.ones_like(T))
                absent = float(model.pseudo_inverse(np.zeros(1))[0])
            total = np.maximum(self.sums(np.ones_like(T)) + n_absent, 1e-300)
            mean_x = self.sums(rows.values) / total
            mean_T = (self.sums(T) + n_absent * absent) / total
            y, at = np.array([model.loss.constant(x) for x in mean_x]), rows.row_of_entry
            loss = self.sums(model.loss(rows.values, y[at]))
            spread = 0.5 * self.sums(np.square(T - mean_T[at]))
            if self.absent_are_zeros:
                loss += n_absent * model.loss(np.zeros_like(y), y)
                spread += 0.5 * n_absent * np.square(absent - mean_T)
        ratio = np.divide(loss, spread, out=np.ones_like(loss), where=spread > 0)
        return np.where(np.isfinite(ratio) & (ratio > 0), ratio, 1.0)


def rows_by_unit(rows: CsrRows, model: Model) -> Iterator[tuple[Rows, Scaling, CsrRows]]:
    """Yield the rows that share a unit, so that a result does not depend on the other rows."""
    largest, filled = np.zeros(rows.indptr.size - 1), np.diff(rows.indptr) > 0
    if filled.any():
        largest[filled] = np.maximum.reduceat(np.abs(rows.values), rows.indptr[:-1][filled])
    exponents = np.array([scaling_for(model, size).exponent for size in largest.tolist()])
    if not exponents.any():
        yield slice(None), Scaling(model), rows
        return
    for exponent, chosen in by_value(exponents):
        scaling = Scaling(model, exponent=int(exponent))
        yield chosen, scaling, scaling.scaled_observations(rows.take(chosen))


def by_value(numbers: NDArray[np.generic]) -> Iterator[tuple[float, NDArray[np.intp]]]:
    """Yield the different numbers of an array, and the positions of each."""
    for number in np.unique(numbers).tolist():
        yield number, np.flatnonzero(numbers == number)
