"""Mixed pairs: T-update and loss of an entry, and arrays of entries, kind by kind."""

import pickle

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.model.column_model import make_column_model
from nmd_lab.model.entry import entry_maps
from nmd_lab.model.model import Model, make_model

pytestmark = pytest.mark.exhaustive

KINDS = (
    make_column_model("identity", "frobenius")._replace(centre=170.0, size=10.0, weight=0.005),
    make_column_model("identity", nmd.losses.Logistic(0))._replace(
        centre=-0.5, size=2.0, weight=0.3
    ),
    make_column_model("relu", "kl")._replace(centre=2.0, size=1.5, weight=0.7),
    make_column_model("identity", "l1")._replace(centre=-3.0, size=0.1, weight=4.0),
    make_column_model("exp", nmd.losses.NegativeBinomial(0.4))._replace(
        centre=1.0, size=0.8, weight=0.3
    ),
    make_column_model("identity", "frobenius")._replace(centre=0.2, size=0.01, weight=5000.0),
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


@pytest.mark.parametrize("position", range(len(KINDS)))
def test_the_t_update_is_the_minimiser(position):
    kind, rng = KINDS[position], np.random.default_rng(position)
    x, v, rho = observed(kind, rng, 50), rng.normal(size=50), np.exp(rng.normal(size=50))
    t, size = np.empty(50), kind.size
    arrays = kind.centre + size * v, x, rho / (kind.weight * size**2), None, None
    entry_maps(kind, False).solve(*arrays, kind.numbers, t)
    t = (t - kind.centre) / size
    grid = np.linspace(-8, 8, 40001)
    for k in range(50):

        def objective(t, k=k):
            losses = kind.losses(np.broadcast_to(np.float64(x[k]), np.shape(t)), t)
            return losses + 0.5 * rho[k] * np.square(t - v[k])

        lowest = objective(grid).min()
        assert objective(np.array([float(t[k])]))[0] <= lowest * (1 + 1e-8) + 1e-7


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
    assert same == MODEL
    assert hash(MODEL) == hash(same)
    assert other != MODEL
    assert MODEL.shown == same.shown != other.shown
    assert make_model("relu", "l1") == make_model("relu", "l1") != make_model("relu", "kl")


def test_the_numbers_of_a_model_are_not_sent_to_another_process():
    model = make_model("identity", nmd.losses.Ordinal([0.0, 1.0, 2.0]))
    assert model.numbers  # they hold an address
    sent = pickle.loads(pickle.dumps(model))
    assert sent == model
    assert "numbers" not in vars(sent)


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
