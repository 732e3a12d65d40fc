"""Intervals cover as many held-out entries as their level (benchmarks/coverage.py, in small)."""

import sys
from pathlib import Path

import numpy as np
import pytest
from some import some

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.coverage import LEVELS, coverage  # noqa: E402


@pytest.mark.parametrize(
    "kind", some(["ordinal", "Gaussian", "Laplace", "ReLU, before", "MinMax, after"], 1)
)
def test_intervals_hold_their_level(kind):
    """A fraction of 1400 entries has an error of 1.3 points at 50 %, and they share factors."""
    shares, count = coverage(kind, seed=1, draws=100)
    assert count > 1300
    np.testing.assert_allclose(shares, LEVELS, atol=0.05)
