"""Offsets, and f(WH + offsets) at positions in the units of X, as results and explorers predict it.

>>> import numpy as np
>>> from nmd_lab.model.fitted_values import NO_OFFSETS
>>> from nmd_lab.model.model import make_model
>>> W, H = np.array([[1.0, -2.0]]), np.array([[3.0, 1.0], [1.0, 1.0]])
>>> fitted = FittedValues(W, H, NO_OFFSETS, make_model("relu", "frobenius"))
>>> fitted.block([0], [0, 1])
array([[1., 0.]])
>>> fitted.without([1]).block([0], [0, 1])
array([[3., 1.]])
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .loss import FloatArray
from .model import Model


class FittedValues(NamedTuple):
    """The expected values of X by factors and a model.

    Attributes
    ----------
    W, H : ndarray (m, rank) and (rank, n)
        Factors.
    offsets : Offsets
        Offsets, which are added to WH inside f.
    model : Model
        Nonlinearities and losses, in the units of X.
    """

    W: FloatArray
    H: FloatArray
    offsets: Offsets
    model: Model

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns of X."""
        return self.W.shape[0], self.H.shape[1]

    def without(self, components: ArrayLike) -> FittedValues:
        """Return the values of the model without some components, given by their numbers."""
        left_out = _components(components, self.H.shape[0])
        if not left_out.size:
            return self
        return self._replace(W=np.delete(self.W, left_out, 1), H=np.delete(self.H, left_out, 0))

    def offsets_at(self, i: Any, j: Any) -> tuple[FloatArray, FloatArray]:
        """Return the offsets of rows i (mean included) and of columns j, which index arrays."""
        (m, n), dtype = self.shape, self.W.dtype
        rows = self.offsets.of_rows(m, dtype)[i] + dtype.type(self.offsets.mean)
        return rows, self.offsets.of_columns(n, dtype)[j]

    def linear(self, i: Any, j: Any) -> FloatArray:
        """Return WH plus offsets for rows i and columns j, which index arrays, as a matrix."""
        rows, columns = self.offsets_at(i, j)
        return np.asarray(self.W[i] @ self.H[:, j] + rows[:, None] + columns)

    def block(self, i: Any = slice(None), j: Any = slice(None)) -> FloatArray:
        """Return the values for rows i and columns j, which index arrays, as a matrix."""
        m, n = self.shape
        return self.model.expected(self.linear(i, j), np.arange(m)[i][:, None], np.arange(n)[j])

    def at(self, i: NDArray[np.integer], j: NDArray[np.integer]) -> FloatArray:
        """Return the values at single entries without forming the matrix.

        A position of -1 stands for a row or column that X did not have, whose factor and offset
        are 0.
        """
        if self.model.is_mixed and np.any(j < 0):
            raise ValueError(
                "columns has labels that the fit does not have, and its columns have losses of "
                "their own: leave them out."
            )
        out = np.empty(i.size, dtype=self.W.dtype)
        step = 1 << 18  # entries that are computed together
        for start in range(0, i.size, step):
            some = slice(start, start + step)
            t = self.linear_at(i[some], j[some])
            out[some] = self.model.expected(t, i[some], j[some])
        return out

    def linear_at(self, i: NDArray[np.integer], j: NDArray[np.integer]) -> FloatArray:
        """Return WH plus offsets at single entries, whose positions may be -1 as in `at`."""
        rows, columns = self.offsets_at(i, j)
        products = np.einsum("pk,kp->p", self.W[i], self.H[:, j])
        rows[i < 0], columns[j < 0] = self.offsets.mean, 0
        products[(i < 0) | (j < 0)] = 0
        return np.asarray(products + rows + columns)


def _components(components: ArrayLike, rank: int) -> NDArray[np.intp]:
    """Return the numbers of components; raise an error if there is no such component."""
    numbers = np.asarray(components).ravel()
    if numbers.size and numbers.dtype.kind not in "iu":
        raise TypeError(f"without={components!r} has no numbers of components: give integers.")
    wrong = numbers[(numbers < 0) | (numbers >= rank)]
    if wrong.size:
        raise IndexError(
            f"without={components!r} has {wrong[0]}, and there is no such component: give numbers "
            f"from 0 to {rank - 1}."
        )
    return numbers.astype(np.intp)


class Offsets(NamedTuple):
    """What is added to WH inside f.

    Attributes
    ----------
    mean : float
        Global offset; 0 if the model has none.
    rows : ndarray (m,) or None
        Offset of each row.
    columns : ndarray (n,) or None
        Offset of each column.
    """

    mean: float
    rows: FloatArray | None
    columns: FloatArray | None

    def of_rows(self, size: int, dtype: Any) -> FloatArray:
        """Return the offset of each row, zeros if there is none."""
        return np.zeros(size, dtype) if self.rows is None else self.rows

    def of_columns(self, size: int, dtype: Any) -> FloatArray:
        """Return the offset of each column, zeros if there is none."""
        return np.zeros(size, dtype) if self.columns is None else self.columns


NO_OFFSETS = Offsets(0.0, None, None)


class RowModel(NamedTuple):
    """The parts of a fit that determine rows of W.

    Attributes
    ----------
    model : Model
        Nonlinearities and losses, with what is known of entries with limits.
    H : ndarray (rank, n)
        Right factor.
    offsets : Offsets
        Offsets, which are added to WH inside f; a new row has one if those of rows are not None.
    alpha, offset_alpha, epsilon : float
        Ridges of W and offsets in the objective, and relative ridge of the factor steps.
    constraint : str or None
        Constraint on the rows of W, as ``parameters["w_constraint"]`` has it.
    absent_are_zeros : bool
        Whether absent entries of new sparse rows are zeros.
    """

    model: Model
    H: FloatArray
    offsets: Offsets
    alpha: float
    offset_alpha: float
    epsilon: float
    constraint: str | None = None
    absent_are_zeros: bool = False
