"""Errors of a model at the observed entries; containers are tested in result/test_entries.py."""

from itertools import permutations

import numpy as np
import pytest

from nmd_lab import metrics


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4)])
def test_plain_arrays_of_any_shape(shape, rng):
    X, Y = rng.random(shape), rng.random(shape)
    X.flat[2] = np.nan
    mask = rng.random(shape) < 0.7
    used = mask & ~np.isnan(X)
    error = (X - Y)[used]
    assert metrics.rmse(X, Y, observed=mask) == pytest.approx(np.sqrt(np.mean(error**2)))
    assert metrics.mae(X, Y, observed=mask.tolist()) == pytest.approx(np.mean(np.abs(error)))
    weights = rng.random(shape)
    w = weights[used]
    expected = np.sqrt(np.sum(w * error**2) / w.sum())
    assert metrics.rmse(X, Y, observed=mask, weights=weights) == pytest.approx(expected)
    expected = np.sum(w * np.abs(error)) / w.sum()
    assert metrics.mae(X, Y, observed=mask, weights=weights) == pytest.approx(expected)


@pytest.mark.parametrize("loss", ["frobenius", "l1", "kl"])
def test_a_whole_number_as_weight_counts_an_entry_so_often(loss, rng):
    X, Y, times = rng.random(20), rng.random(20), rng.integers(0, 4, 20)
    expected = metrics.relative_error(X.repeat(times), Y.repeat(times), loss=loss)
    assert metrics.relative_error(X, Y, loss=loss, weights=times) == pytest.approx(expected)


def test_energy_score_is_that_of_pairs(rng):
    x, draws = rng.normal(size=(4, 3)), rng.normal(size=(5, 4, 3))
    x[0] = x[1, 2] = np.nan
    wanted = []
    for i, at in ((1, [0, 1]), (2, [0, 1, 2]), (3, [0, 1, 2])):
        pairs = [np.linalg.norm(a[i, at] - b[i, at]) for a, b in permutations(draws, 2)]
        away = [np.linalg.norm(a[i, at] - x[i, at]) for a in draws]
        wanted.append((np.mean(away) - np.mean(pairs) / 2) / np.sqrt(len(at)))
    assert metrics.energy_score(x, draws) == pytest.approx(np.mean(wanted))
    with pytest.raises(ValueError, match=r"draws has shape \(1, 4, 3\): give two or more"):
        metrics.energy_score(x, draws[:1])
    with pytest.raises(ValueError, match="X has no observed entry to compare"):
        metrics.energy_score(x * np.nan, draws)
