"""A sample of the rows of large data, from which their settings are chosen."""

from __future__ import annotations

import math

import numpy as np

from nmd_lab.data.observations import Observations
from nmd_lab.data.split import some_rows

CELLS = 300_000  # observed cells from which settings are chosen
CELLS_WITH_CLASSES = 100_000  # the same for a table with classes or levels, which take longer
ROWS = 1000  # least number of rows for that
OVER_COLUMNS = 4  # least number of rows, over that of columns
WORTH_IT = 2  # rows, over those wanted, from which some are drawn


def sample_of_rows(
    observations: Observations, rng: np.random.Generator, *, has_classes: bool
) -> Observations:
    """Return as many of the rows as a choice needs, or all of them."""
    m, n = observations.shape
    cells = CELLS_WITH_CLASSES if has_classes else CELLS
    number = max(ROWS, OVER_COLUMNS * n, round(cells * m / observations.n_observed))
    return observations if m < WORTH_IT * number else some_rows(observations, number, rng)


def ridge_growth(shape: tuple[int, int], number: int) -> float:
    """Return the factor from the ridge of a number of rows to that of all rows.

    The ridge removes components up to the largest singular value of the noise, which grows as the
    sum of the roots of the sides.
    """
    m, n = shape
    return (math.sqrt(m) + math.sqrt(n)) / (math.sqrt(number) + math.sqrt(n))
