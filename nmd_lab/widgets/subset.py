"""A part of data that are too large for a page that answers at once: some rows, or fewer pixels.

A fit, a result and the copied code are of this part alone, and the sentence names it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from nmd_lab.data.labels import is_frame

MAX_ENTRIES, ENTRIES = 2_000_000, 500_000  # of a matrix that is whole, and of some of its rows
MIN_ROWS = 2000  # rows of a wider matrix
MAX_PIXELS = 1_000_000  # of a photograph: 15 s of one processor until it is filled, colours 30 s


class Subset(NamedTuple):
    """All of some data, or a part of them."""

    data: Any
    code: str = ""  # what takes the part, behind the name of the data; empty if they are whole
    words: str = "{}"  # the number of rows with that of the whole, or the part of the pixels

    def line(self, name: str) -> str:
        """Return the line that takes the part of data with a name."""
        return f"{name} = {name}{self.code.format(name)}\n" * bool(self.code)


def some_rows(X: Any) -> Subset:
    """Return a table or matrix, or a random sample of the rows if there are too many."""
    if not is_frame(X) and not isinstance(X, np.ndarray | xr.DataArray):
        return Subset(X)
    m, size = len(X), math.prod(X.shape)
    most = max(MIN_ROWS, int(float(f"{ENTRIES * m / max(size, 1):.1g}")))
    if size <= MAX_ENTRIES or m <= most:
        return Subset(X)
    words = f"{{:,}} of {m:,}"
    if is_frame(X):
        code = f".sample({most}, random_state=0).sort_index()"
        return Subset(X.sample(most, random_state=0).sort_index(), code, words)
    code = f"[np.sort(np.random.default_rng(0).choice(len({{}}), {most}, replace=False))]"
    rows = np.sort(np.random.default_rng(0).choice(m, most, replace=False))
    return Subset(X[rows], code, words)


def some_pixels(X: Any) -> Subset:
    """Return a photograph, or every so many rows and columns of one with too many pixels."""
    step = math.ceil(math.sqrt(math.prod(X.shape[:2]) / MAX_PIXELS))
    if step <= 1:
        return Subset(X)
    return Subset(X[::step, ::step], f"[::{step}, ::{step}]", f"1 in {step**2} pixels of {{}}")
