"""Split R-hat and effective sample size on series whose correlation is known."""

from __future__ import annotations

import numpy as np
import pytest
from made_draws import made_up

from nmd_lab.result.convergence import effective_sample_size, split_rhat


def autoregressive(rng, phi, shape):
    """Stationary series along axis 1 with correlation phi between neighbours."""
    x = rng.normal(size=shape)
    x[:, 0] /= np.sqrt(1 - phi**2)
    for t in range(1, shape[1]):
        x[:, t] += phi * x[:, t - 1]
    return x


@pytest.mark.parametrize("phi", [-0.3, 0.0, 0.5, 0.9])
def test_size_of_a_series_of_known_correlation(rng, phi):
    x = autoregressive(rng, phi, (4, 5000, 6))
    wanted = 20_000 * (1 - phi) / (1 + phi)
    sizes = effective_sample_size(x)
    assert sizes.shape == (6,)
    assert np.mean(sizes) == pytest.approx(wanted, rel=0.1)
    assert np.all(np.abs(split_rhat(x) - 1) < 0.02)


@pytest.mark.parametrize(
    ("seed", "phi", "shape", "change", "rhat", "size"),
    [
        (0, 0.5, (4, 100), lambda x: x, 1.00631217, 147.92649858),
        (1, 0.9, (2, 51), np.exp, 1.23977051, 10.3407076),
        (2, 0.0, (3, 200), lambda x: x * [[1], [1], [3]], 1.18655695, 518.80259551),
        (3, -0.3, (1, 40), np.round, None, 64.08239965),
    ],
)
def test_numbers_are_those_of_arviz(seed, phi, shape, change, rhat, size):
    x = change(autoregressive(np.random.default_rng(seed), phi, shape))
    assert effective_sample_size(x) == pytest.approx(size)
    assert rhat is None or split_rhat(x) == pytest.approx(rhat)  # ArviZ wants two chains


def test_short_and_constant_series():
    assert np.isnan(split_rhat(np.ones((2, 3))))
    assert np.isnan(effective_sample_size(np.ones((2, 0, 5)))).shape == (5,)
    assert split_rhat(np.ones((2, 8))) == 1
    assert np.isnan(effective_sample_size(np.ones((2, 8))))
    assert split_rhat(np.repeat([[0.0], [1.0]], 8, axis=1)) == np.inf
    assert np.isnan(split_rhat(np.full((1, 8), np.nan)))


def test_what_counts_as_converged(rng):
    likelihood, probes = rng.normal(size=(2, 300)), rng.normal(size=(2, 300, 40))
    kept = {"probe_rows": np.zeros(40, int), "probe_columns": np.zeros(40, int)}
    X = np.zeros((3, 4))
    apart = np.array([[0], [3]])
    good = made_up(X, log_likelihood=likelihood, predictions=probes, **kept)
    assert good.converged
    assert good.rhat.prediction.sizes == {"probe": 40}
    assert good.ess.log_likelihood.item() == effective_sample_size(likelihood)
    assert not made_up(X, log_likelihood=likelihood + apart).converged
    for n_bad, converged in ((2, True), (3, False)):
        bad = probes.copy()
        bad[..., :n_bad] += apart[..., None]
        assert made_up(X, log_likelihood=likelihood, predictions=bad, **kept).converged == converged
