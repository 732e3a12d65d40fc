"""The least-squares problems of all columns of large sparse data, one chunk of rows after another.

The entries of a column lie far from each other in arrays that are ordered by rows.  In a pass over
whole columns, nearly every access would then miss the cache.  Here the normal matrices of all
columns grow while one chunk of rows after another is in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nmd_lab._runtime.machine import map_and_add
from nmd_lab.data.entries import FloatArray, IntArray

from .devices.device import HOST, Device
from .row_problems import add_entries, factorize, substitute
from .storage import CsrStorage, sparse_kernel

ENTRIES = 1 << 21  # entries of a chunk of rows, 16 MiB of doubles
FEWEST = 4  # smallest number of chunks; fewer entries are no problem for the cache
MEMORY = 0.5  # largest size of all normal matrices, in numbers for each entry


class Chunk(NamedTuple):
    """The entries of a range of rows, in the order of the columns.

    Attributes
    ----------
    indptr : ndarray of int (n + 1,)
        Column j has the entries indptr[j] to indptr[j + 1].
    rows : ndarray of int (n_entries,)
        Rows of the entries, from the first row of the chunk.
    positions : ndarray of int (n_entries,)
        Positions of the entries in the order of the rows, from the first entry of the chunk.
    first_row, first_entry : int
        First row and first entry.
    """

    indptr: IntArray
    rows: IntArray
    positions: IntArray
    first_row: int
    first_entry: int


@dataclass(frozen=True)
class ColumnChunks:
    """All columns of a sparse matrix, in chunks of rows.

    Attributes
    ----------
    chunks : list of Chunk
        Chunks of rows.
    n : int
        Number of columns.
    """

    chunks: list[Chunk]
    n: int

    @classmethod
    def of(cls, storage: CsrStorage, size: int, device: Device = HOST) -> ColumnChunks | None:
        """Return the chunks of a storage for problems of some size; None where they do not pay.

        On a device with arrays in files the entries of the chunks lie there, too.
        """
        m, n = storage.shape
        few = storage.n_entries < FEWEST * ENTRIES
        if few or n * size**2 > MEMORY * storage.n_entries:
            return None
        ends = np.arange(ENTRIES, storage.n_entries, ENTRIES)
        borders = np.unique([0, *np.searchsorted(storage.indptr, ends), m]).tolist()
        return cls([_chunk(storage, device, *pair) for pair in pairwise(borders)], n)

    def improve(
        self,
        S: FloatArray,
        partners: FloatArray,
        solved: slice,
        ridge: FloatArray,
        Ht: FloatArray,
        parts: int,
    ) -> None:
        """Solve the least-squares problem of each column, in place."""
        borders = np.linspace(0, self.n, parts + 1).astype(int)

        def share(index: int) -> tuple[FloatArray, ...]:
            first, last = int(borders[index]), int(borders[index + 1])
            sums = column_sums(self.chunks, S, partners, first, last)
            solve_columns(*sums, solved, ridge, Ht[first:last])
            return ()

        map_and_add(share, parts)


def column_sums(
    chunks: list[Chunk], S: FloatArray, partners: FloatArray, first: int, last: int
) -> tuple[FloatArray, FloatArray]:
    """Return the sums over the entries of each of a range of columns, without the ridge."""
    add = sparse_kernel(_add_to_columns, f"{S.dtype}_{chunks[0].rows.dtype}")
    size = partners.shape[1]
    normals, steps = np.zeros((last - first, size, size)), np.zeros((last - first, size))
    for chunk in chunks:
        blocks = (S[chunk.first_entry :], partners[chunk.first_row :])
        add(*chunk[:3], first, *blocks, normals, steps)
    return normals, steps


def solve_columns(
    normals: FloatArray, steps: FloatArray, solved: slice, ridge: FloatArray, Ht: FloatArray
) -> None:
    """Solve the least-squares problem of each column from its sums, which are overwritten."""
    solve = sparse_kernel(_solve_columns, str(Ht.dtype))
    solve(normals, steps, solved.start or 0, ridge, Ht)


def _chunk(storage: CsrStorage, device: Device, first: int, last: int) -> Chunk:
    """Return the chunk of a range of rows, whose entries lie where those of a device do."""
    begin, end = int(storage.indptr[first]), int(storage.indptr[last])
    indptr = storage.indptr[first : last + 1] - storage.indptr[first]
    shape = (last - first, storage.shape[1])
    columns, positions = CsrStorage(shape, indptr, storage.indices[begin:end]).transposed()
    arrays: list[Any] = [device.get(device.put(each)) for each in (columns.indices, positions)]
    return Chunk(columns.indptr, arrays[0], arrays[1], first, begin)


def _add_to_columns(indptr, rows, positions, first, S, partners, normals, steps):  # type: ignore[no-untyped-def]
    longest = 0
    for j in range(steps.shape[0]):
        longest = max(longest, indptr[first + j + 1] - indptr[first + j])
    column_S = np.empty(longest, S.dtype)
    for j in range(steps.shape[0]):
        begin, end = indptr[first + j], indptr[first + j + 1]
        for k in range(begin, end):
            column_S[k - begin] = S[positions[k]]
        add_entries(rows, begin, end, begin, column_S, partners, normals[j], steps[j])


def _solve_columns(normals, steps, first, ridge, columns):  # type: ignore[no-untyped-def]
    size = steps.shape[1]
    none = np.zeros(size)
    for j in range(steps.shape[0]):
        normal, step = normals[j], steps[j]
        for a in range(size):
            normal[a, a] += ridge[a]
            step[a] -= ridge[a] * columns[j, first + a]
        factorize(normal, none, normal)
        substitute(normal, step)
        for a in range(size):
            columns[j, first + a] += step[a]
