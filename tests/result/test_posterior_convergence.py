"""Split R-hat and effective sample size on series whose correlation is known."""

import numpy as np
import pytest
from made_draws import made_up

from nmd_lab.api.messages import message_of_chains
from nmd_lab.result.convergence import effective_sample_size, split_rhat


def autoregressive(rng, phi, shape):
    """Stationary series along axis 1 with correlation phi between neighbours."""
    x = rng.normal(size=shape)
    x[:, 0] /= np.sqrt(1 - phi**2)
    for t in range(1, shape[1]):
        x[:, t] += phi * x[:, t - 1]
    return x


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
    assert np.isnan(effective_sample_size(np.ones((2, 0))))
    assert split_rhat(np.ones((2, 8))) == 1
    assert np.isnan(effective_sample_size(np.ones((2, 8))))
    assert split_rhat(np.repeat([[0.0], [1.0]], 8, axis=1)) == np.inf
    assert np.isnan(split_rhat(np.full((1, 8), np.nan)))


def chains_apart(rng, distance, share, noise=1.0):
    """Two chains whose predictions are apart, in standard deviations of their mean, in a share."""
    H = rng.normal(size=(2, 300, 40, 1))
    H[1, :, : round(40 * share)] += distance
    likelihood = rng.normal(size=(2, 300)) + np.array([[0], [9]])
    arrays = {"W": np.ones((2, 300, 3, 1)), "H": H, "rho": np.full((2, 300), noise**-2.0)}
    offsets = {"row_offsets": np.zeros((2, 300, 3)), "column_offsets": np.zeros((2, 300, 40))}
    probes = {"probe_rows": np.zeros(40, int), "probe_columns": np.arange(40)}
    predictions = {"predictions": H[..., 0], "log_likelihood": likelihood, "mean": 0.0}
    return made_up(np.zeros((3, 40)), draws=300, **arrays, **offsets, **predictions, **probes)


@pytest.mark.parametrize(
    ("distance", "share", "noise", "warned"),
    [(0, 1, 1, False), (1, 0.05, 1, False), (1, 0.1, 1, True), (1, 1, 9, False), (6, 1, 9, True)],
)
def test_chains_that_differ_by_much_of_an_observation_are_named(
    rng, distance, share, noise, warned
):
    posterior = chains_apart(rng, distance, share, noise)
    assert posterior.converged == (not warned)
    message = str(message_of_chains(posterior))
    assert (f"{share:.0%} of the predictions" in message) == warned
    assert ("have not converged" in posterior._repr_html_()) == warned


def test_short_chains_are_not_judged(rng):
    posterior = made_up(np.zeros((3, 4)), draws=3, log_likelihood=rng.normal(size=(2, 3)))
    assert not posterior.converged
    assert "3 sweeps after tuning, too few to judge them" in str(message_of_chains(posterior))
    assert np.isnan(posterior.rhat.log_likelihood)
