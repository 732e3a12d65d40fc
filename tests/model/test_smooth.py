"""`Smooth`: f from a function."""

import copy
import math
import pickle

import numpy as np
import pytest

import nmd_lab as nmd


def softplus(t):
    return math.log1p(math.exp(-abs(t))) + max(t, 0.0)


def steep(a):
    return nmd.nonlinearities.Smooth(lambda t: math.tanh(a * t), name="steep")


@pytest.fixture
def X(rng):
    return np.logaddexp(0, rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)))


def test_the_same_function_shares_code():
    assert nmd.nonlinearities.Smooth(softplus) == nmd.nonlinearities.Smooth(softplus)
    assert type(steep(1.0)) is type(steep(1.0))
    assert steep(1.0) != steep(2.0)
    assert float(steep(2.0)(1.0)) == pytest.approx(math.tanh(2))


@pytest.mark.exhaustive
def test_a_fit_finds_what_made_the_data_and_can_be_saved(X, tmp_path):
    fit = nmd.decompose(X, 2, nmd.nonlinearities.Smooth(softplus), random_state=0)
    assert fit.relative_error < 1e-5
    fit.save(tmp_path / "fit.nc")
    with pytest.raises(ValueError, match=r"'softplus', which is unknown: give known="):
        nmd.load(tmp_path / "fit.nc")
    again = nmd.load(tmp_path / "fit.nc", known=[nmd.nonlinearities.Smooth(softplus)])
    np.testing.assert_allclose(again.reconstruct(), fit.reconstruct())


@pytest.mark.exhaustive
def test_python_alone_gives_the_same_fit(X):
    options = {"random_state": 0, "max_iter": 3, "tol": 0, "solver": nmd.ADMM(refine=False)}
    slow = nmd.nonlinearities.Smooth(softplus, compile=False)
    fits = [
        nmd.decompose(X[:8, :6], 2, f, **options)
        for f in (nmd.nonlinearities.Smooth(softplus), slow)
    ]
    np.testing.assert_allclose(fits[0].W, fits[1].W, rtol=1e-8, atol=1e-10)


def test_pickles_and_copies():
    f = nmd.nonlinearities.Smooth(softplus)
    assert pickle.loads(pickle.dumps(f)) == f
    assert copy.deepcopy(steep(1.0)) == steep(1.0)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(steep(1.0))


def test_the_start_is_near_x_and_not_at_infinity():
    f = nmd.nonlinearities.Smooth(softplus)
    t = f.pseudo_inverse(np.array([0.5, 3.0, 100.0]))
    np.testing.assert_allclose(f(t), [0.5, 3.0, 100.0], rtol=1e-2)
    assert -10 < f.pseudo_inverse(np.array([0.0]))[0] < -2
