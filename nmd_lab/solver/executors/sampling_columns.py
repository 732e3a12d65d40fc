"""The sampler on the workers: draws of the columns.

The entries lie on the workers twice.  A part of the rows draws its T and its rows
(`sampling_steps`).  A part of the columns has the same entries once more, and draws its columns
from T.  Each row and each column is thus drawn in one place, from all its entries in their order,
which gives the bits of a single machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from nmd_lab._files import Scratch
from nmd_lab.data.base import FloatArray, Transform
from nmd_lab.solver.lowrank import RowBlocks
from nmd_lab.solver.sampler.hyperparameters import RowPrior
from nmd_lab.solver.sampler.model import SamplerModel
from nmd_lab.solver.sampler.sides import DenseSide, Key, Partner, Side, SparseSide
from nmd_lab.solver.sampler.work import block_rows
from nmd_lab.solver.storage import CsrStorage

from .part import DATA, Part, part_here

Entries = tuple[NDArray[np.integer] | None, NDArray[np.integer] | None, FloatArray, Any]
"""Entries of some rows in some columns: row pointers and columns (None if dense), values, weights.
"""


def entries_by_columns(
    cluster: str, numbers: Sequence[int], name: str, first: int, last: int
) -> dict[int, Entries]:
    """Return the entries of some parts of the rows in a range of columns."""
    return {n: _entries(part_here(cluster, n).objects[name], first, last) for n in numbers}


def _entries(model: SamplerModel, first: int, last: int) -> Entries:
    weights = None if model.kind == "after" else model.weights
    if not isinstance(model.storage, CsrStorage):
        return None, None, model.values.reshape(model.shape)[:, first:last].copy(), weights
    indptr, indices = model.storage.indptr, model.storage.indices
    inside = (indices >= first) & (indices < last)
    counts = np.concatenate([[0], np.cumsum(inside)])
    own = None if weights is None else weights[inside]
    return counts[indptr], indices[inside] - first, model.values[inside], own


def T_by_columns(
    cluster: str, numbers: Sequence[int], name: str, of_T: str, ends: Sequence[int]
) -> list[dict[int, FloatArray]]:
    """Return T of some parts of the rows, for each range of columns."""
    pieces: list[dict[int, FloatArray]] = [{} for _ in ends[1:]]
    for number in numbers:
        part = part_here(cluster, number)
        model, T = part.objects[name], part.objects[of_T]
        if not isinstance(model.storage, CsrStorage):
            given = np.split(T.reshape(model.shape), ends[1:-1], axis=1)
        else:
            order, cuts = _order_by_columns(part, model.storage, ends)
            given = np.split(T[order], cuts)
        for piece, own in zip(pieces, given, strict=True):
            piece[number] = own.ravel()
    return pieces


def _order_by_columns(
    part: Part, storage: CsrStorage, ends: Sequence[int]
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Return the entries of a part in the order of the ranges of columns, and where these end."""
    name = "order of the entries"
    if name not in part.objects:
        ranges = np.searchsorted(ends, storage.indices, side="right") - 1
        cuts = np.cumsum(np.bincount(ranges, minlength=len(ends) - 1))[:-1]
        part.objects[name] = OrderOfEntries(np.argsort(ranges, kind="stable"), cuts)
    order: OrderOfEntries = part.objects[name]
    return order.entries, order.cuts


class OrderOfEntries(NamedTuple):
    """The entries of a part in the order of the ranges of columns, and where these end."""

    entries: NDArray[np.integer]
    cuts: NDArray[np.integer]


def pick(pieces: list[dict[int, FloatArray]], number: int) -> dict[int, FloatArray]:
    """Return T for one range of columns."""
    return pieces[number]


@dataclass(frozen=True)
class ColumnBlock:
    """All entries of a range of columns.

    Attributes
    ----------
    side : Side
        Half-sweep over these columns.
    values : ndarray (n_entries,)
        X at the entries, row by row.
    pattern : (ndarray, ndarray) or None
        Row pointers and columns of the entries; None if every entry is there.
    shape : (int, int)
        Number of rows and of columns.
    first : int
        Number of the first column.
    """

    side: Side
    values: FloatArray
    pattern: Any
    shape: tuple[int, int]
    first: int

    def as_matrix(self, values: FloatArray) -> Any:
        """Return values at the entries as a matrix, dense or sparse."""
        if self.pattern is None:
            return values.reshape(self.shape)
        indptr, indices = self.pattern
        return csr_array((values, indices, indptr), shape=self.shape)


def load_columns(
    pieces: Sequence[dict[int, Entries]],
    first: int,
    last: int,
    scratch: Scratch | None = None,
) -> ColumnBlock:
    """Return all entries of a range of columns, from those of the parts of the rows."""
    in_order = _in_order(pieces)
    values = np.concatenate([own.ravel() for _, _, own, _ in in_order])
    width = last - first
    if in_order[0][0] is None:
        shape = values.size // width, width
        return ColumnBlock(DenseSide(shape, True, 1), values, None, shape, first)
    ends = np.cumsum([0, *(own.size for _, _, own, _ in in_order)])
    pointers = [own + end for (own, *_), end in zip(in_order, ends, strict=False)]
    indptr = np.concatenate([[0], *(own[1:] for own in pointers)])
    indices = np.concatenate([own for _, own, _, _ in in_order])
    storage = CsrStorage((indptr.size - 1, width), indptr, indices)
    transposed, order = storage.transposed()
    weights = None
    if in_order[0][3] is not None:
        weights = np.concatenate([own for *_, own in in_order])[order]
    side = SparseSide(transposed, order, weights, 1)
    return ColumnBlock(side, values, (indptr, indices), storage.shape, first)


def _in_order(pieces: Sequence[dict[int, Any]]) -> list[Any]:
    """Return what the parts of the rows have given, in the order of the rows."""
    together = {number: own for piece in pieces for number, own in piece.items()}
    return [together[number] for number in sorted(together)]


def draw_columns(
    part: Part,
    partner: Partner,
    prior: RowPrior,
    rho: float,
    key: Key,
    pieces: Sequence[dict[int, FloatArray]] = (),
) -> tuple[FloatArray]:
    """Draw the columns of a part, from T in pieces or from X itself."""
    block: ColumnBlock = part.objects[DATA]
    T = np.concatenate(_in_order(pieces)) if pieces else block.values
    drawn = np.zeros((block.shape[1], partner.vectors.shape[1]), partner.vectors.dtype)
    block.side.draw(T, partner, prior, rho, key._replace(first_row=block.first), drawn)
    return (drawn,)


def multiply_transposed(
    part: Part, transform: Transform, fill: float, n: int, V: FloatArray
) -> tuple[FloatArray]:
    """Return (transform(X) + fill)ᵀ V for the columns of a part; X has n columns in all."""
    block: ColumnBlock = part.objects[DATA]
    values = transform(block.values).astype(np.float64, copy=False)
    return (RowBlocks(block.as_matrix(values), fill, block_rows(n)).transposed_product(V),)
