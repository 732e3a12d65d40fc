"""The best columns of rows by a posterior: by mean, or by an end of the interval."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import xarray as xr

from nmd_lab._checks import check_word
from nmd_lab.data.labels import COMPONENT
from nmd_lab.result.entries import entries_at
from nmd_lab.result.rankings import ScoredRows, ranked_rows

from .draws import CHAIN, DRAW
from .kernels import Array
from .predictions import PosteriorPredictions

By = Literal["mean", "lower", "upper"]
"""Numbers by which columns are ranked."""


class PosteriorRankings(PosteriorPredictions):
    """The best columns of rows."""

    def top(self, row: Any, k: int = 10, *, by: By = "mean", exclude: Any = None) -> xr.DataArray:
        """Return the k best columns of one or several rows, best first.

        Parameters
        ----------
        row : label, int or array_like
            Labels or positions of the rows, by the rule of `Decomposition.predict`.
        k : int, default 10
            Number of columns.
        by : {"mean", "lower", "upper"}, default "mean"
            What is compared: the prediction, or the lower or upper end of the 90 % interval of
            E f(T) (`predict_interval` with ``noise=False``).  "lower" is for what is surely good,
            "upper" for what may turn out to be.
        exclude : sparse matrix, SparseObservations, DataFrame, DataArray or array_like, optional
            Columns to leave out, as for `Decomposition.top`.

        Returns
        -------
        xarray.DataArray
            The compared numbers, labelled as those of `Decomposition.top`.

        Raises
        ------
        KeyError, IndexError, TypeError, ValueError
            As for `Decomposition.top`.

        Examples
        --------
        >>> import numpy as np
        >>> from nmd_lab.data.labels import labels_of
        >>> from nmd_lab.result.posterior.posterior import Posterior
        >>> W, H = np.ones((1, 4, 2, 1)), np.tile([[1.0], [3.0], [2.0]], (1, 4, 1, 1))
        >>> posterior = Posterior.from_arrays(labels_of(np.ones((2, 3))), W, H, np.ones((1, 4)))
        >>> posterior.top(0, k=2).position.values
        array([1, 2])
        """
        return ranked_rows(self._scored_by(by), row, k, exclude)

    def _scored_by(self, by: str) -> ScoredRows:
        """Return the numbers that are compared, by row."""
        check_word("by", by, ["mean", "lower", "upper"])
        columns = np.arange(self.shape[1])

        def scores(row: int) -> Array:
            entries = entries_at(row, columns)
            if by == "mean":
                return np.asarray(self.predict(entries))
            ends = self.predict_interval(entries, noise=False)
            return ends[:, 0 if by == "lower" else 1]

        first: dict[str, Any] = {CHAIN: 0, DRAW: 0, COMPONENT: 0}
        W, H = (self.draws[name].isel(first, drop=True) for name in ("W", "H"))
        return ScoredRows(self.labels, W, H, scores, np.dtype(np.float64))
