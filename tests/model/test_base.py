"""Labels, noise and linearity of losses and nonlinearities; pieces, and f from a function.

f(WH) at positions: of fits, of iterates, and without some components.
"""

import copy
import math
import pickle

import numpy as np
import pytest
from helpers import people
from oracles import forward

import nmd_lab as nmd
from nmd_lab.model.column_model import named_model
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.nonlinearities import NONLINEARITIES
from nmd_lab.nonlinearities import MinMax, PiecewiseLinear


def test_each_part_of_the_package_has_a_label_of_its_own_and_each_loss_its_noise():
    for table in (LOSSES, NONLINEARITIES):
        assert len({cls.label for cls in table.values()}) == len(table)
        assert all("label" in vars(cls) for cls in table.values())
    noise = {name: cls.noise for name, cls in LOSSES.items()}
    papers = {name: noise[name] for name in ("frobenius", "l1", "kl")}
    assert papers == {"frobenius": "Gaussian", "l1": "Laplace", "kl": "Poisson"}
    assert all(noise.values())


@pytest.mark.parametrize("f", [name for name in NONLINEARITIES if name != "monotone"])  # learned
def test_only_a_linear_map_says_that_it_is_linear(f):
    f = NONLINEARITIES[f]()
    assert f.linear == (f(-2.0) == -2 * f(1.0) and f(5.0) == 5 * f(1.0))


T = np.array([-7.0, -1.0, -0.3, 0.0, 0.2, 1.0, 4.0, 1e6])


def test_scaled_data_have_the_same_f():
    f = PiecewiseLinear([-1, 2], [0.5, 2, 1], at=(1, 3))
    np.testing.assert_allclose(f.scaled(8.0)(T / 8), f(T) / 8, rtol=1e-13)


def test_a_text_names_a_model_with_lists():
    pieces = named_model("nonlinearity", "piecewise_linear([0], [0.1, 1])")
    assert pieces == PiecewiseLinear([0], [0.1, 1])
    assert named_model("nonlinearity", "minmax(-inf, 2)") == MinMax(-np.inf, 2)
    assert named_model("loss", "ordinal([1, 2, 3])") == nmd.losses.Ordinal([1, 2, 3])


def softplus(t):
    return math.log1p(math.exp(-abs(t))) + max(t, 0.0)


def steep(a):
    return nmd.nonlinearities.Smooth(lambda t: math.tanh(a * t), name="steep")


def test_the_same_function_shares_code():
    assert nmd.nonlinearities.Smooth(softplus) == nmd.nonlinearities.Smooth(softplus)
    assert type(steep(1.0)) is type(steep(1.0))
    assert steep(1.0) != steep(2.0)
    assert float(steep(2.0)(1.0)) == pytest.approx(math.tanh(2))


def test_pickles_and_copies():
    f = nmd.nonlinearities.Smooth(softplus)
    assert pickle.loads(pickle.dumps(f)) == f
    assert copy.deepcopy(steep(1.0)) == steep(1.0)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(steep(1.0))


RNG = np.random.default_rng(0)
HIDDEN = RNG.normal(size=(20, 2))
TABLES = {
    "plain": HIDDEN @ RNG.normal(size=(2, 6)),
    "large": 1e9 * (HIDDEN @ RNG.normal(size=(2, 6))),  # fitted in other units than those of X
    "mixed": people(20).drop(columns="mood"),  # whose cut points are learned after the last iterate
}


@pytest.mark.parametrize("kind", TABLES)
def test_iterates_predict_what_their_fit_would(kind):
    states = []
    options = {"alpha": 0.1, "offsets": "both", "max_iter": 12, "tol": 0, "random_state": 0}
    fit = nmd.complete(TABLES[kind], 2, "identity", callback=states.append, **options)
    last, model = states[fit.parameters["iteration"] - 1], fit.reconstruct().values
    found = last.predict(*np.indices(model.shape, sparse=True)).reshape(model.shape)
    np.testing.assert_allclose(found, model, rtol=1e-6, atol=1e-9)
    first, second = (each.predict(-1, 0, without=[0, 1]) for each in (last, fit))
    np.testing.assert_allclose(first, second)


@pytest.mark.parametrize("f", ["relu", "identity"])
def test_components_are_left_out(f):
    fit = nmd.complete(TABLES["plain"], 3, f, alpha=0.1, offsets="both", random_state=0, max_iter=5)
    (W, H), (mean, b, c) = fit._factors, fit.offsets
    expected = forward(f, W[:, [0, 2]] @ H[[0, 2]] + mean + b[:, None] + c)
    found = fit.predict(np.arange(20)[:, None], np.arange(6), without=1)
    np.testing.assert_allclose(found.reshape(20, 6), expected)
    np.testing.assert_allclose(fit._fitted.without([1]).block(), expected)
    with pytest.raises(IndexError, match=r"without=\[3\] has 3, .* from 0 to 2"):
        fit.predict(0, 0, without=[3])
    with pytest.raises(TypeError, match="give integers"):
        fit.predict(0, 0, without="first")
