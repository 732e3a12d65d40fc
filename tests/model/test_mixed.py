"""Mixed pairs: T-update and loss of an entry, and arrays of entries, part by part."""

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.model.entry import compile_entry
from nmd_lab.model.mixed import MixedPair, Part
from nmd_lab.model.proximal import make_pair

pytestmark = pytest.mark.exhaustive

PARTS = (
    Part(make_pair("identity", "frobenius"), centre=170.0, size=10.0, weight=0.005),
    Part(make_pair("identity", nmd.losses.Logistic(0)), centre=-0.5, size=2.0, weight=0.3),
    Part(make_pair("relu", "kl"), centre=2.0, size=1.5, weight=0.7),
    Part(make_pair("identity", "l1"), centre=-3.0, size=0.1, weight=4.0),
    Part(make_pair("exp", nmd.losses.NegativeBinomial(0.4)), centre=1.0, size=0.8, weight=0.3),
    Part(make_pair("identity", "frobenius"), centre=0.2, size=0.01, weight=5000.0),
)
PAIR = MixedPair(PARTS, np.arange(len(PARTS)))


def observed(part, rng, size):
    """Return values that a part defines."""
    name = part.pair.loss.name
    if name == "logistic":
        return rng.integers(0, 2, size).astype(float)
    if name in ("kl", "negative_binomial"):
        return rng.poisson(3.0, size).astype(float)
    return part.centre + 2 * part.size * rng.normal(size=size)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("position", range(len(PARTS)))
def test_the_t_update_is_the_minimiser(position, dtype):
    part, rng = PARTS[position], np.random.default_rng(position)
    x = observed(part, rng, 50).astype(dtype)
    v, rho = rng.normal(size=50).astype(dtype), dtype(1.0) * np.exp(rng.normal(size=50))
    solve, _ = compile_entry(PAIR.structure, False)
    t = np.array(
        [solve(*each, 0, each[1], position, PAIR.model) for each in zip(v, x, rho, strict=True)]
    )
    grid = np.linspace(-8, 8, 40001)
    for k in range(50):

        def objective(t, k=k):
            losses = part.losses(np.broadcast_to(np.float64(x[k]), np.shape(t)), t)
            return losses + 0.5 * rho[k] * np.square(t - v[k])

        lowest = objective(grid).min()
        assert objective(np.array([float(t[k])]))[0] <= lowest * (1 + 1e-8) + 1e-7


def test_the_loss_of_an_entry_is_that_of_its_part():
    rng = np.random.default_rng(0)
    _, loss = compile_entry(PAIR.structure, False)
    for position, part in enumerate(PARTS):
        x, a = observed(part, rng, 20), rng.normal(size=20)
        found = [loss(*each, 0, 0.0, position, PAIR.model) for each in zip(x, a, strict=True)]
        np.testing.assert_allclose(found, part.losses(x, a), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("of_entries", [False, True])
def test_arrays_go_to_their_parts(of_entries):
    rng = np.random.default_rng(1)
    m, n = 7, len(PARTS)
    which = np.tile(np.arange(n), (m, 1)) if of_entries else np.arange(n)
    pair = MixedPair(PARTS, which)
    rows, columns = np.nonzero(rng.random((m, n)) < 0.8)
    t = rng.normal(size=rows.size)
    x = np.array([observed(PARTS[j], rng, 1)[0] for j in columns])
    expected = pair.expected(t, rows, columns)
    losses, start = pair.losses(x, t, rows, columns), pair.preimage(x, rows, columns)
    for k, j in enumerate(columns):
        one = slice(k, k + 1)
        np.testing.assert_allclose(expected[one], PARTS[j].expected(t[one]), rtol=1e-12)
        np.testing.assert_allclose(losses[one], PARTS[j].losses(x[one], t[one]), rtol=1e-12)
        np.testing.assert_allclose(start[one], PARTS[j].preimage(x[one]), rtol=1e-12)


def test_equal_pairs_are_equal():
    same = MixedPair(PARTS, np.arange(len(PARTS)))
    other = MixedPair(PARTS[::-1], np.arange(len(PARTS)))
    assert same == PAIR
    assert hash(PAIR) == hash(same)
    assert other != PAIR
    assert PAIR.loss == same.loss != other.loss


def test_values_alone_do_not_tell_the_column():
    with pytest.raises(ValueError, match="a loss for each column"):
        PAIR.loss(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="a function for each column"):
        PAIR.nonlinearity(np.ones(2))
