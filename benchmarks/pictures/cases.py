"""Photographs as a method sees them: missing, noisy, counted or clipped pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Array = np.ndarray

NOISE = 0.1
CLIPPED = 0.3
WORDS = "a photograph with text over it "


class Problem(NamedTuple):
    """A photograph, and how a method sees it.

    Attributes
    ----------
    truth : ndarray (y, x)
        The photograph, from 0 to 1.
    given : ndarray (y, x)
        Pixels in the units of the sensor; NaN where they are missing.
    scored : ndarray (y, x) of bool
        Pixels whose error counts.
    units : float
        Factor from the truth to the units of the sensor.
    noise : float or None
        Standard deviation of the noise that was added; None for none, and for counts.
    ceiling : float or None
        Value of clipped pixels.
    """

    truth: Array
    given: Array
    scored: Array
    units: float = 1.0
    noise: float | None = None
    ceiling: float | None = None


Case = Callable[[Array, np.random.Generator], Problem]


def missing(hides: Callable[[tuple[int, ...], np.random.Generator], Array]) -> Case:
    """Return the case whose missing pixels a function of shape and generator selects."""

    def problem(truth: Array, rng: np.random.Generator) -> Problem:
        hidden = hides(truth.shape, rng)
        return Problem(truth, np.where(hidden, np.nan, truth), hidden)

    return problem


def at_random(fraction: float) -> Callable[[tuple[int, ...], np.random.Generator], Array]:
    """Return a function that hides each pixel with one probability."""
    return lambda shape, rng: rng.random(shape) < fraction


def scratches(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Hide sixteen straight lines, 1 to 4 pixels wide."""
    canvas = Image.new("1", shape[::-1])
    for width in (1, 2, 3, 4) * 4:
        ends = rng.random((2, 2)) * shape[::-1]
        ImageDraw.Draw(canvas).line([tuple(end) for end in ends.tolist()], fill=1, width=width)
    return np.array(canvas)


def text(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Hide the strokes of text, 16 pixels high with 20 from line to line."""
    canvas, font = Image.new("1", shape[::-1]), ImageFont.load_default(16)
    for row in range(0, shape[0], 20):
        start = int(rng.integers(len(WORDS)))
        words = (WORDS[start:] + WORDS * (1 + shape[1] // 100))[: shape[1] // 6]
        ImageDraw.Draw(canvas).text((0, row), words, fill=1, font=font)
    return np.array(canvas)


def noisy(fraction: float) -> Case:
    """Return the case with normal noise and a fraction of the pixels missing."""

    def problem(truth: Array, rng: np.random.Generator) -> Problem:
        given = truth + NOISE * rng.normal(size=truth.shape)
        hidden = rng.random(truth.shape) < fraction
        return Problem(
            truth, np.where(hidden, np.nan, given), np.ones(truth.shape, bool), noise=NOISE
        )

    return problem


def counts(mean: float) -> Case:
    """Return the case whose pixels are Poisson counts of a mean over the photograph."""

    def problem(truth: Array, rng: np.random.Generator) -> Problem:
        units = mean / float(truth.mean())
        given = rng.poisson(units * truth).astype(float)
        return Problem(truth, given, np.ones(truth.shape, bool), units)

    return problem


def clipped(truth: Array, rng: np.random.Generator) -> Problem:
    """Clip the largest values, and score the pixels that lost theirs."""
    ceiling = float(np.quantile(truth, 1 - CLIPPED))
    return Problem(truth, np.minimum(truth, ceiling), truth > ceiling, ceiling=ceiling)


MISSING: dict[str, Case] = {
    **{f"{percent} % missing": missing(at_random(percent / 100)) for percent in (20, 40, 60, 80)},
    "scratches": missing(scratches),
    "text": missing(text),
}
NOISY: dict[str, Case] = {"noise": noisy(0), "noise, 60 % missing": noisy(0.6)}
COUNTED: dict[str, Case] = {"counts of mean 4": counts(4), "counts of mean 1": counts(1)}
CLIPPING: dict[str, Case] = {"clipped": clipped}
CASES = MISSING | NOISY | COUNTED | CLIPPING
"""All cases by name."""


def problem_of(case: str, truth: Array, seed: int) -> Problem:
    """Return a photograph as a method sees it."""
    return CASES[case](truth, np.random.default_rng([54, seed]))
