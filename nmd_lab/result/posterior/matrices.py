"""Whole matrices of a posterior: reconstruction, and map of uncertainty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from .draws import DrawnFactors
from .kernels import Array
from .mixture import Predictive
from .summaries import mean_of, std_of


class PosteriorMatrices(DrawnFactors):
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

    def _matrix(self, summary: Callable[[Predictive, Array], Array]) -> Array:
        """Return a summary of the draws at each entry of X, as a matrix."""
        predictive, out = self.predictive, np.empty(self.shape, self.dtype)
        for i, j in self.blocks(predictive.numbers):
            block = out[i, j]
            rows, columns = (each.ravel() for each in np.mgrid[i, j])
            of_block = summary(predictive.at(rows, columns), self.linear_block(i, j))
            block[...] = of_block.reshape(block.shape)
        return out
