"""A pair of nonlinearity and loss for each column, or for each entry, of a table.

A mixed pair has several parts: pairs, each with units of its own.  With centre c, size s and weight
w, a part models an entry x by f(c + s (WH)) and has the loss w d(x, f(c + s (WH))).  So WH has no
unit, WH = 0 is the best constant of each column, and no column drowns another.

>>> import numpy as np
>>> from nmd_lab.model.mixed import MixedPair, Part
>>> from nmd_lab.model.proximal import make_pair
>>> number = Part(make_pair("identity", "frobenius"), centre=170.0, size=10.0, weight=0.01)
>>> count = Part(make_pair("relu", "kl"), centre=2.0, size=1.0)
>>> pair = MixedPair((number, count), np.array([0, 1, 1]))
>>> pair.expected(np.zeros((1, 3)), columns=np.arange(3))
array([[170.,   2.,   2.]])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .losses import Loss
from .nonlinearities import Nonlinearity
from .proximal import Pair

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.integer]


class Part(NamedTuple):
    """A pair with units of its own.

    Attributes
    ----------
    pair : Pair
        Nonlinearity and loss in the units of X.
    centre, size : float
        An entry is modelled by f(centre + size (WH)); size > 0.
    weight : float
        Factor of the loss, > 0.
    """

    pair: Pair
    centre: float = 0.0
    size: float = 1.0
    weight: float = 1.0

    def model(self, t: FloatArray) -> FloatArray:
        """Return f(centre + size t)."""
        values: FloatArray = self.pair.nonlinearity(self.centre + self.size * t)
        return values

    def expected(self, t: FloatArray) -> FloatArray:
        """Return the expected x, in the units of X."""
        return self.pair.loss.expected(self.model(t))

    def losses(self, x: FloatArray, t: FloatArray) -> FloatArray:
        """Return the weighted loss of each entry."""
        losses: FloatArray = self.weight * self.pair.loss(x, self.model(t))
        return losses

    def preimage(self, x: FloatArray) -> FloatArray:
        """Return the starting T, in the units of WH."""
        return (self.pair.nonlinearity.preimage(x) - self.centre) / self.size

    def numbers(self) -> list[float]:
        """Return all numbers of the part, as `nmd_lab.model.entry` reads them."""
        pieces, pf, pd, floors, limits = self.pair.model
        flat = [number for piece in pieces for number in piece]
        return [*flat, *pf, *pd, *floors, *limits, self.weight, self.centre, self.size]

    def sizes(self) -> tuple[int, int, int]:
        """Return how many pieces, parameters of f and parameters of d the part has."""
        pieces, pf, pd, _, _ = self.pair.model
        return len(pieces), len(pf), len(pd)


@dataclass(frozen=True, eq=False)
class MixedPair:
    """Pairs of the columns, or of the entries, of a table; it takes the place of a `Pair`.

    Parameters
    ----------
    parts : tuple of Part
        Different parts.
    which : ndarray of int (n,) or (m, n)
        Position among the parts, of each column or of each entry.
    """

    parts: tuple[Part, ...]
    which: IntArray

    @property
    def nonlinearity(self) -> MixedNonlinearity:
        """Nonlinearities of the parts, as one object."""
        return MixedNonlinearity(self)

    @property
    def loss(self) -> MixedLoss:
        """Losses of the parts, as one object."""
        return MixedLoss(self)

    @cached_property
    def structure(self) -> tuple[str, tuple[Any, ...]]:
        """Everything that the compiled code depends on: the different structures of the parts."""
        return "mixed", tuple(dict.fromkeys(_structure(part) for part in self.parts))

    @property
    def name(self) -> str:
        """Name of the compiled code."""
        return "mixed_" + "_".join(dict.fromkeys(part.pair.name for part in self.parts))

    @property
    def is_ours(self) -> bool:
        """Whether all classes belong to this package."""
        return all(part.pair.is_ours for part in self.parts)

    @cached_property
    def model(self) -> tuple[Any, ...]:
        """Run-time argument of compiled code: structure and row of each part, and the tables."""
        _, structures = self.structure
        tables: list[list[list[float]]] = [[] for _ in structures]
        position, row = [], []
        for part in self.parts:
            at = structures.index(_structure(part))
            position.append(at)
            row.append(len(tables[at]))
            tables[at].append(part.numbers())
        return np.array(position), np.array(row), tuple(np.array(table) for table in tables)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MixedPair):
            return False
        return self.parts == other.parts and np.array_equal(self.which, other.which)

    def __hash__(self) -> int:
        return hash((self.parts, self.which.tobytes()))

    def which_at(self, rows: Any, columns: Any) -> Any:
        """Return the position of the part of each entry; rows and columns broadcast."""
        if self.which.ndim == 2:
            return self.which[rows, columns]
        return np.broadcast_to(
            self.which[columns], np.broadcast_shapes(np.shape(rows), np.shape(columns))
        )

    def expected(self, t: FloatArray, rows: Any = 0, columns: Any = 0) -> FloatArray:
        """Return the expected x at values of WH, in the units of X."""
        return self._each(lambda part, *arrays: part.expected(*arrays), rows, columns, t)

    def preimage(self, x: FloatArray, rows: Any = 0, columns: Any = 0) -> FloatArray:
        """Return the starting T."""
        return self._each(lambda part, *arrays: part.preimage(*arrays), rows, columns, x)

    def losses(self, x: FloatArray, t: FloatArray, rows: Any = 0, columns: Any = 0) -> FloatArray:
        """Return the weighted losses at values of WH."""
        return self._each(lambda part, *arrays: part.losses(*arrays), rows, columns, x, t)

    def in_units(self, errors: FloatArray, rows: Any = 0, columns: Any = 0) -> FloatArray:
        """Return errors of X in the units of their columns."""
        return self._each(lambda part, e: e * math.sqrt(part.weight), rows, columns, errors)

    def _each(
        self, function: Callable[..., FloatArray], rows: Any, columns: Any, *arrays: FloatArray
    ) -> FloatArray:
        """Return a function of the part and the numbers of each entry."""
        first = np.asarray(arrays[0])
        which = np.broadcast_to(self.which_at(rows, columns), first.shape)
        out = np.empty(first.shape, np.result_type(first.dtype, np.float32))
        for position in np.unique(which):
            at = which == position
            out[at] = function(self.parts[position], *(np.asarray(array)[at] for array in arrays))
        return out


AnyPair = Pair | MixedPair
"""A pair of all entries, or of each of them."""


def _structure(part: Part) -> tuple[Any, tuple[int, int, int]]:
    """Return what the compiled code of a part depends on."""
    return part.pair.structure, part.sizes()


class _Mixed:
    """What the nonlinearities and the losses of a mixed pair have in common."""

    name: ClassVar[str] = "mixed"
    label: ClassVar[str] = "mixed"
    parameters: tuple[float, ...] = ()

    def __init__(self, pair: MixedPair) -> None:
        self.pair = pair

    def _own(self) -> Iterator[Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "Mixed(" + ", ".join(dict.fromkeys(repr(own) for own in self._own())) + ")"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.pair == getattr(other, "pair", None)

    def __hash__(self) -> int:
        return hash((type(self), self.pair))


class MixedNonlinearity(_Mixed, Nonlinearity):
    """The nonlinearities of a mixed pair; `MixedPair` applies them, since it knows the columns."""

    name = "mixed"
    label = "mixed"
    degree = None

    @property
    def linear(self) -> bool:  # type: ignore[override]
        """Whether every nonlinearity is linear."""
        return all(own.linear for own in self._own())

    def _own(self) -> Iterator[Nonlinearity]:
        return (part.pair.nonlinearity for part in self.pair.parts)


class MixedLoss(_Mixed, Loss):
    """The losses of a mixed pair; `MixedPair` evaluates them, since it knows the columns."""

    name = "mixed"
    label = "mixed"
    degree = None

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether every loss has a derivative everywhere inside its domain."""
        return all(own.smooth for own in self._own())

    @property
    def smallest_at_x(self) -> bool:  # type: ignore[override]
        """Whether this holds for every loss; False here, since the losses need the columns."""
        return False

    def _own(self) -> Iterator[Loss]:
        return (part.pair.loss for part in self.pair.parts)
