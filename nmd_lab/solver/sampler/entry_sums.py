"""Compiled passes over the entries of a table, each of which reads an entry once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.compiler import compile_kernel
from nmd_lab.data.entries import FloatArray

Doubles = NDArray[np.float64]


def spread(
    values: FloatArray,
    indices: NDArray[np.integer],
    constants: FloatArray,
    mean: float,
    positions: NDArray[np.intp],
    shape: tuple[int, int],
) -> Doubles:
    """Return a dense matrix of entries less the constants of their columns, and zeros elsewhere."""
    matrix = np.zeros(shape)
    _kernel(_spread, f"spread_{values.dtype}_{indices.dtype}")(
        values, indices, constants, values.dtype.type(mean), positions, matrix.ravel()
    )
    return matrix


def sums_of_squares(
    T: FloatArray,
    products: FloatArray,
    weights: FloatArray | None,
    lines: NDArray[np.integer],
    number: int,
) -> Doubles:
    """Return the weighted sums of (T - WH)² over the entries of each line."""
    sums = np.zeros(number)
    heavy = np.empty(0, T.dtype) if weights is None else weights
    _kernel(_squares, f"sums_of_squares_{T.dtype}_{lines.dtype}")(T, products, heavy, lines, sums)
    return sums


@cache
def _kernel(function: Any, name: str) -> Any:
    return compile_kernel(function, name, cached=True)


def _spread(values, indices, constants, mean, positions, matrix):  # type: ignore[no-untyped-def]
    for k in range(positions.size):
        matrix[positions[k]] = values[k] - constants[indices[k]] - mean


def _squares(T, products, weights, lines, sums):  # type: ignore[no-untyped-def]
    for k in range(T.size):
        residual = T[k] - products[k]
        square = np.float64(residual) * residual
        sums[lines[k]] += square * weights[k] if weights.size else square
