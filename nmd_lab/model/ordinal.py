"""Ordered levels, such as stars or answers of a survey, whose distances are not known.

T = WH + noise, and the level says between which two cut points T lies.  The cut points are learned.
This is the cumulative probit model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Ordinal:
    """Ordered levels with learned cut points, for `nmd_lab.sample`.

    Parameters
    ----------
    levels : sequence of float, optional
        All levels in ascending order, at least two; by default those that X has.  Predictions are
        expected levels, and so depend on these numbers; the fit does not.

    Raises
    ------
    ValueError
        If the levels are fewer than two, not finite, or not ascending.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.Ordinal([1, 2, 3, 4, 5])
    Ordinal([1, 2, 3, 4, 5])
    """

    name = "ordinal"
    label = "ordinal: ordered levels"

    def __init__(self, levels: Sequence[float] | None = None) -> None:
        self.levels = None if levels is None else np.asarray(levels, dtype=np.float64)
        if self.levels is None:
            return
        ascending = (
            self.levels.ndim == 1 and self.levels.size > 1 and np.isfinite(self.levels).all()
        )
        if not ascending or not np.all(np.diff(self.levels) > 0):
            raise ValueError(
                f"levels={levels!r} is no list of levels: give two or more, ascending."
            )

    def for_data(self, present: NDArray[np.floating]) -> Ordinal:
        """Return the same model with its levels.

        Parameters
        ----------
        present : ndarray
            Different values of X, ascending.

        Raises
        ------
        ValueError
            If X has a value that is no level, or a single one.
        """
        if self.levels is None:
            if present.size < 2:
                raise ValueError(
                    "X has a single level: give all levels, for example nmd.Ordinal([1, 2, 3])."
                )
            return Ordinal(present.tolist())
        unknown = present[~np.isin(present, self.levels)]
        if unknown.size:
            raise ValueError(
                f"X has the value {unknown[0]:g}, which is no level of {self!r}: add it."
            )
        return self

    def codes(self, x: ArrayLike) -> NDArray[np.intp]:
        """Return the position of each value among the levels."""
        assert self.levels is not None
        return np.searchsorted(self.levels, np.asarray(x, dtype=np.float64))

    def __repr__(self) -> str:
        if self.levels is None:
            return "Ordinal()"
        return f"Ordinal([{', '.join(f'{level:g}' for level in self.levels)}])"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ordinal) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))
