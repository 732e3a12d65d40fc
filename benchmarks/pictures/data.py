"""Twelve grey photographs that ship in scikit-image and scikit-learn."""

from __future__ import annotations

from functools import cache

import numpy as np

from nmd_lab import datasets

Array = np.ndarray

REPORTED = ("china", "flower", "camera", "brick", "coins", "coffee")
"""Photographs of the tables.  No setting was chosen on them."""
OTHERS = ("astronaut", "chelsea", "gravel", "moon", "page", "rocket")
"""Photographs on which every setting is chosen, those of our methods included."""

SIDE = 256


@cache
def load(name: str, side: int = SIDE) -> Array:
    """Return the middle of a photograph, at most `side` pixels high and wide, from 0 to 1."""
    if name in ("china", "flower"):
        picture = datasets.photograph(name).values
    else:
        from skimage import color, data, util

        picture = util.img_as_float(getattr(data, name)())
        picture = color.rgb2gray(picture) if picture.ndim == 3 else picture
    rows, columns = (
        slice(max(n - side, 0) // 2, max(n - side, 0) // 2 + side) for n in picture.shape
    )
    return np.ascontiguousarray(picture[rows, columns])
