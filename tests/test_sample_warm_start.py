"""Chains that begin at a fit."""

from __future__ import annotations

import numpy as np
import pytest

import nmd_lab as nmd

QUICK = {"draws": 12, "tune": 8, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def with_holes():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + 1
    X = truth + 0.2 * rng.normal(size=truth.shape)
    return np.where(rng.random(X.shape) < 0.3, np.nan, X)


def test_a_fit_is_a_start(with_holes):
    fit = nmd.complete(with_holes, 2, offsets="both", max_iter=50, progress=False)
    posterior = nmd.sample(with_holes, 2, init=fit, **QUICK | {"tune": 0})
    seen = np.nonzero(~np.isnan(with_holes))
    error = np.sqrt(np.mean((posterior.predict(*seen) - with_holes[seen]) ** 2))
    assert error < 0.4
