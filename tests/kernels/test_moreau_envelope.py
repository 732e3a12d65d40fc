"""The augmented Lagrangian with T eliminated: against closed forms, in every form of the data."""

import numpy as np
import pytest
from oracles import PAIRS, distance, exact_prox, forward
from scipy import sparse

from nmd_lab.data.inputs import observe
from nmd_lab.kernels.envelope import MoreauEnvelope, symmetric
from nmd_lab.kernels.products import StoredEntries
from nmd_lab.model.model import make_model
from nmd_lab.model.positive import KL_FLOOR
from nmd_lab.problem.problem import Problem

FORMS = ["dense", "masked", "weighted", "stored", "stored and weighted", "zeros"]


def data(form):
    """The observations in some form, and the X and weights that they stand for."""
    of_X, of_zeros, of_holes, of_weights = np.random.default_rng(0).random((4, 9, 7))
    X, seen = 2 * of_X * (of_zeros > 0.2), of_holes < 0.6
    weights = np.where(seen, of_weights + 0.3, 0)
    entries = sparse.csr_array((X[seen], np.nonzero(seen)), shape=X.shape)
    if form == "dense":
        return observe(X), X, np.ones_like(X)
    if form == "zeros":
        observed = observe(entries, absent_are_zeros=True)
        return observed, np.where(seen, X, 0), np.ones_like(X)
    given = entries if "stored" in form else X
    if "weighted" in form:
        return observe(given, weights=weights), X, weights
    return observe(given, observed=seen), X, seen.astype(float)


def factors(seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(9, 3)), rng.normal(size=(3, 7))


def envelope_of(observations, f, loss, threads=1):
    return MoreauEnvelope(StoredEntries(observations, make_model(f, loss)), threads)


def expected(A, X, weights, f, loss, penalty, U=0.0):
    """Value, loss, ‖T - A‖ and the gradient with respect to A, by the definition."""
    V, seen = A - U, weights > 0
    shares = np.where(seen, weights, 1)
    T = exact_prox(V, X, penalty / shares, f, loss)
    floor = KL_FLOOR * X if loss == "kl" else -np.inf
    losses = (weights * distance(loss, X, np.maximum(forward(f, t), floor)) for t in (T, A))
    at_T, at_A = (each[seen].sum() for each in losses)
    away = np.where(seen, T - V, 0)
    value = at_T + penalty / 2 * (away**2).sum()
    return value, at_A, np.linalg.norm((T - A)[seen]), -penalty * away


def assert_equals(found, W, H, numbers, rtol):
    value, data_term, primal, gradient = numbers
    assert found.value == pytest.approx(value, rel=rtol)
    assert found.data_term == pytest.approx(data_term, rel=rtol)
    assert found.primal == pytest.approx(primal, rel=rtol)
    for part, whole in ((found.gradient_W, gradient @ H.T), (found.gradient_H, W.T @ gradient)):
        np.testing.assert_allclose(part, whole, rtol=rtol, atol=rtol * np.abs(whole).max())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_updates_are_those_of_the_method_of_multipliers(f, loss, form, threads, monkeypatch):
    monkeypatch.setattr("nmd_lab.kernels.sweep.MIN_SHARE_ENTRIES", 10)
    observations, X, weights = data(form)
    envelope, U = envelope_of(observations, f, loss, threads), np.zeros_like(X)
    assert envelope.parts == threads
    penalty = 0.7
    for seed, new_penalty in ((1, 0.7), (2, 2.0), (3, 0.9)):
        W, H = factors(seed=seed)
        V = W @ H - U
        T = exact_prox(V, X, penalty / np.where(weights > 0, weights, 1), f, loss)
        U = (T - V) * penalty / new_penalty
        found = envelope.evaluate(W, H, new_penalty, update_from=penalty)
        assert_equals(found, W, H, expected(W @ H, X, weights, f, loss, new_penalty, U), 1e-7)
        penalty = new_penalty
    envelope.forget()
    found = envelope.evaluate(W, H, penalty)
    assert_equals(found, W, H, expected(W @ H, X, weights, f, loss, penalty), 1e-8)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_normal_matrices(f, loss, threads, monkeypatch):
    """Entries with a kink of the T-update near by, at which it has no slope, are left out."""
    monkeypatch.setattr("nmd_lab.kernels.sweep.MIN_SHARE_ENTRIES", 10)
    _, X, weights = data("weighted")
    W, H = factors()
    penalty, V = 1.3, W @ H
    shares = penalty / np.where(weights > 0, weights, 1)

    def slope(step):
        return (exact_prox(V + step, X, shares, f, loss) - exact_prox(V, X, shares, f, loss)) / step

    smooth = np.abs(slope(1e-5) - slope(1e-3)) < 1e-2
    assert smooth.mean() > 0.7
    curvature = penalty * np.clip(1 - slope(1e-5), 0, 1) * (weights > 0) * smooth
    envelope = envelope_of(observe(X, weights=weights * smooth), f, loss, threads)
    rows, columns = (symmetric(each, 3) for each in envelope.normal_matrices(W, H, penalty))
    close = {"rtol": 5e-3, "atol": 5e-3}
    np.testing.assert_allclose(rows, np.einsum("ij,aj,bj->iab", curvature, H, H), **close)
    np.testing.assert_allclose(columns, np.einsum("ij,ia,ib->jab", curvature, W, W), **close)


@pytest.mark.parametrize("form", FORMS)
def test_natural_penalty(form):
    observations, X, weights = data(form)
    mean = np.average(X, weights=weights)
    spread = np.sum(weights * (X - mean) ** 2) / 2
    totals = {loss: np.sum(weights * distance(loss, X, mean)) for loss in ("l1", "kl")}
    for loss, ratio in {"frobenius": 1, **{k: each / spread for k, each in totals.items()}}.items():
        found = Problem(observations, make_model("relu", loss)).penalty_scale
        assert found == pytest.approx(ratio)
    square = Problem(observations, make_model("square", "l1")).penalty_scale
    root, middle = np.sqrt(X), np.average(np.sqrt(X), weights=weights)
    assert square == pytest.approx(2 * totals["l1"] / np.sum(weights * (root - middle) ** 2))
