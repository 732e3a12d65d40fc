"""Pictures and generated matrices: what they hold and how they are labelled."""

from functools import partial

import numpy as np
import pytest
import xarray as xr
from helpers import check_all_refused

from nmd_lab import datasets


@pytest.mark.parametrize("name", ["china", "flower"])
def test_photograph(name):
    pytest.importorskip("PIL")
    gray = datasets.photograph(name)
    colour = datasets.photograph(name, gray=False)
    assert gray.dims == ("y", "x")
    assert gray.shape == (427, 640)
    assert colour.dims == ("y", "x", "channel")
    assert 0 <= float(gray.min()) < 0.1 < 0.8 < float(gray.max()) <= 1
    luma = colour @ xr.DataArray([0.299, 0.587, 0.114], dims="channel")
    np.testing.assert_allclose(gray, luma)


def test_photograph_is_scaled_by_averaging():
    pytest.importorskip("PIL")
    small = datasets.photograph(size=(61, 160))
    means = datasets.photograph().coarsen(y=7, x=4).mean()
    assert small.shape == (61, 160)
    np.testing.assert_allclose(small, means, atol=1.5 / 255)  # Pillow rounds to bytes


def test_digits_are_labelled():
    X = datasets.digits()
    assert X.sizes == {"image": 1797, "pixel": 64}
    assert float(X.min()) == 0
    assert float(X.max()) == 1
    assert int((X.digit == 3).sum()) == 183
    # a zero has a hole in its middle, a one has ink there
    middle = X[:, (X.y - 3.5) ** 2 + (X.x - 3.5) ** 2 < 1].mean("pixel")
    assert float(middle[X.digit == 0].mean()) < 0.2 < 0.6 < float(middle[X.digit == 1].mean())
    xr.testing.assert_identical(datasets.digits(20), X[:20])


def test_synthetic_is_what_it_says():
    made = partial(datasets.synthetic, 60, 50, 4, "modulus", random_state=1)
    data = made(noise=0.1, missing=0.3)
    np.testing.assert_allclose(data.clean, np.abs(data.W.values @ data.H.values))
    noise = (data.X - data.clean).values
    seen = ~np.isnan(noise)
    assert seen.mean() == pytest.approx(0.7, abs=0.03)
    size = np.linalg.norm(noise[seen]) / np.linalg.norm(data.clean.values[seen])
    assert size == pytest.approx(0.1, rel=0.05)
    assert float(data.W.std()) == pytest.approx(1, abs=0.1)
    xr.testing.assert_identical(data, made(noise=0.1, missing=0.3))
    plain = made()
    xr.testing.assert_identical(plain.X, plain.clean.rename("X"))


SIZES = {"m": 5, "n": 4, "rank": 2}
make_ratings = partial(datasets.make_ratings, n_users=30, n_items=30, n_ratings=100)


def test_what_makes_no_sense_is_refused():
    pytest.importorskip("PIL")
    check_all_refused([
        ("name='cat' is unknown: choose one of .'china'", lambda: datasets.photograph("cat")),
        ("size=.* makes no sense", lambda: datasets.photograph(size=(1000, 100))),
        ("n=0 is out of range", lambda: datasets.digits(0)),
        ("noise=-1", lambda: datasets.synthetic(**SIZES, noise=-1)),
        ("missing=1 is out of range: give a", lambda: datasets.synthetic(**SIZES, missing=1)),
        ("rank=9 exceeds", lambda: datasets.synthetic(**SIZES | {"rank": 9})),
        ("'cube' is unknown", lambda: datasets.synthetic(**SIZES, nonlinearity="cube")),
        ("scale=-1", lambda: datasets.gaussian(np.ones(3), -1)),
        ("fraction=2", lambda: datasets.salt_and_pepper(np.ones(3), 2)),
        ("peak=0", lambda: datasets.poisson(np.ones(3), 0)),
        ("edition='2m' is unknown: did you mean '32m'", lambda: datasets.movielens("2m")),
        ("n_ratings=29 is out of range: give from 30", lambda: make_ratings(n_ratings=29)),
        ("to 300, a third", lambda: make_ratings(n_ratings=301)),
        ("rank=31 exceeds", lambda: make_ratings(rank=31)),
        ("step=2 is unknown", lambda: make_ratings(step=2)),
        ("noise=-1 ", lambda: make_ratings(noise=-1)),
        ("negative value -1", lambda: datasets.poisson(-np.ones(3))),
    ])  # fmt: skip


def test_noise_has_the_size_it_should():
    clean = np.full((300, 300), 0.4)
    assert (datasets.gaussian(clean, 0.2, random_state=0) - clean).std() == pytest.approx(
        0.2, rel=0.02
    )
    spotted = datasets.salt_and_pepper(clean, 0.3, low=-1, high=2, random_state=0)
    for value, share in ((-1, 0.15), (2, 0.15), (0.4, 0.7)):
        assert (spotted == value).mean() == pytest.approx(share, abs=0.01)
    counts = datasets.poisson(clean, peak=50, random_state=0)
    assert counts.mean() == pytest.approx(0.4, rel=0.01)
    assert counts.var() == pytest.approx(0.4 / 50, rel=0.03)
    np.testing.assert_allclose(counts * 50, np.round(counts * 50))


@pytest.mark.parametrize(
    ("noise", "amount"),
    [(datasets.gaussian, 0.1), (datasets.salt_and_pepper, 0.5), (datasets.poisson, 5.0)],
)
def test_noise_keeps_labels_holes_and_its_input(noise, amount):
    X = datasets.digits(5).where(lambda x: x.y != 2)
    before = X.copy(deep=True)
    noisy = noise(X, amount, random_state=0)
    xr.testing.assert_identical(X, before)
    assert noisy.name == "ink"
    assert noisy.attrs == X.attrs
    xr.testing.assert_identical(noisy.coords.to_dataset(), X.coords.to_dataset())
    np.testing.assert_array_equal(np.isnan(noisy), np.isnan(X))
    xr.testing.assert_identical(noisy, noise(X, amount, random_state=0))
    assert isinstance(noise(X.values, amount), np.ndarray)
