"""Labelled matrices with one image in each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray


def image_matrix(
    images: NDArray[Any], *, name: str, attrs: dict[str, Any], **labels: NDArray[Any]
) -> xr.DataArray:
    """Return a matrix with one image in each row."""
    count, height, width = images.shape
    y, x = np.divmod(np.arange(height * width), width)
    coords = {"image": np.arange(count), "y": ("pixel", y), "x": ("pixel", x)}
    return xr.DataArray(
        images.reshape(count, height * width),
        dims=("image", "pixel"),
        coords=coords | {label: ("image", values) for label, values in labels.items()},
        name=name,
        attrs=attrs,
    )
