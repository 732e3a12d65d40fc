"""Small PNG files of arrays that look right on a light and on a dark page."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray
from PIL import Image

Array = NDArray[np.floating]
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class ImageStyle:
    """Colours (red, green, blue) and sizes of the images."""

    missing: tuple[int, int, int] = (127, 155, 184)
    """Colour of NaN among grey levels."""

    positive: tuple[int, int, int] = (214, 69, 48)
    """Colour of the largest positive number."""

    negative: tuple[int, int, int] = (52, 120, 196)
    """Colour of the largest negative number."""

    most_pixels: int = 320
    """Largest number of pixels along a side; larger pictures are thinned out."""

    enlarged_below: int = 60
    """Longer side in pixels below which the pictures of a mosaic are enlarged."""

    enlarged_to: int = 36
    """Smallest shorter side of an enlarged picture, in pixels."""


STYLE = ImageStyle()


def gray(values: Array, low: float, high: float) -> Pixels:
    """Return grey levels from black (`low`) to white (`high`), and a colour for NaN."""
    missing = np.isnan(values)
    share = (np.nan_to_num(values) - low) / ((high - low) or 1.0)
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.clip(255 * share, 0, 255).astype(np.uint8)[..., None]
    pixels[missing, :3] = STYLE.missing
    pixels[..., 3] = 255
    return pixels


def signed(values: Array, limit: float) -> Pixels:
    """Return red for positive and blue for negative numbers; zero and NaN are transparent."""
    numbers = np.nan_to_num(values)
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.where((numbers > 0)[..., None], STYLE.positive, STYLE.negative)
    pixels[..., 3] = np.clip(255 * np.abs(numbers) / (limit or 1.0), 0, 255).astype(np.uint8)
    return pixels


def heat(values: Array) -> Pixels:
    """Return colours from dark (0) to bright (the largest number); NaN is transparent."""
    largest = float(np.nanmax(values, initial=0.0)) or 1.0
    pixels: Pixels = colormaps["magma"](np.nan_to_num(values) / largest, bytes=True)
    pixels[np.isnan(values), 3] = 0
    return pixels


def stride(length: int) -> int:
    """Return the stride that thins a side out to the largest number of pixels."""
    return max(1, math.ceil(length / STYLE.most_pixels))


def thin(picture: Array) -> Array:
    """Return every k-th row and column, with the smallest k that makes both sides short enough."""
    step = stride(max(picture.shape))
    return picture[::step, ::step]


def mosaic(pictures: Sequence[Pixels], columns: int) -> Pixels:
    """Return pictures of one size side by side in rows, with transparent gaps."""
    height, width = pictures[0].shape[:2]
    scale = 1
    if max(height, width) < STYLE.enlarged_below:
        scale = max(1, math.ceil(STYLE.enlarged_to / min(height, width)))
    height, width = height * scale, width * scale
    gap = max(2, width // 14) if len(pictures) > 1 else 0
    rows = math.ceil(len(pictures) / columns)
    size = (rows * (height + gap) - gap, columns * (width + gap) - gap, 4)
    canvas = np.zeros(size, dtype=np.uint8)
    for k, picture in enumerate(pictures):
        top, left = k // columns * (height + gap), k % columns * (width + gap)
        enlarged = picture.repeat(scale, axis=0).repeat(scale, axis=1)
        canvas[top : top + height, left : left + width] = enlarged
    return canvas


def png(pixels: Pixels) -> bytes:
    """Return pixels as a PNG file."""
    buffer = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(buffer, format="png", compress_level=1)
    return buffer.getvalue()
