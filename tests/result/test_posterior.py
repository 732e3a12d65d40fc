"""The posterior as an object: labels, files, rankings, completed data, and whether it converged."""

from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from made_draws import made_up, plain
from scipy.signal import lfilter

import nmd_lab
from nmd_lab._runtime.progress import StopReason
from nmd_lab.api.messages import message_of_chains
from nmd_lab.data.labels import labels_of
from nmd_lab.result.convergence import effective_sample_size, split_rhat

USERS, ITEMS = list("abcdef"), [10, 20, 30, 40, 50]


@pytest.fixture
def posterior():
    rng = np.random.default_rng(5)
    return made_up(
        pd.DataFrame(np.ones((6, 5)), pd.Index(USERS, name="user"), pd.Index(ITEMS, name="item")),
        log_likelihood=rng.normal(size=(2, 40)),
        predictions=rng.normal(size=(2, 40, 3)).astype(np.float32),
        probe_rows=[0, 1, 5],
        probe_columns=[4, 2, 0],
        stop_reason=StopReason("max_iter", "all sweeps done"),
        parameters={"rank": 3, "draws": 30},
    )


def test_draws_have_the_labels_of_X(posterior):
    draws = posterior.draws
    assert draws.W.dims == ("chain", "draw", "user", "component")
    assert draws.H.dims == ("chain", "draw", "component", "item")
    assert list(draws.user.values) == USERS
    assert list(draws.item.values) == ITEMS
    assert draws.row_offsets.dims == ("chain", "draw", "user")
    assert draws.W.dtype == np.float32
    assert (posterior.rank, len(posterior._draws)) == (3, 60)
    assert posterior.reconstruct().dims == ("user", "item")
    assert posterior.uncertainty(noise=False).sel(user="c", item=40).item() == pytest.approx(
        posterior.predict_std(2, 40, noise=False)[0], rel=1e-5
    )


def test_clashing_names_and_several_dimensions(read_back):
    coords = {"rho": [1.0, 2.0, 3.0, 4.0], "beta": ("draw", ["p", "q", "r"])}
    X = xr.DataArray(np.zeros((3, 2, 4)), coords, ("draw", "y", "rho"), "grid", {"units": "K"})
    posterior = made_up(labels_of(X, sample_dims="draw"))
    assert posterior.draws.H.dims == ("chain", "draw", "component", "y", "X_rho")
    assert posterior.reconstruct().dims == X.dims
    assert posterior.reconstruct().attrs == {"units": "K"}
    again = read_back(posterior)
    xr.testing.assert_identical(again.reconstruct(), posterior.reconstruct())
    xr.testing.assert_identical(again.reconstruct().beta, posterior.reconstruct().beta)
    assert posterior.top(1, k=2).position.size == 2


def test_a_nonlinearity_of_the_user_is_read_with_known(tmp_path):
    class Shrink(nmd_lab.nonlinearities.Nonlinearity):
        name = "shrink"

    made_up(np.zeros((3, 4)), Shrink()).save(tmp_path / "own.nc")
    with pytest.raises(ValueError, match="'shrink', which is unknown: give known="):
        nmd_lab.load(tmp_path / "own.nc")
    assert nmd_lab.load(tmp_path / "own.nc", known=[Shrink]).nonlinearity == Shrink()


@pytest.mark.parametrize("by", ["mean", "lower", "upper"])
def test_the_best_columns(posterior, by):
    v, _, _, _ = plain(posterior)
    level = {"lower": 0.05, "upper": 0.95}.get(by)
    scores = np.quantile(v, level, axis=0) if level else v.mean(axis=0)
    best, order = posterior.top(3, k=3, by=by), np.argsort(-scores[3])[:3]
    np.testing.assert_array_equal(best.position, order)
    np.testing.assert_allclose(best, scores[3][order], atol=2e-6)


def test_singular_values_are_those_of_WH(posterior):
    draws = posterior.draws.isel(chain=1, draw=7)
    product = draws.W.values.astype(float) @ draws.H.values.astype(float)
    wanted = np.linalg.svd(product, compute_uv=False)[:3]
    found = posterior.singular_values.isel(chain=1, draw=7)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    shares = wanted / wanted.sum()
    effective = posterior.singular_values.effective_rank.isel(chain=1, draw=7).item()
    assert effective == pytest.approx(np.prod(shares**-shares))


def test_what_is_shown(posterior):
    text, page = repr(posterior), posterior._repr_html_()
    assert "60 in 2 chains" in text
    assert "Gaussian noise" in text
    assert "all sweeps done" in text
    assert "split R-hat" in page
    assert ET.fromstring(page)[0].tag == "p"
    assert page.startswith("<div")
    assert page.count("<img") == 2
    assert "standard deviation of the noise, nothing is held out" in page
    short = made_up(np.zeros((3, 4)), "minmax", "l1", "after")
    assert "too few sweeps" in repr(short)
    assert "MinMax(-0.4, 0.9)(W H), noise after f, loss l1" in repr(short)
    assert "Too few draws to judge the chains." in short._repr_html_()


def autoregressive(rng, phi, shape):
    """Stationary series along axis 1 with correlation phi between neighbours."""
    x = rng.normal(size=shape)
    x[:, 0] /= np.sqrt(1 - phi**2)
    return lfilter([1], [1, -phi], x, axis=1)


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
def test_chains_apart_by_much_of_an_observation_are_named(rng, distance, share, noise, warned):
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
