"""The loss of zeros: its Moreau envelope over a tile, as if every entry of it were zero.

For a zero and no multipliers, the T-update depends on (WH)_ij alone.  With ReLU, and a loss of a
zero that is y²/2 or y, the envelope has a form of a few operations, which the compiler vectorises.
Other pairs take their T-update.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from nmd_lab._runtime.compiler import compile_kernel
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.entry import compile_entry
from nmd_lab.model.kind import Structure
from nmd_lab.model.model import Model

CHUNK = 512
"""Number of entries that are summed up in the precision of the data.  The loops run over a view of
them from 0, since the compiler vectorises no loop whose index might be negative."""


class ZeroLoss:
    """The loss of zeros under a model."""

    def __init__(self, model: Model, dtype: np.dtype[Any]) -> None:
        kind = model.only
        form = FORMS.get(kind.loss.of_zero) if kind.nonlinearity.form == "relu" else None
        if form is None:
            name = f"zeros_{model.name}_{dtype}"
            self._kernel = _zero_kernel(kind.structure, name, model.is_ours)
            self._model: tuple[Any, ...] = (model.numbers,)
        else:
            name = f"zeros_{form.__name__.strip('_')}_{dtype}"
            self._kernel, self._model = compile_kernel(form, name, cached=True), ()
        self._dtype = dtype

    def __call__(self, A: FloatArray, penalty: float) -> tuple[float, float, float]:
        """Turn A = WH of a tile into the gradient of the envelope."""
        sums: tuple[float, float, float] = self._kernel(A, self._dtype.type(penalty), *self._model)
        return sums


def _half_square(a, penalty):  # type: ignore[no-untyped-def]
    """Return the sums for max(0, a)² / 2."""
    zero, one = a.dtype.type(0), a.dtype.type(1)
    share, total = penalty / (one + penalty), 0.0
    for first in range(0, a.size, CHUNK):
        chunk, chunk_sum = a[first : first + CHUNK], zero
        for i in range(chunk.size):
            y = max(chunk[i], zero)
            chunk_sum += y * y
            chunk[i] = share * y
        total += chunk_sum
    return 0.5 * share * total, 0.5 * total, total / (1.0 + penalty) ** 2


def _half_line(a, penalty):  # type: ignore[no-untyped-def]
    """Return the sums for max(0, a)."""
    zero, one = a.dtype.type(0), a.dtype.type(1)
    losses, products, squares = 0.0, 0.0, 0.0
    for first in range(0, a.size, CHUNK):
        chunk = a[first : first + CHUNK]
        loss, product, square = zero, zero, zero
        for i in range(chunk.size):
            y = max(chunk[i], zero)
            slope = min(penalty * y, one)
            loss += y
            product += y * slope
            square += slope * slope
            chunk[i] = slope
        losses += loss
        products += product
        squares += square
    return products - 0.5 * squares / penalty, losses, squares / penalty**2


FORMS: dict[str, Callable[..., Any]] = {"square": _half_square, "absolute": _half_line}
"""The envelope with ReLU, for each form of the loss of a zero (`Loss.of_zero`)."""


@cache
def _zero_kernel(structure: Structure, name: str, cached: bool) -> Callable[..., Any]:
    """Return the compiled pass for any model; it takes (a, penalty, model.numbers)."""
    solve, loss = compile_entry(structure, False)

    def evaluate(a, penalty, model):  # type: ignore[no-untyped-def]
        value, data_term, squares = 0.0, 0.0, 0.0
        zero = a.dtype.type(0)
        for i in range(a.size):
            v = a[i]
            t = solve(v, zero, penalty, 0, zero, 0, model)
            data_term += loss(zero, v, 0, zero, 0, model)
            value += loss(zero, t, 0, zero, 0, model) + 0.5 * penalty * (t - v) * (t - v)
            squares += (t - v) * (t - v)
            a[i] = penalty * (v - t)
        return value, data_term, squares

    return compile_kernel(evaluate, name, cached=cached)
