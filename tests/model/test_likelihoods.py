"""Likelihoods against SciPy's distributions, and what they learn against SciPy's optimisers."""

import itertools

import numpy as np
import part_oracles
import pytest
from scipy import stats
from scipy.optimize import minimize, minimize_scalar

import nmd_lab as nmd
from nmd_lab.losses import NegativeBinomial, Ordinal  # for eval of a repr
from nmd_lab.model.column_model import make_column_model
from nmd_lab.model.model import Model, make_model
from nmd_lab.nonlinearities import Monotone, PiecewiseLinear  # likewise

FORMULAS = [
    (nmd.Frobenius(), ("frobenius",)), (nmd.L1(), ("l1",)), (nmd.KL(), ("kl",)),
    (nmd.losses.Huber(0.5), ("huber", 0.5)), (nmd.losses.Quantile(0.8), ("quantile", 0.8)),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "formula"), FORMULAS, ids=lambda each: getattr(each, "name", ""))
def test_values_and_slopes_are_those_of_the_formula(loss, formula):
    p, step = loss.parameters, 1e-4
    for x, y in itertools.product((1.0, 2.0), (0.6, 1.0, 2.0, 3.5)):
        before, here, after = part_oracles.distance(formula, x, y + step * np.arange(-1, 2))
        slope, curvature = loss.derivatives(x, y, p)
        assert float(loss(x, y)) == pytest.approx(here, abs=1e-15)
        assert slope == pytest.approx((after - before) / 2 / step if x != y else 0, rel=1e-6)
        assert x == y or curvature == pytest.approx((after - 2 * here + before) / step**2, abs=1e-6)


@pytest.mark.parametrize("dispersion", [1e-7, 1e-3, 0.4, 30.0])
def test_negative_binomial_is_a_probability(dispersion):
    x = np.array([0, 1, 2, 7, 40, 900.0])[:, None]
    y = np.array([1e-3, 0.5, 3.0, 45.0, 2900.0])  # above the floor of reported values
    size = 1 / dispersion
    wanted = -stats.nbinom.logpmf(x, size, size / (size + y))
    rtol = 1e-8 if dispersion > 1e-5 else 1e-6  # SciPy subtracts large logarithms of Γ
    np.testing.assert_allclose(nmd.losses.NegativeBinomial(dispersion)(x, y), wanted, rtol=rtol)


def test_ordinal_is_a_probability():
    loss = nmd.losses.Ordinal([1, 2, 5], [-0.5, 1.5])
    y = np.array([-3.0, 0.0, 2.0, 4.0])
    ends = np.array([-np.inf, -0.5, 1.5, np.inf])
    shares = stats.norm.cdf(ends[1:, None] - y) - stats.norm.cdf(ends[:-1, None] - y)
    x = np.array([1.0, 2.0, 5.0])[:, None]
    np.testing.assert_allclose(loss(x, y), -np.log(shares), rtol=1e-10)
    np.testing.assert_allclose(loss.expected(y), (x * shares).sum(axis=0), rtol=1e-12)


def test_logistic_codings():
    zero_one, signs = nmd.losses.Logistic(), nmd.losses.Logistic(-1)
    np.testing.assert_allclose(zero_one([0, 1], 0.7), np.logaddexp(0, [0.7, -0.7]))
    np.testing.assert_allclose(signs([-1, 1], 0.7), np.logaddexp(0, [0.7, -0.7]))
    assert float(zero_one.expected(np.array(0.0))) == 0.5
    assert float(signs.expected(np.array(0.0))) == 0.0
    np.testing.assert_allclose(zero_one([0.0, 1.0], [-800, 800]), 0)
    assert nmd.losses.Logistic().for_data(np.array([-1.0, 1.0])) == signs
    assert nmd.losses.Logistic().for_data(np.ones(3)) == nmd.losses.Logistic(0)


def counts(seed=0, n=4000):
    rng = np.random.default_rng(seed)
    y = rng.gamma(1.5, 3, n) + 0.1
    size = 1 / 0.3
    return rng.negative_binomial(size, size / (size + y)).astype(float), y, rng.uniform(0.5, 2, n)


def test_the_learned_dispersion_has_the_highest_likelihood():
    x, y, w = counts()
    first = nmd.losses.NegativeBinomial().for_data(x, w)
    learned = first.learned(x, y, w)

    def objective(logarithm):
        size = np.exp(-logarithm)
        return -w @ stats.nbinom.logpmf(x, size, size / (size + y))

    best = minimize_scalar(objective, bounds=(-6, 4), method="bounded", options={"xatol": 1e-8})
    assert np.sum(w * learned(x, y)) <= best.fun * (1 + 1e-9)
    assert learned.dispersion == pytest.approx(np.exp(best.x), rel=1e-3)
    assert learned.learned(x, y, w).dispersion == pytest.approx(learned.dispersion, rel=1e-3)
    fixed = nmd.losses.NegativeBinomial(2.0)
    assert fixed.learned(x, y, w) is fixed
    assert fixed.learns is False


