"""Pictures of a posterior: what was observed, the completed picture, and where it is unsure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.labels import COMPONENT
from nmd_lab.data.observations import observe
from nmd_lab.data.pictures import picture_of
from nmd_lab.data.sparse import is_sparse
from nmd_lab.result.posterior.posterior import Posterior

from ._images import gray, heat, png, signed, stride

NAMES = ("observed", "posterior mean", "standard deviation")
"""The pictures from left to right."""

Array = NDArray[Any]


class DoubtMaps:
    """Pictures with the standard deviation beside them: of each row, or of the whole matrix.

    Each row is a picture if the labels of the columns say so.  Otherwise dense data are one.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    X : matrix
        All observed entries.
    """

    def __init__(self, posterior: Posterior, X: Any) -> None:
        self._posterior = posterior
        self._entries = observe(X).as_sparse()
        template = posterior.draws["H"].isel({"chain": 0, "draw": 0, COMPONENT: 0}, drop=True)
        self._picture = picture_of(template, None)
        self._is_dense = not is_sparse(X)
        self._made: dict[int, dict[str, tuple[str, bytes]]] = {}
        self.of_row(0)  # here, in the thread of the sampler, since the whole matrix takes a while

    def of_row(self, row: int) -> dict[str, tuple[str, bytes]]:
        """Return title and PNG file of each picture, by its name; empty if there are none.

        Parameters
        ----------
        row : int
            Position of the row, if each is a picture.
        """
        key = row if self._picture is not None else 0
        if key not in self._made:
            self._made[key] = self._drawn(row)
        return self._made[key]

    def _drawn(self, row: int) -> dict[str, tuple[str, bytes]]:
        """Draw the pictures."""
        m, n = self._posterior.shape
        if self._picture is not None:
            values = [self._picture(each) for each in self._values(np.full(1, row), np.arange(n))]
        elif self._is_dense:
            step = stride(max(m, n))
            values = self._values(np.arange(0, m, step), np.arange(0, n, step))
        else:
            return {}
        low, high = float(np.nanmin(values[1])), float(np.nanmax(values[1]))
        known = self._entries.values
        low, high = min(low, float(known.min())), max(high, float(known.max()))
        titles = (*NAMES[:2], f"{NAMES[2]}, to {float(np.nanmax(values[2])):.2g}")
        pixels = [_pixels(each, low, high) for each in values[:2]] + [heat(values[2])]
        return {
            name: (title, png(picture))
            for name, title, picture in zip(NAMES, titles, pixels, strict=True)
        }

    def _values(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> list[Array]:
        """Return observed values, means and standard deviations of some rows and columns."""
        shape = rows.size, columns.size
        i, j = np.repeat(rows, columns.size), np.tile(columns, rows.size)
        place = [np.full(size, -1) for size in self._posterior.shape]
        place[0][rows], place[1][columns] = np.arange(rows.size), np.arange(columns.size)
        at, along, x = self._entries.entries()
        at, along = place[0][at], place[1][along]
        inside = (at >= 0) & (along >= 0)
        observed = np.full(shape, np.nan)
        observed[at[inside], along[inside]] = x[inside]
        mean, spread = (
            np.reshape(numbers, shape)
            for numbers in (
                self._posterior.predict(i, j),
                self._posterior.predict_std(i, j, noise=False),
            )
        )
        return [observed, mean, spread]


def _pixels(values: Array, low: float, high: float) -> Any:
    """Return grey levels, or colours if there are negative numbers."""
    return gray(values, low, high) if low >= 0 else signed(values, max(-low, high))
