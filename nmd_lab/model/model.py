"""The model of a table: a list of kinds, and which of them a column or an entry has.

A nonlinearity and a loss for all entries are a model of one kind without units, whose compiled code
has no other.  Functions of arrays take the positions of the entries, which it does not need.

>>> import numpy as np
>>> from nmd_lab.model.column_model import make_column_model
>>> from nmd_lab.model.model import Model
>>> number = make_column_model("identity", "frobenius")._replace(
...     centre=170.0, size=10.0, weight=0.01
... )
>>> count = make_column_model("relu", "kl")._replace(centre=2.0)
>>> model = Model((number, count), np.array([0, 1, 1]))
>>> model.expected(np.zeros((1, 3)), columns=np.arange(3))
array([[170.,   2.,   2.]])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .column_model import FORMS, ColumnModel, LimitModel, make_column_model
from .entry import losses_within
from .loss import FloatArray, Loss
from .nonlinearity import Nonlinearity


class Mixed(Sequence[Any]):
    """The nonlinearity, or the loss, of each column, in order; it can be given to a new fit.

    Attributes
    ----------
    different : tuple
        The different ones.
    which : ndarray of int (n,) or (m, n)
        Position of that of each column, or of each entry, among them.

    Examples
    --------
    >>> import pandas as pd, nmd_lab as nmd
    >>> X = pd.DataFrame({"size": [1.0, 2.0, 4.0], "ripe": [True, False, True]})
    >>> fit = nmd.complete(X, 1, alpha=0.1, random_state=0)
    >>> fit.loss, fit.loss[1]
    (Mixed(Frobenius(), Logistic(0)), Logistic(0))
    """

    name = label = "mixed"
    noise, residual_name = "", "residual"
    degree, even = None, False
    squares, classes = False, ""

    def __init__(self, each: Sequence[Any], which: NDArray[np.integer]) -> None:
        self.different = tuple(dict.fromkeys(each))
        position = {one: k for k, one in enumerate(self.different)}
        self.which = np.array([position[one] for one in each], dtype=np.intp)[which]

    @property
    def linear(self) -> bool:
        """Whether every nonlinearity is linear."""
        return all(one.linear for one in self.different)

    def __len__(self) -> int:
        return int(self.which.shape[-1])

    def __getitem__(self, column: Any) -> Any:
        """Return that of a column, or of an entry (row, column) if each entry has one."""
        position = self.which[column]
        if np.ndim(position):
            raise IndexError(f"[{column!r}] is not one entry: give (row, column).")
        return self.different[position]

    def __repr__(self) -> str:
        return f"Mixed({', '.join(map(repr, self.different))})"

    def __str__(self) -> str:
        return f"Mixed({', '.join(dict.fromkeys(map(str, self.different)))})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixed):
            return False
        return self.different == other.different and np.array_equal(self.which, other.which)

    def __hash__(self) -> int:
        return hash((self.different, self.which.tobytes()))

    def __call__(self, *values: Any) -> NoReturn:
        """Refuse values without their columns."""
        raise ValueError(
            f"{self!r} has one for each column, which values alone do not tell: use predict() or "
            "reconstruct() of the fit, or give the loss of a single column, such as 'frobenius'."
        )

    residuals = __call__


def groups(which: Any, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the entries sorted by group, and where each group begins and the last one ends."""
    small = np.asarray(which).astype(np.int16 if count < 1 << 15 else np.intp)
    order = np.argsort(small, kind="stable")
    return order, np.searchsorted(small[order], np.arange(count + 1))


