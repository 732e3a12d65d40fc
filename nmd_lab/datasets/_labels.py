"""Matrices of images, labelled so that a row knows which picture it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray


def image_matrix(
    images: NDArray[Any], *, name: str, attrs: dict[str, Any], **labels: NDArray[Any]
) -> xr.DataArray:
    """Return images as rows of a matrix.

    Parameters
    ----------
    images : ndarray (count, height, width)
        The images.
    name : str
        Name of the values.
    attrs : dict
        Units and the like.
    **labels : ndarray (count,)
        Coordinates of the images.

    Returns
    -------
    DataArray (image, pixel)
        With the coordinates `y` (from the top) and `x` of each pixel, by which
        `nmd_lab.plots` knows the shape of a picture.
    """
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
