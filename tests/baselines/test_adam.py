"""Adam: its steps, its formulas in PyTorch, its sweep over learning rates."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

import nmd_lab
from nmd_lab.baselines import adam, adam_sweep
from nmd_lab.baselines._latent import best_low_rank
from nmd_lab.baselines.adam import FORWARD, VALUE
from nmd_lab.model.losses import KL


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_adam_is_adam(torch, small):
    """Against Adam as its paper has it, with the gradient by hand."""
    W, H = (np.array(factor) for factor in best_low_rank(small, 3))
    fit = adam(small, 3, init=(W, H), max_iter=25, tol=0, learning_rate=0.02)
    factors, m, v = [W, H], [0.0, 0.0], [0.0, 0.0]
    for t in range(1, 26):
        A = factors[0] @ factors[1]
        G = np.where(A > 0, A - small, 0)
        for k, gradient in enumerate((G @ factors[1].T, factors[0].T @ G)):
            m[k] = 0.9 * m[k] + 0.1 * gradient
            v[k] = 0.999 * v[k] + 0.001 * gradient**2
            step = m[k] / (1 - 0.9**t) / (np.sqrt(v[k] / (1 - 0.999**t)) + 1e-8)
            factors[k] = factors[k] - 0.02 * step
    assert fit.parameters["iteration"] == 25
    np.testing.assert_allclose(fit.W, factors[0], atol=1e-6)
    np.testing.assert_allclose(fit.H, factors[1], atol=1e-6)


@pytest.mark.parametrize(("f", "d"), list(itertools.product(FORWARD, VALUE)))
def test_adams_formulas_are_ours(torch, f, d, rng):
    f, d = f(), d()
    x, t = np.abs(rng.normal(size=40)), rng.normal(size=40)
    x[:5], t[3:8] = 0, 0
    value = VALUE[type(d)](torch, torch.tensor(x), FORWARD[type(f)](torch, f, torch.tensor(t)))
    np.testing.assert_allclose(value.numpy(), d(x, f(t)), rtol=1e-12, atol=1e-12)
    X = np.abs(rng.normal(size=(12, 10)))
    fit = adam(X, 2, f, d, init="random", max_iter=60, random_state=0)
    assert np.isfinite(fit.history.objective).all()
    assert fit.objective < float(fit.history.objective[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_floor_of_kl_is_ours_for_data_of_any_size(torch, dtype):
    """A zero has no floor, and its gradient is finite."""
    x = np.array([0.0, 0.0, 1e-20, 1.0], dtype)
    y = torch.tensor(np.array([0.0, 3.0, 0.0, 1e-13], dtype), requires_grad=True)
    value = VALUE[KL](torch, torch.tensor(x), y)
    np.testing.assert_allclose(value.detach(), KL()(x, y.detach().numpy()), rtol=1e-5, atol=1e-30)
    value.sum().backward()
    assert torch.isfinite(y.grad).all()
    assert y.grad[1] == 1


def test_the_sweep_of_adam_takes_the_best_learning_rate(torch, small):
    rates = (1e-4, 0.03, 3.0)
    fits = [adam(small, 3, learning_rate=rate, max_iter=80) for rate in rates]
    assert np.argmin([fit.objective for fit in fits]) == 1
    best = adam_sweep(small, 3, learning_rates=rates, max_iter=80)
    assert best.parameters["learning_rate"] == 0.03
    np.testing.assert_array_equal(best.W, fits[1].W)
    alone = adam_sweep(small, 3, learning_rates=[1e300, 0.03], max_iter=80)
    assert alone.parameters["learning_rate"] == 0.03
    with pytest.raises(FloatingPointError, match="overflowed"):
        adam_sweep(small, 3, learning_rates=[1e300], max_iter=3)


def test_adam_gives_the_threads_back(torch, small):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        adam(small, 3, max_iter=2)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_what_to_do_without_torch(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ImportError, match=r'adam needs PyTorch: pip install "nmd-lab\[baselines\]"'
    ):
        adam(small, 3)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (["relu", "kl"], {"learning_rate": 0}, "learning_rate=0 is out of range"),
        (["swish"], {}, "nonlinearity='swish' is unknown"),
    ],
)
def test_what_adam_refuses(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        adam(np.ones((3, 3)), 1, *arguments, **options)


def test_adam_refuses_what_torch_does_not_know():
    class Cube(nmd_lab.Square):
        name = "cube"

    class Huber(nmd_lab.L1):
        name = "huber"

    with pytest.raises(ValueError, match="nonlinearity='cube' is not one of adam's"):
        adam(np.ones((3, 3)), 1, Cube())
    with pytest.raises(ValueError, match="loss='huber' is not one of adam's"):
        adam(np.ones((3, 3)), 1, "relu", Huber())
    with pytest.raises(ValueError, match="learning_rates is empty"):
        adam_sweep(np.ones((3, 3)), 1, learning_rates=[])
