"""PNG files of the pictures of an explorer, for readers without a kernel."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

MISSING, POSITIVE, NEGATIVE = (127, 155, 184), (213, 94, 0), (0, 114, 178)
"""Colours of holes, and of the largest positive and negative number."""

Pixels = NDArray[np.uint8]


def as_png(shown: Mapping[str, Any], values: NDArray[Any]) -> bytes:
    """Return pictures side by side in rows as a PNG file."""
    size = (shown["count"], shown["height"], shown["width"], shown["channels"])
    pictures = values.reshape(size)
    low, high = shown["low"], shown["high"]
    if shown["scale"] == "signed":
        pixels = _signed(pictures[..., 0], max(-low, high))
    else:
        share = np.clip((np.nan_to_num(pictures) - low) / ((high - low) or 1.0), 0, 1)
        pixels = np.broadcast_to((255 * share).astype(np.uint8), (*size[:3], 3)).copy()
        pixels[np.isnan(pictures).any(axis=-1)] = MISSING
    return _png(_mosaic(pixels))


def _signed(values: NDArray[Any], limit: float) -> Pixels:
    """Return orange for positive and blue for negative numbers, white at zero and for NaN."""
    numbers = np.nan_to_num(values)
    strength = np.clip(np.abs(numbers) / (limit or 1.0), 0, 1)[..., None]
    color = np.where((numbers > 0)[..., None], POSITIVE, NEGATIVE)
    pixels: Pixels = (255 + strength * (color - 255)).astype(np.uint8)
    return pixels


def _mosaic(pictures: Pixels) -> Pixels:
    """Return pictures of one size side by side, with white gaps."""
    count, height, width, _ = pictures.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    canvas = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1, 3), 255, dtype=np.uint8)
    for k, picture in enumerate(pictures):
        top, left = k // columns * (height + 1), k % columns * (width + 1)
        canvas[top : top + height, left : left + width] = picture
    return canvas


def _png(pixels: Pixels) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels, "RGB").save(buffer, format="png", optimize=True)
    return buffer.getvalue()
