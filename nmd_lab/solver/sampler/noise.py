"""Where the noise is: before f, after f, or both; and how T is drawn for each kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.model.loss import Loss
from nmd_lab.model.nonlinearity import Nonlinearity

NoiseKind = Literal["gaussian", "before", "after", "ordinal"]
"""Kinds of noise.

"gaussian": X = WH + noise; there is no T.  "before": X = f(T) exactly, and T = WH + noise.
"after": T = WH + noise, and X is f(T) with the noise of the loss.  "ordinal": T = WH + noise, and
the level of X says between which cut points T lies.
"""


CLIPPED = "clipped"
"""Kind of noise of a posterior whose sampler has "gaussian": a new observation is f(T), and f clips
it to the ends of its column."""


Counts = Callable[[Callable[[FloatArray, FloatArray], NDArray[np.intp]]], Any]
"""A function of a function of values and weights, which adds up what this returns for all of X."""


def levels_of(loss: Loss) -> int:
    """Return the number of levels of a loss; 0 if x is a number."""
    return len(loss.level_values) if loss.classes == "ordered" else 0


def noise_kind(wanted: str, f: Nonlinearity, loss: Loss, sums: Counts) -> NoiseKind:
    """Return the kind of noise; `sums` adds up what is counted in the values."""
    if loss.classes == "ordered":
        return "ordinal"
    if f.form == "identity" and loss.squares:
        return "gaussian"
    if wanted == "after" or not loss.squares:
        if wanted == "before":
            raise ValueError(
                f"noise='before' does not go with loss={loss.name!r}: use loss='frobenius', or "
                "noise='after'."
            )
        return "after"
    if wanted == "auto" and f.form == "monotone":
        return "before"
    flat = _flat_values(f)
    outside, at_limits = map(int, sums(partial(_counts_of_block, f, flat)))
    if wanted == "before" and outside:
        raise ValueError(
            f"noise='before' asks for data that {f!r} can be, and {outside} values are not: use "
            "noise='after'."
        )
    return "before" if wanted == "before" or (at_limits and not outside) else "after"


def knows_T(noise: str, f: Nonlinearity) -> bool:
    """Return whether a value alone says what T is there: f only rises, and the noise is before."""
    pieces = f.pieces() or ()
    rises = bool(pieces) and all(piece.slope > 0 for piece in pieces) and not f.even
    return noise == "gaussian" or (noise == "before" and rises)


def _flat_values(f: Nonlinearity) -> list[float]:
    """Return the finite values of the flat pieces of f."""
    pieces = f.pieces() or ()
    return [p.intercept for p in pieces if p.slope == 0 and math.isfinite(p.intercept)]


def _counts_of_block(
    f: Nonlinearity, flat: list[float], x: FloatArray, _: FloatArray
) -> NDArray[np.intp]:
    """Return how many values f does not take, and how many are those of flat pieces."""
    there = f(f.pseudo_inverse(x))
    has_flat = any(piece.slope == 0 for piece in f.pieces() or ())
    near = 1e-6 * float(np.abs(x).max(initial=0))
    taken = there == x if has_flat else np.abs(there - x) <= near
    return np.array([np.count_nonzero(~taken), np.count_nonzero(np.isin(x, flat))])
