"""Mixed pairs: arrays of entries, kind by kind."""

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.model.column_model import make_column_model
from nmd_lab.model.model import Model, make_model

pytestmark = pytest.mark.exhaustive

KINDS = tuple(
    make_column_model(f, d)._replace(centre=centre, size=size, weight=weight)
    for f, d, centre, size, weight in (
        ("identity", "frobenius", 170.0, 10.0, 0.005),
        ("identity", nmd.losses.Logistic(0), -0.5, 2.0, 0.3),
        ("relu", "kl", 2.0, 1.5, 0.7),
        ("identity", "l1", -3.0, 0.1, 4.0),
        ("exp", nmd.losses.NegativeBinomial(0.4), 1.0, 0.8, 0.3),
        ("identity", "frobenius", 0.2, 0.01, 5000.0),
    )
)
MODEL = Model(KINDS, np.arange(len(KINDS)))


def observed(kind, rng, size):
    """Return values that a kind defines."""
    name = kind.loss.name
    if name == "logistic":
        return rng.integers(0, 2, size).astype(float)
    if name in ("kl", "negative_binomial"):
        return rng.poisson(3.0, size).astype(float)
    return kind.centre + 2 * kind.size * rng.normal(size=size)


@pytest.mark.parametrize("of_entries", [False, True])
def test_arrays_go_to_their_kinds(of_entries):
    rng = np.random.default_rng(1)
    m, n = 7, len(KINDS)
    which = np.tile(np.arange(n), (m, 1)) if of_entries else np.arange(n)
    model = Model(KINDS, which)
    rows, columns = np.nonzero(rng.random((m, n)) < 0.8)
    t = rng.normal(size=rows.size)
    x = np.array([observed(KINDS[j], rng, 1)[0] for j in columns])
    expected = model.expected(t, rows, columns)
    losses, start = model.losses(x, t, rows, columns), model.pseudo_inverse(x, rows, columns)
    for k, j in enumerate(columns):
        one = slice(k, k + 1)
        np.testing.assert_allclose(expected[one], KINDS[j].expected(t[one]), rtol=1e-12)
        np.testing.assert_allclose(losses[one], KINDS[j].losses(x[one], t[one]), rtol=1e-12)
        np.testing.assert_allclose(start[one], KINDS[j].pseudo_inverse(x[one]), rtol=1e-12)


def test_equal_models_are_equal():
    same = Model(KINDS, np.arange(len(KINDS)))
    other = Model(KINDS[::-1], np.arange(len(KINDS)))
    assert same == MODEL != other
    assert hash(MODEL) == hash(same)
    assert MODEL.shown == same.shown != other.shown
    assert make_model("relu", "l1") == make_model("relu", "l1") != make_model("relu", "kl")


def test_values_alone_do_not_tell_the_column():
    for shown in MODEL.shown:
        with pytest.raises(ValueError, match="one for each column"):
            shown(np.ones(2), np.ones(2))


def test_the_loss_of_a_column_is_shown():
    functions, losses = MODEL.shown
    assert [loss.name for loss in losses] == [kind.loss.name for kind in KINDS]
    assert functions[4] == nmd.nonlinearities.Exp()
    by_entry = Model(KINDS, np.tile(np.arange(len(KINDS)), (2, 1))).shown[1]
    assert by_entry[1, 3] == nmd.L1()
    with pytest.raises(IndexError, match="row, column"):
        by_entry[1]
