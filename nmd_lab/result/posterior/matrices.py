"""Whole matrices of a posterior: reconstruction, map of uncertainty, completed copies of X."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._checks import as_generator, check_integer
from nmd_lab.data.base import FloatArray
from nmd_lab.data.containers import dense_like
from nmd_lab.data.matching import MatchedData
from nmd_lab.data.typed_table import TypedColumn
from nmd_lab.result.filling import data_to_fill, filled_frame

from .classes import PosteriorClasses
from .kernels import Array
from .mixture import Predictive
from .summaries import mean_of, std_of


class PosteriorMatrices(PosteriorClasses):
    """Matrices of the shape of X, computed in blocks."""

    def reconstruct(self) -> xr.DataArray:
        """Return the posterior mean of f as an array like X.

        Returns
        -------
        xarray.DataArray
            What `predict` gives at each entry, with the dimensions and coordinates of X.

        Examples
        --------
        >>> import numpy as np
        >>> from nmd_lab.data.labels import labels_of
        >>> from nmd_lab.result.posterior.posterior import Posterior
        >>> W, H, rho = np.ones((1, 4, 2, 1)), np.ones((1, 4, 3, 1)), np.ones((1, 4))
        >>> posterior = Posterior.from_arrays(labels_of(np.ones((2, 3))), W, H, rho)
        >>> posterior.reconstruct().sizes
        Frozen({'row': 2, 'column': 3})
        """
        return self.labels.label(self._matrix(mean_of))

    def uncertainty(self, *, noise: bool = True) -> xr.DataArray:
        """Return the standard deviation of a new observation of each entry.

        Parameters
        ----------
        noise : bool, default True
            Whether the noise of an observation counts, as for `predict_std`.

        Returns
        -------
        xarray.DataArray
            What `predict_std` gives at each entry, with the dimensions and coordinates of X.

        Examples
        --------
        >>> import numpy as np
        >>> from nmd_lab.data.labels import labels_of
        >>> from nmd_lab.result.posterior.posterior import Posterior
        >>> W, H, rho = np.ones((1, 4, 2, 1)), np.ones((1, 4, 3, 1)), np.full((1, 4), 4.0)
        >>> posterior = Posterior.from_arrays(labels_of(np.ones((2, 3))), W, H, rho)
        >>> float(posterior.uncertainty().max())
        0.5
        """
        return self.labels.label(self._matrix(lambda p, v: std_of(p, v, noise)))

    def impute(self, X: Any, n: int = 10, *, random_state: Any = None) -> list[Any]:
        """Return completed copies of data, for multiple imputation.

        Parameters
        ----------
        X : array_like, masked array, DataFrame or DataArray
            Data with missing entries, of the shape of the fitted data or with labels that they
            have.
        n : int, default 10
            Number of copies.
        random_state : int, Generator, RandomState or None, default None
            Seed of the draws and of the noise.

        Returns
        -------
        list
            Copies in the type of X; a DataFrame has its columns, index, dtypes and categories, as
            that of `Decomposition.impute`.  Observed entries are kept.  The missing ones of a copy
            are new observations, with noise, from one random draw; two copies have different draws
            as long as there are enough.

        Raises
        ------
        ValueError, TypeError
            If X is sparse, has another shape or other labels, or an argument is invalid.

        Examples
        --------
        >>> import numpy as np
        >>> from nmd_lab.data.labels import labels_of
        >>> from nmd_lab.result.posterior.posterior import Posterior
        >>> W, H, rho = np.ones((1, 4, 2, 1)), np.ones((1, 4, 2, 1)), np.full((1, 4), 1e12)
        >>> X = np.array([[5.0, np.nan], [6.0, 7.0]])
        >>> posterior = Posterior.from_arrays(labels_of(X), W, H, rho)
        >>> posterior.impute(X, n=1, random_state=0)[0].round(3)
        array([[5., 1.],
               [6., 7.]])
        """
        n, rng = check_integer("n", n, 1), as_generator(random_state)
        data = data_to_fill(self.labels, X, "the posterior")
        completed, predictive = data.observations.to_array(), self.predictive
        i, j = np.nonzero(np.isnan(completed))
        order = np.concatenate(
            [rng.permutation(self.n_draws) for _ in range(-(-n // self.n_draws))]
        )
        copies = []
        for draw in order[:n]:
            array = completed.copy()
            v = self.linear_at(data.rows[i], data.columns[j], slice(draw, draw + 1))[0]
            array[i, j] = predictive.at(data.columns[j]).draw(v, int(draw), rng)
            if data.observations.labels.table is None:
                copies.append(dense_like(X, data.observations.labels, array))
            else:
                copies.append(self._filled_frame(X, array, data, int(draw), rng))
        return copies

    def _filled_frame(
        self, frame: Any, array: FloatArray, data: MatchedData, draw: int, rng: np.random.Generator
    ) -> Any:
        """Return a DataFrame with the holes filled from one draw, given the drawn matrix."""

        def missing(column: TypedColumn, at: NDArray[np.intp]) -> FloatArray:
            if column.has_indicators:
                return self.draw_classes(data.rows, data.columns[at], draw, rng)
            values = array[:, at[0]].astype(np.float64)
            levels = column.levels if column.kind == "ordered" else ()
            return np.searchsorted(levels, values).astype(np.float64) if levels else values

        return filled_frame(frame, data.observations.labels, missing)

    def _matrix(self, summary: Callable[[Predictive, Array], Array]) -> Array:
        """Return a summary of the draws at each entry of X, as a matrix."""
        predictive, out = self.predictive, np.empty(self.shape, self.dtype)
        for i, j in self.blocks(predictive.numbers):
            block = out[i, j]
            columns = np.tile(np.arange(j.start, j.stop), i.stop - i.start)
            of_block = summary(predictive.at(columns), self.linear_block(i, j))
            block[...] = of_block.reshape(block.shape)
        return out
