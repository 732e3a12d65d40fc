"""Offsets inside f, as additional columns of W and rows of H.

The model X ≈ f(WH + mean + b_i + c_j) is written as X ≈ f(W_aug H_aug) with extended factors:

    W_aug = [ b | W | 1 | 1    ]
    H_aug = [ 1 | H | c | mean ]   (row by row)

The column b of W_aug multiplies a row of ones in H_aug, and the row c of H_aug multiplies a column
of ones in W_aug.  The factor steps solve for b and c as for any component, with the same ridge.
The ones and the mean stay constant.  A problem in units of its own has another constant in their
place, and b, c and the mean are divided by it (`OffsetColumns.constant`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmd_lab.data.base import FloatArray
from nmd_lab.model.fitted_values import Offsets


@dataclass(frozen=True)
class OffsetColumns:
    """The positions of components and offsets in the extended factors."""

    kind: str
    mean: float = 0.0
    constant: float = 1.0

    @property
    def before(self) -> int:
        """Number of columns of W_aug for row offsets, before the components: 1 or 0."""
        return int(self.kind in ("rows", "both"))

    @property
    def after(self) -> int:
        """Number of rows of H_aug for column offsets, after the components: 1 or 0."""
        return int(self.kind in ("columns", "both"))

    @property
    def width(self) -> int:
        """Number of columns of W_aug in addition to the components."""
        return self.before + self.after + int(self.kind != "none")

    def components(self, width: int) -> slice:
        """Return the position of the components among all `width` columns of W_aug."""
        return slice(self.before, self.before + width - self.width)

    def solved(self, rank: int) -> tuple[slice, slice]:
        """Return the columns of W_aug and the rows of H_aug that are solved for."""
        first, last = self.before, self.before + rank
        return slice(0, last), slice(first, last + self.after)

    def extend(
        self, W: FloatArray, H: FloatArray, offsets: Offsets
    ) -> tuple[FloatArray, FloatArray]:
        """Return W_aug and H_aug from W (m, rank), H (rank, n) and offsets."""
        m, pieces, H_aug = W.shape[0], self.W_pieces(W, offsets), self.extended_H(H, offsets)
        beside = getattr(W, "beside", None)
        if beside is not None:  # the rows lie on workers
            return beside(pieces), H_aug
        left = [
            np.full((m, 1), piece) if isinstance(piece, float) else piece.reshape(m, -1)
            for piece in pieces
        ]
        return np.hstack(left, dtype=W.dtype), H_aug

    def W_pieces(self, W: FloatArray, offsets: Offsets) -> list[FloatArray | float]:
        """Return what W_aug is made of: matrices, single columns, and numbers for columns of it."""
        pieces: list[FloatArray | float] = [W]
        if self.before:
            pieces.insert(0, offsets.of_rows(W.shape[0], float) / self.constant)
        ones = int(self.kind != "none") + self.after
        return pieces + [float(self.constant)] * ones

    def extended_H(self, H: FloatArray, offsets: Offsets) -> FloatArray:
        """Return H_aug."""
        n, constant, right = H.shape[1], self.constant, [H]
        if self.before:
            right.insert(0, np.full((1, n), constant))
        if self.after:
            right.append(offsets.of_columns(n, float)[None, :] / constant)
        if self.kind != "none":
            right.append(np.full((1, n), self.mean / constant))
        return np.vstack(right, dtype=H.dtype)

    def split(self, W_aug: FloatArray, H_aug: FloatArray) -> tuple[FloatArray, FloatArray, Offsets]:
        """Return W, H and the offsets from extended factors."""
        rank = W_aug.shape[1] - self.width
        components = self.components(W_aug.shape[1])
        rows = W_aug[:, 0] * self.constant if self.before else None
        columns = H_aug[self.before + rank] * self.constant if self.after else None
        return W_aug[:, components], H_aug[components], Offsets(self.mean, rows, columns)


NO_OFFSET_COLUMNS = OffsetColumns("none")
