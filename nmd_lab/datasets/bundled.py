"""Pictures of scikit-learn, without a download."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from nmd_lab._runtime.checks import check_word

PHOTOGRAPHS = {
    "china": "the Summer Palace in Beijing",
    "flower": "a dahlia",
}
"""Names of the photographs, with what they show."""

LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in a grey level (ITU-R BT.601)."""


def photograph(
    name: str = "china", *, gray: bool = True, size: tuple[int, int] | None = None
) -> xr.DataArray:
    """Return one of the two photographs of scikit-learn, with brightness from 0 to 1.

    Parameters
    ----------
    name : {"china", "flower"}, default "china"
        Name of the photograph.
    gray : bool, default True
        Whether to return grey levels instead of red, green and blue (a third dimension).
    size : (int, int), optional
        Height and width in pixels of a smaller copy, made by averaging. Default: the original
        427 x 640.

    Returns
    -------
    DataArray (y, x) or (y, x, channel)
        Brightness, float64. `y` counts pixels from the top, `x` from the left.

    Raises
    ------
    ValueError
        If the name is unknown, or if the size is not positive or larger than the original.
    ImportError
        If Pillow, which reads the file, is missing.

    Examples
    --------
    >>> from nmd_lab import datasets
    >>> datasets.photograph("flower").shape
    (427, 640)
    """
    from sklearn.datasets import load_sample_image  # takes a second to import

    check_word("name", name, PHOTOGRAPHS)
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("Photographs need Pillow: pip install 'nmd-lab[plot]'.") from error
    picture = Image.fromarray(load_sample_image(f"{name}.jpg"))
    if size is not None:
        if len(size) != 2 or min(size) < 1 or size[0] > picture.height or size[1] > picture.width:
            raise ValueError(
                f"size={size} makes no sense: give (height, width), at most "
                f"({picture.height}, {picture.width})."
            )
        picture = picture.resize((int(size[1]), int(size[0])), Image.Resampling.BOX)
    values = np.asarray(picture) / 255
    dims: tuple[str, ...] = ("y", "x", "channel")
    coords: dict[str, Any] = {"channel": ["red", "green", "blue"]}
    if gray:
        values, dims, coords = values @ np.array(LUMA), dims[:2], {}
    coords |= {"y": np.arange(values.shape[0]), "x": np.arange(values.shape[1])}
    photo = xr.DataArray(values, dims=dims, coords=coords, name="brightness")
    for axis in ("y", "x"):
        photo[axis].attrs["units"] = "pixel"
    return photo.assign_attrs(
        long_name="brightness",
        description=f"{PHOTOGRAPHS[name]}, {name}.jpg of scikit-learn's sample images",
    )


def digits(n: int | None = None) -> xr.DataArray:
    """Return the handwritten digits of scikit-learn, 8 x 8 pixels from 0 to 1.

    Parameters
    ----------
    n : int, optional
        Number of images, from the first one on. Default: all 1797.

    Returns
    -------
    DataArray (image, pixel)
        Amount of ink, float64 in steps of 1/16, with the coordinates `digit` of each image and
        `y`, `x` of each pixel.

    Raises
    ------
    ValueError
        If n is not between 1 and 1797.

    Examples
    --------
    >>> from nmd_lab import datasets
    >>> datasets.digits(10).digit.values
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    from sklearn.datasets import load_digits  # takes a second to import

    bunch = load_digits()
    total = len(bunch.target)
    if n is not None and not 1 <= n <= total:
        raise ValueError(f"n={n} is out of range: there are {total} images.")
    images = bunch.images[:n] / 16
    y, x = np.divmod(np.arange(64), 8)
    return xr.DataArray(
        images.reshape(-1, 64),
        dims=("image", "pixel"),
        coords={
            "image": np.arange(len(images)),
            "digit": ("image", bunch.target[:n]),
            "y": ("pixel", y),
            "x": ("pixel", x),
        },
        name="ink",
        attrs={
            "long_name": "ink",
            "description": "handwritten digits of scikit-learn (test set of the UCI collection)",
        },
    )
