"""Offsets inside f: X ≈ f(WH + mean + b_i + c_j), as columns beside W and rows beside H.

Held at one, a row of H lets the column of W next to it be the row offsets b; held at one, a column
of W lets the row of H be the column offsets c; a pair held at one and the mean is the global
offset.  So every nonlinearity sees offsets inside f, and the factor steps fit them like any other
component, with the same ridge.  The columns of the extended W, and the rows of H, stand as

    [ row offsets | components | column offsets | mean ].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nmd_lab.data.base import FloatArray, Observations
from nmd_lab.model.nonlinearities import Nonlinearity


class Offsets(NamedTuple):
    """The offsets of a fitted model; None where it has none of that kind."""

    mean: float
    rows: FloatArray | None
    columns: FloatArray | None


NONE = Offsets(0.0, None, None)


@dataclass(frozen=True)
class Extension:
    """Where the offsets stand beside the components.

    Parameters
    ----------
    kind : {"none", "global", "rows", "columns", "both"}
        Which offsets there are; all but "none" include the mean.
    mean : float
        The global offset, in the units of T.
    """

    kind: str
    mean: float = 0.0

    @property
    def before(self) -> int:
        """Number of columns before the components."""
        return int(self.kind in ("rows", "both"))

    @property
    def after(self) -> int:
        """Number of columns after the components that H is solved for."""
        return int(self.kind in ("columns", "both"))

    @property
    def width(self) -> int:
        """Number of columns beside the components."""
        return self.before + self.after + int(self.kind != "none")

    def components(self, width: int) -> slice:
        """Return where the components are among all columns."""
        return slice(self.before, self.before + width - self.width)

    def free(self, rank: int) -> tuple[slice, slice]:
        """Return which columns of W and which rows of H are solved for."""
        first, last = self.before, self.before + rank
        return slice(0, last), slice(first, last + self.after)

    def extend(
        self, W: FloatArray, H: FloatArray, offsets: Offsets
    ) -> tuple[FloatArray, FloatArray]:
        """Put offsets beside W (m, rank) and H (rank, n)."""
        m, n = W.shape[0], H.shape[1]
        left, right = [W], [H]
        if self.before:
            rows = np.zeros(m) if offsets.rows is None else offsets.rows
            left.insert(0, rows[:, None])
            right.insert(0, np.ones((1, n)))
        if self.after:
            columns = np.zeros(n) if offsets.columns is None else offsets.columns
            left.append(np.ones((m, 1)))
            right.append(columns[None, :])
        if self.kind != "none":
            left.append(np.ones((m, 1)))
            right.append(np.full((1, n), self.mean))
        return np.hstack(left, dtype=W.dtype), np.vstack(right, dtype=H.dtype)

    def split(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray, Offsets]:
        """Take W, H and the offsets apart again."""
        rank = left.shape[1] - self.width
        components = self.components(left.shape[1])
        rows = left[:, 0] if self.before else None
        columns = right[self.before + rank] if self.after else None
        return left[:, components], right[components], Offsets(self.mean, rows, columns)


NO_OFFSETS = Extension("none")


def starting_offsets(
    observations: Observations, f: Nonlinearity, kind: str, alpha: float
) -> Offsets:
    """Return the mean of T, and the shrunken means of rows and columns around it.

    Parameters
    ----------
    observations : Observations
        The data.
    f : Nonlinearity
        Gives T from X.
    kind : {"none", "global", "rows", "columns", "both"}
        Which offsets there are.
    alpha : float
        The ridge, which draws the means of short rows and columns to zero.
    """
    values, weights = observations.observed()
    mean = 0.0 if kind == "none" else float(np.average(f.preimage(values), weights=weights))
    offsets = Offsets(mean, None, None)
    if kind in ("rows", "both"):
        offsets = offsets._replace(rows=_means(observations, f, offsets, 1, alpha))
    if kind in ("columns", "both"):
        offsets = offsets._replace(columns=_means(observations, f, offsets, 0, alpha))
    return offsets


def _means(
    observations: Observations,
    f: Nonlinearity,
    offsets: Offsets,
    axis: int,
    alpha: float,
) -> FloatArray:
    """Return the shrunken means, along an axis, of what earlier offsets leave."""
    R, _ = observations.centred(f.preimage, *offsets)
    sums = np.asarray(R.sum(axis=axis), dtype=np.float64).ravel()
    means: FloatArray = sums / np.maximum(observations.counts(axis) + alpha, 1)
    return means
