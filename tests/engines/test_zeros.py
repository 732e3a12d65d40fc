"""Sparse zeros without stored multipliers: tiles, the loss of zeros, the envelope, the descents."""

import numpy as np
import pytest
from oracles import PAIRS
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.kernels.envelope import MoreauEnvelope, SparseEnvelope, Tiles
from nmd_lab.kernels.products import StoredEntries
from nmd_lab.model.model import make_model

WITH_OTHERS = [*PAIRS, ("softplus", "frobenius"), ("relu", "huber"), ("leaky_relu", "kl")]
"""The pairs of the paper, and some whose loss of a zero is not 0 at WH = 0, or has no form."""


def random_data(m=23, n=31, density=0.2):
    return sparse.random_array((m, n), density=density, rng=np.random.default_rng(0), format="csr")


def test_a_loss_with_a_value_of_its_own_has_no_form():
    class Own(nmd.Frobenius):
        name = "own"

        @staticmethod
        def value(x, y, p):
            return (x - y) ** 2

    assert Own().of_zero == ""
    assert nmd.Frobenius().of_zero == "square"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("f", "loss"), WITH_OTHERS)
def test_envelope_is_that_of_multipliers_at_the_stored_entries(f, loss, threads, monkeypatch):
    numbers = {"envelope.ROWS": 4, "envelope.ENTRIES": 30, "sweep.MIN_SHARE_ENTRIES": 50}
    for name, number in numbers.items():
        monkeypatch.setattr(f"nmd_lab.kernels.{name}", number)
    X, pair, rng = random_data(), make_model(f, loss), np.random.default_rng(1)
    W, H = rng.normal(size=(23, 3)), rng.normal(size=(3, 31))
    full = observe(X.toarray())
    lean = SparseEnvelope(Tiles(observe(X, absent_are_zeros=True)), pair, threads)
    assert lean.parts == threads
    whole = MoreauEnvelope(StoredEntries(full, pair))
    stored = (X.toarray() != 0).ravel()
    assert whole.U is None
    whole.U = np.zeros(stored.size)
    for penalty, update_from in ((0.7, 0.0), (0.7, 0.7), (1.3, 0.7)):
        before = whole.U.copy()
        found = lean.evaluate(W, H, penalty, update_from)
        if update_from:  # update the multipliers, and leave out those of the zeros
            whole.evaluate(W, H, penalty, update_from)
            whole.U[~stored] = before[~stored]
        wanted = whole.evaluate(W, H, penalty)
        for name in ("value", "data_term", "primal", "gradient_W", "gradient_H"):
            numbers = (getattr(each, name) for each in (found, wanted))
            np.testing.assert_allclose(*numbers, rtol=1e-9, atol=1e-9)
    matrices = (np.concatenate(each.normal_matrices(W, H, 0.9)) for each in (lean, whole))
    np.testing.assert_allclose(*matrices, rtol=1e-9, atol=1e-9)
    lean.forget()
    assert lean.U is None


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")  # max_iter
@pytest.mark.parametrize("loss", ["frobenius", "l1", "kl"])
@pytest.mark.parametrize("kind", ["banded", "random"])
def test_fits_are_at_least_as_good_as_those_with_stored_zeros(kind, loss):
    rng = np.random.default_rng(0)
    X = random_data(80, 100, 0.05)
    if kind == "banded":
        offsets = range(-2, 3)
        X = sparse.diags_array([rng.random(90 - abs(k)) for k in offsets], offsets=offsets)
    options = {"max_iter": 1000, "tol": 1e-6}  # an iteration is one pass, and up to two of dense X
    lean = nmd.decompose(sparse.csr_array(X), 8, "relu", loss, random_state=0, **options)
    full = nmd.decompose(X.toarray(), 8, "relu", loss, random_state=0)
    assert lean.relative_error <= max(1.02 * full.relative_error, 1e-6)


def test_descents_end_where_they_gain_little():
    fit = nmd.decompose(random_data(30, 40), 3, tol=0.05, max_iter=5000, random_state=0)
    assert fit._n_iter < 5000
    assert "2 refinements in turn" in fit.stop_reason
