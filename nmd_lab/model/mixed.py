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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._curve import curve_of
from .entry import Branch
from .losses import Loss
from .nonlinearities import Nonlinearity
from .proximal import Pair, is_searched, make_pair

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
    centre: Any = 0.0
    size: Any = 1.0
    weight: Any = 1.0

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
        start: FloatArray = (self.pair.preimage(x) - self.centre) / self.size
        return start

    def numbers(self) -> list[float]:
        """Return all numbers of the part, as `nmd_lab.model.entry` reads them."""
        pieces, pf, pd, floors, limits = self.pair.model
        flat = [] if self.is_searched else [number for piece in pieces for number in piece]
        return [*flat, *pf, *pd, *floors, *limits, self.weight, self.centre, self.size]

    def sizes(self) -> tuple[int, int, int]:
        """Return how many pieces, parameters of f and parameters of d the part has."""
        pieces, pf, pd, _, _ = self.pair.model
        return 0 if self.is_searched else len(pieces), len(pf), len(pd)

    @property
    def is_searched(self) -> bool:
        """Whether the T-update is searched along the curve of f."""
        return is_searched(self.pair.structure)

    @property
    def branch(self) -> Branch:
        """What the compiled code depends on."""
        own_curve = self.pair.nonlinearity if self.is_searched else None
        return self.pair.structure, self.sizes(), own_curve


@dataclass(frozen=True, eq=False)
class MixedPair:
    """Pairs of the columns, or of the entries, of a table; it takes the place of a `Pair`."""

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
        return "mixed", tuple(dict.fromkeys(part.branch for part in self.parts))

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
            at = structures.index(part.branch)
            position.append(at)
            row.append(len(tables[at]))
            tables[at].append(part.numbers())
        curves = tuple(() if f is None else curve_of(f).numbers for _, _, f in structures)
        numbers = tuple(np.array(table) for table in tables)
        return np.array(position), np.array(row), numbers, curves

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
        return self._each(lambda part, e: e * np.sqrt(part.weight), rows, columns, errors)

    @property
    def learns(self) -> bool:
        """Whether some parameter of a loss is learned."""
        return any(part.pair.loss.learns for part in self.parts)

    def learned(
        self, x: FloatArray, t: FloatArray, weights: FloatArray, rows: Any, columns: Any
    ) -> MixedPair:
        """Return the pair with the parameters of highest likelihood, given observed entries."""
        order, ends = _groups(self.which_at(rows, columns), len(self.parts))
        parts = list(self.parts)
        for k, part in enumerate(parts):
            own = order[ends[k] : ends[k + 1]]
            if part.pair.loss.learns and own.size:
                loss = part.pair.loss.learned(x[own], part.model(t[own]), weights[own])
                parts[k] = part._replace(pair=make_pair(part.pair.nonlinearity, loss))
        return MixedPair(tuple(parts), self.which)

    @cached_property
    def _kinds(self) -> tuple[list[Pair], IntArray, tuple[FloatArray, ...]]:
        """Different pairs of the parts, the position of each part's own, and all units."""
        pairs = list(dict.fromkeys(part.pair for part in self.parts))
        position = {pair: k for k, pair in enumerate(pairs)}
        units = np.array([part[1:] for part in self.parts], dtype=np.float64).T
        return pairs, np.array([position[part.pair] for part in self.parts]), tuple(units)

    def _each(
        self, function: Callable[..., FloatArray], rows: Any, columns: Any, *arrays: FloatArray
    ) -> FloatArray:
        """Return a function of the part and the numbers of each entry.

        Parts with the same pair are worked on together, since a table may have many columns.
        """
        first = np.asarray(arrays[0])
        which = np.broadcast_to(self.which_at(rows, columns), first.shape).ravel()
        pairs, kinds, units = self._kinds
        out = np.empty(first.size, np.result_type(first.dtype, np.float32))
        order, ends = _groups(kinds[which], len(pairs))
        for k, pair in enumerate(pairs):
            at = order[ends[k] : ends[k + 1]]
            part = Part(pair, *(unit[which[at]] for unit in units))
            out[at] = function(part, *(np.asarray(array).ravel()[at] for array in arrays))
        return out.reshape(first.shape)


def _groups(which: Any, count: int) -> tuple[IntArray, IntArray]:
    """Return the entries sorted by group, and where each group begins and the last one ends."""
    small = np.asarray(which).astype(np.int16 if count < 1 << 15 else np.intp)
    order = np.argsort(small, kind="stable")
    return order, np.searchsorted(small[order], np.arange(count + 1))


AnyPair = Pair | MixedPair
"""A pair of all entries, or of each of them."""


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

    def __call__(self, t: ArrayLike) -> NDArray[np.floating]:
        """Refuse values without their columns."""
        raise ValueError(
            "nonlinearity='mixed' has a function for each column, which values alone do not tell: "
            "use predict() or reconstruct() of the fit."
        )

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

    @property
    def learns(self) -> bool:
        """Whether some parameter is learned."""
        return bool(self.pair.learns)

    def reference(self, x: NDArray[np.floating], weights: NDArray[np.floating]) -> float:
        """Refuse values without their columns."""
        raise ValueError(_NO_COLUMNS)

    def residuals(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.floating]:
        """Refuse values without their columns."""
        raise ValueError(_NO_COLUMNS)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.floating]:
        """Refuse values without their columns."""
        raise ValueError(_NO_COLUMNS)

    def _own(self) -> Iterator[Loss]:
        return (part.pair.loss for part in self.pair.parts)


_NO_COLUMNS = (
    "loss='mixed' has a loss for each column, which values alone do not tell: give the loss of a "
    "single column, such as 'frobenius'."
)