def test_learned_cut_points_have_the_highest_likelihood():
    rng = np.random.default_rng(1)
    y, w = rng.normal(size=3000) * 1.5, rng.uniform(0.5, 2, 3000)
    true = np.array([-1.2, 0.1, 0.8])
    x = np.searchsorted(true, y + rng.normal(size=y.size)) + 1.0
    learned = nmd.losses.Ordinal([1, 2, 3, 4]).for_data(x, w).learned(x, y, w)
    code = x.astype(int) - 1

    def objective(cuts):
        if np.any(np.diff(cuts) <= 0):
            return np.inf
        ends = np.concatenate([[-np.inf], cuts, [np.inf]])
        return -w @ np.log(stats.norm.cdf(ends[code + 1] - y) - stats.norm.cdf(ends[code] - y))

    best = minimize(objective, true, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9})
    assert np.sum(w * learned(x, y)) <= best.fun * (1 + 1e-8)
    np.testing.assert_allclose(learned.cut_points, best.x, atol=1e-3)


def test_levels_that_x_lacks_do_not_break_what_is_learned():
    rng = np.random.default_rng(2)
    y = rng.normal(size=500)
    x = np.where(y + rng.normal(size=500) > 0, 4.0, 2.0)
    loss = nmd.losses.Ordinal([1, 2, 3, 4, 5]).for_data(x)
    learned = loss.learned(x, y, np.ones(500))
    assert np.all(np.diff(learned.cut_points) > 0)
    assert np.sum(learned(x, y)) < np.sum(loss(x, y))
    assert np.all(np.isfinite(learned([1.0, 3.0, 5.0], 0.2)))


PARTS = [
    NegativeBinomial(), NegativeBinomial(0.25), NegativeBinomial(0.25, True), Ordinal(),
    Ordinal([1, 2]), Ordinal([1, 2, 3], [-1, 1]), Ordinal([1, 2, 3], [-1, 1], True),
    PiecewiseLinear([0.1 + 0.2, 1], [1 / 3, 2, 0], at=(0.5, -1)), PiecewiseLinear([0], [0, 1]),
    Monotone(), Monotone(share=1 / 3), Monotone([0.1 + 0.2, 1], [1 / 3, 2]),
    Monotone([0, 1], [0, 2], learns=True), Monotone([0, 1], [0, 2], flat=True),
    Monotone([0, 1], [0, 2], share=0.5, learns=True),
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS, ids=repr)
def test_the_repr_and_the_settings_make_an_equal_object(part):
    for again in (eval(repr(part)), type(part)(*part.settings)):
        assert again == part
        assert hash(again) == hash(part)
        assert getattr(again, "learns", None) == getattr(part, "learns", None)
    assert [each == part for each in PARTS].count(True) == 1


def test_scaled_huber_is_the_same_loss():
    x, y = np.linspace(-3, 3, 13), np.zeros(13)
    loss = nmd.losses.Huber(0.7)
    np.testing.assert_allclose(loss.scaled(4.0)(x / 4, y), loss(x, y) / 16)


# Log scores: minus the log-density of the noise that a loss stands for ---------------------------

RNG = np.random.default_rng(2)
MEAN = RNG.uniform(1, 9, size=500)
COUNTS = RNG.poisson(MEAN).astype(float)
ERRORS = COUNTS - MEAN


@pytest.mark.parametrize(
    ("loss", "logarithms"),
    [
        (nmd.Frobenius(), stats.norm.logpdf(ERRORS, scale=np.sqrt(np.mean(ERRORS**2)))),
        (nmd.L1(), stats.laplace.logpdf(ERRORS, scale=np.mean(np.abs(ERRORS)))),
        (nmd.KL(), stats.poisson.logpmf(COUNTS, MEAN)),
        (nmd.losses.NegativeBinomial(0.5), stats.nbinom.logpmf(COUNTS, 2, 2 / (2 + MEAN))),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_each_entry_has_the_density_of_the_noise(loss, logarithms):
    scores = loss.log_scores(loss(COUNTS, MEAN), COUNTS)
    np.testing.assert_allclose(scores, -logarithms, rtol=1e-8)


def test_a_perfect_model_has_a_finite_score():
    for loss in (nmd.Frobenius(), nmd.L1(), nmd.KL()):
        assert np.isfinite(loss.log_scores(np.zeros(3), np.array([0.0, 1, 2]))).all()


def test_each_kind_has_noise_of_its_own():
    plain = make_column_model("identity", "frobenius")._replace(weight=4.0)
    yes = make_column_model("identity", nmd.losses.Logistic(0))._replace(weight=0.3)
    model = Model((plain, yes), np.array([0, 1]))
    rows, columns = np.divmod(np.arange(20), 2)
    t = np.random.default_rng(0).normal(size=20)
    x = np.where(columns == 1, t > 0, t + np.random.default_rng(1).normal(size=20)).astype(float)
    scores = model.log_scores(model.losses(x, t, rows, columns), x, rows, columns)
    errors, chances = (x - t)[columns == 0], 1 / (1 + np.exp(-t[columns == 1]))
    sd = np.sqrt(np.mean(errors**2))
    expected = np.log(2) - stats.norm.logpdf(errors, scale=sd)  # of twice the errors
    np.testing.assert_allclose(scores[columns == 0], expected)
    classes = x[columns == 1].astype(int)
    np.testing.assert_allclose(scores[columns == 1], -stats.bernoulli.logpmf(classes, chances))


def test_a_loss_without_a_likelihood_is_told():
    own = type("Own", (nmd.losses.Huber,), {"noise_model": nmd.Frobenius.noise_model})
    for loss in (nmd.losses.Huber(1.0), own(1.0)):  # a noise alone does not define the scores
        assert not make_model("identity", loss).loss.likelihood
    assert make_model("identity", "kl").loss.likelihood
