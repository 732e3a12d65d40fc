"""A sample of the rows of a large table, from which its ridge is chosen."""

from __future__ import annotations

import math

import numpy as np

from nmd_lab.data.base import Observations
from nmd_lab.data.row_blocks import some_rows

CELLS = 100_000  # observed cells from which a ridge is chosen
ROWS = 1000  # least number of rows for that; as many as columns at least
WORTH_IT = 2  # rows of a table, over those wanted, from which some are drawn


def sample_of_rows(observations: Observations, rng: np.random.Generator) -> Observations:
    """Return as many of the rows as a choice needs, or all of them."""
    m, n = observations.shape
    number = max(ROWS, n, round(CELLS * m / observations.n_observed))
    return observations if m < WORTH_IT * number else some_rows(observations, number, rng)


def ridge_growth(shape: tuple[int, int], number: int) -> float:
    """Return the factor from the ridge of a number of rows to that of all rows.

    The ridge removes components up to the largest singular value of the noise, which grows as the
    sum of the roots of the sides.
    """
    m, n = shape
    return (math.sqrt(m) + math.sqrt(n)) / (math.sqrt(number) + math.sqrt(n))
