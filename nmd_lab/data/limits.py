"""Limits: entries of which only an upper or a lower limit is known, or both.

A value below the detection limit of an instrument is at most that limit.  A value of a saturated
sensor is at least the largest value that it shows.  X has the limit at such an entry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._masks_and_weights import as_booleans, at_entries, dense_values
from .base import EntryLimits, FloatArray, Observations
from .dense_observations import DenseObservations
from .sparse_observations import SparseObservations

AT_MOST, AT_LEAST = 1, 2
"""Codes of the two kinds of limits; their sum stands for both."""


@dataclass(frozen=True)
class GivenLimits:
    """The arguments of a fit that describe limits.

    Attributes
    ----------
    at_most, at_least : array_like of bool (m, n) or scipy.sparse matrix, optional
        True where X is only an upper limit, or only a lower limit.
    upper : array_like (m, n) or scipy.sparse matrix, optional
        Upper limits where both are True; X has the lower ones.
    """

    at_most: ArrayLike | None = None
    at_least: ArrayLike | None = None
    upper: ArrayLike | None = None

    def __bool__(self) -> bool:
        return any(each is not None for each in (self.at_most, self.at_least, self.upper))


NO_LIMITS = GivenLimits()


def with_limits(observations: Observations, X: Any, limits: GivenLimits) -> Observations:
    """Return observations with limits."""
    if not limits:
        return observations
    read = _Reader(observations, X)
    codes = np.zeros(read.values.size, np.int8)
    for name, code in (("at_most", AT_MOST), ("at_least", AT_LEAST)):
        mask = getattr(limits, name)
        if mask is None:
            continue
        at = as_booleans(read(name, mask), name, "True where X is a limit")
        if np.any(at & ~read.seen):
            place = read.place(int(np.argmax(at & ~read.seen)))
            raise ValueError(
                f"{name} is True at {place}, where X has no value: put the limit into X there."
            )
        codes += np.where(at, np.int8(code), np.int8(0))
    uppers = _uppers(codes, limits, read)
    if not codes.any():
        return observations
    return read.with_limits(EntryLimits(codes, uppers))


def _uppers(codes: NDArray[np.int8], limits: GivenLimits, read: _Reader) -> FloatArray | None:
    """Return the upper limits of the entries that have two, after a check."""
    both = codes == AT_MOST + AT_LEAST
    if not both.any():
        if limits.upper is not None:
            raise ValueError(
                "upper= has no use where no entry has two limits: give at_most=True and "
                "at_least=True there."
            )
        return None
    if limits.upper is None:
        place = read.place(int(np.argmax(both)))
        raise ValueError(
            f"at_most and at_least are both True at {place}, but upper=None: give the upper limits."
        )
    uppers = np.asarray(read("upper", limits.upper))
    if uppers.dtype.kind not in "buif":
        raise TypeError(f"upper has dtype {uppers.dtype}: give real numbers.")
    uppers = uppers.astype(read.values.dtype)
    wrong = both & ~((uppers >= read.values) & np.isfinite(uppers))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"upper={uppers[at]:g} at {read.place(at)} is no upper limit of X, which has the lower "
            f"one, {read.values[at]:g}: give finite numbers that are not below it."
        )
    return np.where(both, uppers, read.values)


class _Reader:
    """Reads masks and numbers at the stored entries of observations, flat."""

    def __init__(self, observations: Observations, X: Any) -> None:
        self.observations, self.X = observations, X
        if isinstance(observations, DenseObservations):
            self.values: FloatArray = observations.stored.ravel()
            self.seen = observations.seen.ravel()
            self.rows, self.columns = np.divmod(np.arange(self.values.size), observations.shape[1])
        else:
            entries = observations.entries()
            self.rows, self.columns, self.values = entries
            self.seen = np.ones(self.values.size, bool)

    def __call__(self, name: str, other: Any) -> NDArray[Any]:
        """Return a mask or numbers at the stored entries."""
        if isinstance(self.observations, DenseObservations):
            return dense_values(name, other, self.X, self.observations.labels).ravel()
        return at_entries(name, other, self.observations.shape, self.rows, self.columns)

    def place(self, entry: int) -> str:
        """Return the position of an entry in words."""
        return f"row {self.rows[entry]}, column {self.columns[entry]}"

    def with_limits(self, limits: EntryLimits) -> Observations:
        """Return the observations with limits."""
        assert isinstance(self.observations, DenseObservations | SparseObservations)
        return replace(self.observations, limits=limits)
