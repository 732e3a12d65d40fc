"""The factors of a fitted model, and f(WH) at some of its entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.data.base import FloatArray
from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.model.losses import Loss
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.offsets import Offsets


class Factors:
    """The base of a result: its fields, as plain matrices, and f(WH) at given positions.

    `Decomposition` documents the fields.
    """

    W: xr.DataArray
    H: xr.DataArray
    nonlinearity: Nonlinearity
    loss: Loss
    labels: Labels
    parameters: dict[str, Any]
    offsets: Offsets
    kinds: Model | None = None

    @property
    def rank(self) -> int:
        """Number of components."""
        return self.W.sizes[COMPONENT]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns of X."""
        return self.W.size // self.rank, self.H.size // self.rank

    @property
    def factors(self) -> tuple[FloatArray, FloatArray]:
        """W (m, rank) and H (rank, n) as plain matrices."""
        return self.W.values.reshape(-1, self.rank), self.H.values.reshape(self.rank, -1)

    def to_pandas(self) -> tuple[Any, Any]:
        """Return W and H as two tables with their labels.

        Returns
        -------
        W : pandas.DataFrame (m, rank)
            Rows of X by component.
        H : pandas.DataFrame (rank, n)
            Components by column of X.  Several dimensions make the levels of one index.

        Examples
        --------
        >>> import pandas as pd, nmd_lab as nmd
        >>> X = pd.DataFrame([[1.0, 2.0], [2.0, 4.0]], index=["ann", "bo"], columns=["p", "q"])
        >>> W, H = nmd.complete(X, 1, alpha=0, random_state=0).to_pandas()
        >>> list(W.index), list(H.columns), (W @ H).loc["bo", "q"].round(6)
        (['ann', 'bo'], ['p', 'q'], np.float64(4.0))
        """
        W, H = (
            factor.stack({name: dims}) if len(dims) > 1 else factor
            for factor, name, dims in (
                (self.W, "row", self.labels.rows),
                (self.H, "column", self.labels.columns),
            )
        )
        return W.transpose(..., COMPONENT).to_pandas(), H.transpose(COMPONENT, ...).to_pandas()

    def offsets_at(self, i: Any, j: Any) -> tuple[FloatArray, FloatArray]:
        """Return the offsets of rows i (mean included) and of columns j, which index arrays."""
        (m, n), dtype = self.shape, self.W.dtype
        rows = self.offsets.of_rows(m, dtype)[i] + dtype.type(self.offsets.mean)
        return rows, self.offsets.of_columns(n, dtype)[j]

    def block(self, i: Any, j: Any) -> FloatArray:
        """Return f(WH) for rows i and columns j, which index arrays, as a matrix."""
        W, H = self.factors
        rows, columns = self.offsets_at(i, j)
        products = W[i] @ H[:, j] + rows[:, None] + columns
        m, n = self.shape
        return self.expected(products, np.arange(m)[i][:, None], np.arange(n)[j])

    def expected(self, t: FloatArray, i: Any, j: Any) -> FloatArray:
        """Return the expected values of X at values of WH, given their rows and columns."""
        if self.kinds is not None:
            return self.kinds.expected(t, i, j)
        return self.loss.expected(self.nonlinearity(t))

    def at(
        self, i: NDArray[np.integer], j: NDArray[np.integer], at_a_time: int = 1 << 18
    ) -> FloatArray:
        """Return f(WH) at single entries without forming the matrix.

        Parameters
        ----------
        i, j : ndarray of int (n_entries,)
            Positions from 0 of the rows and columns; -1 stands for a row or column that X did not
            have, whose factor and offset are 0.
        at_a_time : int
            Number of entries that are computed together.
        """
        W, H = self.factors
        if self.kinds is not None and np.any(j < 0):
            raise ValueError(
                "columns has labels that the fit does not know, and its columns have losses of "
                "their own: leave them out."
            )
        out = np.empty(i.size, dtype=W.dtype)
        for start in range(0, i.size, at_a_time):
            part = slice(start, start + at_a_time)
            rows, columns = self.offsets_at(i[part], j[part])
            products = np.einsum("pk,kp->p", W[i[part]], H[:, j[part]])
            rows[i[part] < 0], columns[j[part] < 0] = self.offsets.mean, 0
            products[(i[part] < 0) | (j[part] < 0)] = 0
            out[part] = self.expected(products + rows + columns, i[part], j[part])
        return out
