"""Fits with tensors: those of NumPy arrays up to rounding."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from cluster_runs import ALGORITHM, assert_close
from helpers import check_all_refused
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.model.entry import t_update
from nmd_lab.model.model import make_model

torch = pytest.importorskip("torch")

from nmd_lab.devices import device_of, tensors  # noqa: E402
from nmd_lab.devices.tensors import TensorPasses  # noqa: E402

LOSSES = ["frobenius", "l1", "kl"]
FUNCTIONS = ["relu", "square", nmd.MinMax(0, 1), "modulus", "identity"]
OTHERS = [
    nmd.nonlinearities.LeakyReLU(0.1),
    nmd.nonlinearities.SoftThreshold(0.5),
    nmd.nonlinearities.AbsoluteOffset(0.2),
    nmd.nonlinearities.PiecewiseLinear([-1, 1], [0.2, 1, -0.5]),
]
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def data(f, m=30, n=24, rank=3):
    """Return nonnegative data that f can fit, with noise, and factors to start from."""
    rng = np.random.default_rng(0)
    W, H = rng.normal(size=(m, rank)), rng.normal(size=(rank, n))
    f = make_model(f, "frobenius").nonlinearity
    X = np.abs(np.asarray(f(W @ H)) + 0.05 * rng.normal(size=(m, n)))
    return X, (W + 0.3 * rng.normal(size=W.shape), H + 0.3 * rng.normal(size=H.shape))


def holes(kind, shape):
    rng = np.random.default_rng(1)
    seen = rng.random(shape) < 0.7
    weights = np.where(seen, rng.uniform(0.5, 2, shape), 0)
    return {"dense": {}, "masked": {"observed": seen}, "weighted": {"weights": weights}}[kind]


def both(X, rank, f, loss="frobenius", device="cpu", **options):
    """Fit without and with a device, compare, and return the first fit."""
    one, other = (
        nmd.decompose(X, rank, f, loss, compute=nmd.Compute(device=name), **options)
        for name in (None, device)
    )
    assert_close(one, other, 1e-8)
    return one


def test_a_piece_that_rounding_moves_out_of_the_domain_is_not_chosen():
    """At the end of each piece, f is -2e-16, where the divergence is not a number."""
    f = nmd.nonlinearities.PiecewiseLinear([0], [-0.1, 0.1], at=(0, -1.9))
    v = torch.tensor([-100.0, 100.0], dtype=torch.float64)
    found = TensorPasses(make_model(f, "kl")).solve(v, torch.full_like(v, 1e-20), v / v)
    np.testing.assert_allclose(found, v, atol=1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["dense", "masked", "weighted"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("f", FUNCTIONS, ids=str)
def test_iterations_are_those_of_numpy(f, loss, kind, device):
    X, start = data(f)
    options = {"max_iter": 20, "tol": 0, "init": start, **holes(kind, X.shape)}
    for solver in (ALGORITHM, "auto"):
        both(X, 3, f, loss, device, solver=solver, **options)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("f", FUNCTIONS, ids=str)
def test_descents_on_sparse_zeros_are_those_of_numpy(f, loss, device):
    X, start = data(f, m=60, n=40)
    X[np.random.default_rng(2).random(X.shape) < 0.8] = 0
    X[0], X[:, 0] = 1, 1
    one = both(sparse.csr_array(X), 3, f, loss, device, max_iter=20, tol=0, init=start)
    assert one.history.sizes["iteration"] == 20


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("f", FUNCTIONS + OTHERS, ids=str)
def test_the_update_of_tensors_is_the_exact_one(f, loss):
    rng = np.random.default_rng(3)
    v, x = 2 * rng.normal(size=2000), np.abs(rng.normal(size=2000)) * (rng.random(2000) < 0.8)
    rho = 10 ** rng.uniform(-3, 3, 2000)
    pair = make_model(f, loss)
    t = t_update(pair.only, v, x, rho)
    entries, given = TensorPasses(pair), [torch.from_numpy(each) for each in (v, x, rho)]
    found = entries.solve(*given).numpy()
    both = [
        pair.loss(x, np.asarray(pair.nonlinearity(each))) + rho / 2 * (each - v) ** 2
        for each in (t, found)
    ]
    np.testing.assert_allclose(both[1], both[0], rtol=1e-9, atol=1e-12)  # of ties, either is right
    expected = pair.loss(x, np.asarray(pair.nonlinearity(v)))
    np.testing.assert_allclose(entries.loss(given[1], given[0]), expected, rtol=1e-10, atol=1e-12)


def test_the_divergence_does_not_cancel_near_equal_values():
    x = np.linspace(0.5, 3, 50)
    y = x * (1 + np.logspace(-9, -0.5, 50))
    found = TensorPasses(make_model("identity", "kl")).loss(*map(torch.tensor, (x, y))).numpy()
    np.testing.assert_allclose(found, nmd.KL()(x, y), rtol=1e-7)


def test_constraints_offsets_and_the_paper_rule_are_those_of_numpy():
    X, start = data("relu")
    for options in (
        {"w_constraint": "nonnegative", "h_constraint": "sparse"},
        {"w_constraint": "orthonormal"},
        {"offsets": "both", "alpha": 0.1},
        {"solver": "paper"},
    ):
        given = {"max_iter": 10, "tol": 0, "init": start, "solver": ALGORITHM, **options}
        if "w_constraint" in options:
            given |= {"solver": replace(ALGORITHM, rho="balanced"), "init": "random"}
        both(X, 3, "relu", random_state=0, **given)


def test_blocks_of_an_accelerator_change_nothing(monkeypatch):
    X, start = data("relu", m=300, n=240)
    zeros = sparse.csr_array(np.where(X > 2, X, 0) + np.eye(300, 240))
    options = {"max_iter": 10, "tol": 0, "init": start, "compute": nmd.Compute(device="cpu")}
    before = [nmd.decompose(each, 3, "relu", "kl", **options) for each in (X, zeros)]

    class Large(tensors.TensorDevice):
        def __init__(self, name):
            super().__init__(name)
            self.factor = tensors.ACCELERATOR_FACTOR

    monkeypatch.setattr("nmd_lab.fit.summary.device_of", Large)
    for each, one in zip((X, zeros), before, strict=True):
        assert_close(one, nmd.decompose(each, 3, "relu", "kl", **options), 1e-8)


def test_a_tensor_is_fitted_where_it_lies_and_not_modified():
    X, start = data("relu")
    seen = holes("masked", X.shape)["observed"]
    tensor, options = torch.tensor(X), {"max_iter": 5, "tol": 0, "init": start}
    one = nmd.decompose(X, 3, "relu", observed=seen, compute=nmd.Compute(device="cpu"), **options)
    other = nmd.decompose(tensor, 3, "relu", observed=torch.tensor(seen), **options)
    np.testing.assert_array_equal(one.W, other.W)
    np.testing.assert_array_equal(tensor, X)
    np.testing.assert_array_equal(one.fold_in(X[:3]), one.fold_in(tensor[:3]))
    gradient = torch.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(nmd.decompose(gradient, 3, observed=seen, **options).W, one.W)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_tensors_are_sparse_matrices(layout):
    X = np.where(data("relu")[0] > 3, 1.0, 0) + np.eye(30, 24)
    X[24:, 0] = 1
    cpu, options = nmd.Compute(device="cpu"), {"max_iter": 5, "tol": 0, "random_state": 0}
    one = nmd.decompose(sparse.csr_array(X), 2, "relu", compute=cpu, **options)
    other = nmd.decompose(getattr(torch.tensor(X), layout)(), 2, "relu", **options)
    np.testing.assert_array_equal(one.W, other.W)


def test_tensors_of_other_types():
    X, options = data("relu")[0], {"max_iter": 3, "tol": 0, "random_state": 0}
    half = nmd.decompose(torch.tensor(X).bfloat16(), 3, **options)
    assert half.W.dtype == np.float32
    whole = nmd.decompose(torch.tensor(np.round(X)).int(), 3, **options)
    expected = nmd.decompose(np.round(X), 3, compute=nmd.Compute(device="cpu"), **options)
    np.testing.assert_array_equal(whole.W, expected.W)
    with pytest.raises(TypeError, match="on meta has no array of its entries"):
        nmd.decompose(torch.tensor(X).to("meta"), 3)


def test_what_a_device_cannot_do_is_said_in_a_sentence():
    X, usual = data("relu")[0], {"compute": nmd.Compute(device="cpu"), **holes("masked", (30, 24))}
    fit = lambda options: nmd.decompose(X, 3, **usual | options)  # noqa: E731
    check_all_refused([
        ("device='abacus' is not there", fit, {"compute": nmd.Compute(device="abacus")}),
        ("have no form for tensors", fit, {"nonlinearity": "sigmoid"},
         {"loss": nmd.losses.Huber(1.0)}),
        ("device='cpu' does not go with a loss or nonlinearity", fit, {"loss": {}}),
        ("split='observed'", fit, {"solver": nmd.ADMM(split="observed")}),
        ("does not go with at_most=", fit, {"observed": None, "at_most": np.eye(30, 24) > 0}),
    ])  # fmt: skip


def test_without_pytorch_the_message_says_how_to_get_it(monkeypatch):
    device_of.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        nmd.decompose(np.eye(5), 1, compute=nmd.Compute(device="cpu"))
