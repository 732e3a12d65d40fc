"""The range of values that data document: their attributes, or the grey levels of a picture."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

GREY_LEVELS = 255
"""Largest grey level of a picture of 8 bits."""


def valid_range(X: Any, column: str | None = None) -> tuple[float, float] | None:
    """Return the smallest and the largest value that X can have, None if X does not say.

    Attributes are those of the CF conventions: `valid_range`, or `valid_min` and `valid_max`.
    Integers of 8 bits without a sign are grey levels from 0 to 255 if one of them is above 127;
    smaller ones may as well be counts or ratings.
    """
    sources = [X] if column is None else [X[column], X]
    for source in sources:
        attrs = getattr(source, "attrs", None)
        documented = _of_attributes(attrs) if isinstance(attrs, dict) else None
        if documented is not None:
            return documented
    if getattr(sources[0], "dtype", None) == np.uint8:
        values = sources[0].tocoo().data if sparse.issparse(X) else np.asarray(sources[0])
        if values.size and int(values.max()) > GREY_LEVELS // 2:
            return 0.0, float(GREY_LEVELS)
    return None


def _of_attributes(attrs: dict[Any, Any]) -> tuple[float, float] | None:
    """Return the range that attributes give, None if they give none that makes sense."""
    ends = attrs.get("valid_range", (attrs.get("valid_min"), attrs.get("valid_max")))
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        return None
    return (low, high) if -math.inf < low < high < math.inf else None