def each_group(which: Any, count: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each group that has entries, and the positions of these."""
    order, ends = groups(which, count)
    for k in np.flatnonzero(np.diff(ends)):
        yield int(k), order[ends[k] : ends[k + 1]]


IntArray = NDArray[np.integer]


@dataclass(eq=False)
class Model:
    """Nonlinearities, losses and units of all entries.

    Attributes
    ----------
    column_models : tuple of ColumnModel
        The different column models.
    model_index : ndarray of int (n,) or (m, n), or None
        Position of the kind of each column, or of each entry.  None: all have the only one, which
        has no units.
    is_mixed : bool
        Whether columns, or entries, are of several kinds with units of their own.
    linear, smooth : bool
        Whether every nonlinearity is linear, and every loss has a derivative inside its domain.
    learns : bool
        Whether some f, or some parameter of a loss, is learned.
    has_classes : bool
        Whether a loss is that of classes or levels, and so smallest at no x.
    degrees : tuple of int or None
        Degrees of f and of d, by which data have a unit; None for kinds with their own.
    limits : LimitModel
        What is known of all entries with limits; nothing for several kinds.
    even, squares, fits_exactly : bool
        Whether there is one f, and it is even (the signs of WH are to be found); one loss, and it
        is that of squares, or smallest at x.
    is_least_squares : bool
        Whether all entries have f(t) = t and squares.
    takes_data : bool
        Whether data decide of the only f or loss, which takes arrays of the size of X.
    has_form_for_limits : bool
        Whether the loss of entries with limits depends on the size of the noise.
    structure : Structure or tuple of Structure
        Everything that the compiled code depends on: that of the only kind, or of each.
    """

    column_models: tuple[ColumnModel, ...]
    model_index: IntArray | None = None

    def __post_init__(self) -> None:
        """Answer what others ask of a model."""
        kinds, alone = self.column_models, self.model_index is None
        f, d = kinds[0].nonlinearity, kinds[0].loss
        self.is_mixed = not alone
        self.linear = all(kind.nonlinearity.linear for kind in kinds)
        self.smooth = all(kind.loss.smooth for kind in kinds)
        self.learns = any(kind.learns for kind in kinds)
        self.has_classes = any(not kind.loss.smallest_at_x for kind in kinds)
        self.degrees = (f.degree, d.degree) if alone else (None, None)
        self.limits = kinds[0].limits if alone else LimitModel()
        self.even, self.squares = alone and f.even, alone and d.squares
        self.fits_exactly = alone and d.smallest_at_x
        self.is_least_squares = self.squares and f.form == "identity"
        self.takes_data = alone and (f.learns or type(d).for_data is not Loss.for_data)
        self.has_form_for_limits = alone and type(d) in FORMS
        self.structure: Any = kinds[0].structure if alone else tuple(k.structure for k in kinds)

    @property
    def of_columns(self) -> list[ColumnModel]:
        """The kind of each column; none where all are alike, or entries have kinds of their own."""
        if self.model_index is None or self.model_index.ndim == 2:
            return []
        return [self.column_models[position] for position in self.model_index]

    @property
    def only(self) -> ColumnModel:
        """The kind of all entries, where nothing else can be."""
        assert not self.is_mixed, "the model has several kinds"
        return self.column_models[0]

    def of_column(self, column: int) -> ColumnModel | None:
        """Return the kind of a column; None if its entries have kinds of their own."""
        if not self.is_mixed:
            return self.only
        of_columns = self.of_columns
        return of_columns[column] if of_columns else None

    @property
    def nonlinearity(self) -> Nonlinearity:
        """Nonlinearity of all entries."""
        return self.only.nonlinearity

    @property
    def loss(self) -> Loss:
        """Loss of all entries."""
        return self.only.loss

    @property
    def shown(self) -> tuple[Any, Any]:
        """Nonlinearity and loss as a result shows them, those of each column in a mixed table."""
        if self.model_index is None:
            return self.nonlinearity, self.loss
        f, d = zip(*((k.nonlinearity, k.loss) for k in self.column_models), strict=True)
        return Mixed(f, self.model_index), Mixed(d, self.model_index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model) or self.column_models != other.column_models:
            return False
        return np.array_equal(np.array(self.model_index), np.array(other.model_index))

    def __hash__(self) -> int:
        return hash(self.column_models)

    def index_at(self, rows: Any, columns: Any) -> Any:
        """Return the position of the kind of each entry; rows and columns broadcast."""
        which: Any = np.zeros((), np.intp) if self.model_index is None else self.model_index
        if which.ndim == 2:
            return which[rows, columns]
        shape = np.broadcast_shapes(np.shape(rows), np.shape(columns))
        return np.broadcast_to(which[columns] if which.ndim else which, shape)

    def modelled(self, t: FloatArray, rows: Any = 0, columns: Any = 0) -> FloatArray:
        """Return f at values of WH."""
        return self._each(lambda kind, t: kind.modelled(t), rows, columns, t)

    def expected(self, t: FloatArray, rows: Any = 0, columns: Any = 0) -> FloatArray:
        """Return the expected x at values of WH, in the units of X."""
        return self._each(lambda kind, t: kind.expected(t), rows, columns, t)

    def pseudo_inverse(self, x: FloatArray, rows: Any = 0, columns: Any = 0) -> FloatArray:
        """Return the starting T, finite, with f near what suits X."""
        return self._each(lambda kind, x: kind.pseudo_inverse(x), rows, columns, x)

    def losses(
        self, x: FloatArray, t: FloatArray, rows: Any = 0, columns: Any = 0, limits: Any = None
    ) -> FloatArray:
        """Return the weighted losses at values of WH, of entries with limits or without."""
        x = np.asarray(x, np.float64)
        if limits is None:
            return self._each(lambda kind, x, t: kind.losses(x, t), rows, columns, x, t)
        uppers = x if limits.uppers is None else limits.uppers.astype(np.float64)
        both = limits.codes.reshape(x.shape), uppers.reshape(x.shape)
        return self._each(_losses_within, rows, columns, x, t, *both)

    def log_scores(
        self, losses: FloatArray, x: FloatArray, rows: Any = 0, columns: Any = 0
    ) -> FloatArray:
        """Return the log score of each entry from its loss, in the units of its column."""
        which, scores = self.index_at(rows, columns), np.empty(losses.size)
        for position, kind in enumerate(self.column_models):
            at = which == position
            unit = 1.0 if kind.loss.noise_model.shape else kind.weight  # probabilities have none
            scores[at] = kind.loss.log_scores(losses[at] / unit, x[at])
        return scores

    def in_units(self, errors: FloatArray, rows: Any = 0, columns: Any = 0) -> FloatArray:
        """Return errors of X in the units of their columns, those of X for the only kind."""
        return self._each(lambda kind, e: kind.in_units(e), rows, columns, errors)

    def relative_error(self, objective: float, reference: float) -> float:
        """Return the relative error of a fit; the ratio of the two numbers for several kinds."""
        return (Loss() if self.is_mixed else self.loss).relative_error(objective, reference)

    def with_limits(self, limits: LimitModel) -> Model:
        """Return the model with what is known of entries with limits; several kinds have theirs."""
        return self if self.is_mixed else Model((self.only.with_limits(limits),))

    def with_wider_bounds(self, width: float) -> Model | None:
        """Return the model with wider bounds of f, for a homotopy; None if f has not two."""
        if self.is_mixed:
            return None
        wider = self.nonlinearity.with_wider_bounds(width, self.loss.domain)
        return None if wider is None else make_model(wider, self.loss)

    def scaled(self, size: float) -> Model:
        """Return the model for data that are divided by `size`; several kinds have their units."""
        if self.is_mixed:
            return self
        scaled = make_column_model(self.nonlinearity.scaled(size), self.loss.scaled(size))
        smallest, sd = self.limits
        return Model((scaled._replace(limits=LimitModel(smallest / size, sd / size)),))

    def learned(
        self, x: FloatArray, t: FloatArray, weights: FloatArray, rows: Any = 0, columns: Any = 0
    ) -> Model:
        """Return the model with the parameters of highest likelihood, given observed entries."""
        column_models = list(self.column_models)
        which = np.broadcast_to(self.index_at(rows, columns), x.shape)
        for k, at in each_group(which, len(column_models)):
            if column_models[k].learns:
                column_models[k] = column_models[k].learned(x[at], t[at], weights[at])
        return replace(self, column_models=tuple(column_models))

    @cached_property
    def by_function(self) -> tuple[list[ColumnModel], IntArray, FloatArray]:
        """Different kinds without units, the position of each kind's among them, and all units."""
        plain = [kind._replace(centre=0.0, size=1.0, weight=1.0) for kind in self.column_models]
        different = list(dict.fromkeys(plain))
        position = {kind: k for k, kind in enumerate(different)}
        units = np.array(
            [(k.centre, k.size, k.weight) for k in self.column_models], dtype=np.float64
        ).T
        return different, np.array([position[kind] for kind in plain]), np.ascontiguousarray(units)

    def _each(
        self, function: Callable[..., FloatArray], rows: Any, columns: Any, *arrays: Any
    ) -> FloatArray:
        """Return a function of the kind and the numbers of each entry.

        Kinds with the same f and d are worked on together, since a table may have many columns.
        """
        if not self.is_mixed:
            return function(self.only, *arrays)
        first = np.asarray(arrays[0])
        which = np.broadcast_to(self.index_at(rows, columns), first.shape).ravel()
        different, positions, units = self.by_function
        out = np.empty(first.size, np.result_type(first.dtype, np.float32))
        for k, at in each_group(positions[which], len(different)):
            centre, size, weight = (unit[which[at]] for unit in units)
            kind = different[k]._replace(centre=centre, size=size, weight=weight)
            out[at] = function(kind, *(np.asarray(array).ravel()[at] for array in arrays))
        return out.reshape(first.shape)


def _losses_within(
    kind: ColumnModel, x: FloatArray, t: FloatArray, codes: IntArray, uppers: FloatArray
) -> FloatArray:
    """Return the weighted losses of entries with limits."""
    a, out = np.asarray(kind.centre + kind.size * t, np.float64), np.empty(x.size)
    flat = (each.ravel() for each in (x, a, codes, uppers))
    losses_within(kind.structure)(*flat, kind.numbers, out)
    return np.asarray(kind.weight * out.reshape(x.shape))


def make_model(nonlinearity: str | Nonlinearity, loss: str | Loss) -> Model:
    """Return the model of one nonlinearity and one loss, if they are compatible."""
    return Model((make_column_model(nonlinearity, loss),))
