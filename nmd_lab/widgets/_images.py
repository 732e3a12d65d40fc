"""Arrays become small PNG files that look right on a light and on a dark page."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Array = NDArray[np.floating]
Pixels = NDArray[np.uint8]

HOLE = (127, 155, 184)
POSITIVE, NEGATIVE = (214, 69, 48), (52, 120, 196)
LARGEST = 320
"""Pixels along the longer side of a picture; larger ones are thinned out."""

SMALLEST = 36


def gray(values: Array, low: float, high: float) -> Pixels:
    """Return grey levels; NaN has a colour of its own."""
    missing = np.isnan(values)
    share = (np.nan_to_num(values) - low) / ((high - low) or 1.0)
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.clip(255 * share, 0, 255).astype(np.uint8)[..., None]
    pixels[missing, :3] = HOLE
    pixels[..., 3] = 255
    return pixels


def signed(values: Array, limit: float) -> Pixels:
    """Return red for positive and blue for negative numbers; zero and NaN are see-through."""
    known = np.nan_to_num(values)
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    pixels[..., :3] = np.where((known > 0)[..., None], POSITIVE, NEGATIVE)
    pixels[..., 3] = np.clip(255 * np.abs(known) / (limit or 1.0), 0, 255).astype(np.uint8)
    return pixels


def thin(picture: Array) -> Array:
    """Return a picture of at most LARGEST pixels a side, by taking every k-th."""
    step = max(1, math.ceil(max(picture.shape) / LARGEST))
    return picture[::step, ::step]


def mosaic(pictures: Sequence[Pixels], columns: int) -> Pixels:
    """Lay pictures of one size out in rows, with see-through gaps."""
    height, width = pictures[0].shape[:2]
    scale = max(1, math.ceil(SMALLEST / min(height, width))) if max(height, width) < 60 else 1
    height, width = height * scale, width * scale
    gap = max(2, width // 14) if len(pictures) > 1 else 0
    rows = math.ceil(len(pictures) / columns)
    size = (rows * (height + gap) - gap, columns * (width + gap) - gap, 4)
    canvas = np.zeros(size, dtype=np.uint8)
    for k, picture in enumerate(pictures):
        top, left = k // columns * (height + gap), k % columns * (width + gap)
        large = picture.repeat(scale, axis=0).repeat(scale, axis=1)
        canvas[top : top + height, left : left + width] = large
    return canvas


def png(pixels: Pixels) -> bytes:
    """Return a PNG file."""
    buffer = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(buffer, format="png", compress_level=1)
    return buffer.getvalue()


def largest(values: Any) -> float:
    """Return a limit for signed colours that a few outliers do not blow up."""
    finite = np.abs(np.asarray(values, dtype=float))
    finite = finite[np.isfinite(finite)]
    return float(np.percentile(finite, 99.5)) if finite.size else 1.0
