"""Ranks of true parameters among their draws are uniform (benchmarks/calibration.py, in small)."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.calibration import CASES, p_values, ranks_of  # noqa: E402

PROBLEMS, SIGNIFICANT = 48, 1e-4


@pytest.mark.parametrize(
    "name",
    [
        "Identity, Frobenius, weights",
        "Identity, L1",
        "ReLU, before",
        "MinMax, Frobenius",
        "Modulus, L1",
    ],
)
@pytest.mark.exhaustive
def test_ranks_are_uniform(name):
    case = CASES[name]._replace(thin=12)
    found = p_values([ranks_of(case, seed) for seed in range(PROBLEMS)])
    assert min(found.values()) > SIGNIFICANT, found


@pytest.mark.exhaustive
def test_a_wrong_posterior_is_noticed(monkeypatch):
    """A chain that believes the noise to be a third of what it is fails."""
    case = CASES["Identity, Frobenius"]._replace(thin=5)
    right = "nmd_lab.sampler.chain.draw_precision"
    monkeypatch.setattr(right, lambda shape, rate, rng: 3 * rng.gamma(shape) / rate)
    found = p_values([ranks_of(case, seed) for seed in range(PROBLEMS)])
    assert found["log rho"] < 1e-6
