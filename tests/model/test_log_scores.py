"""Log scores: minus the log-density of the noise that a loss stands for."""

import numpy as np
import pytest
from scipy import stats

import nmd_lab as nmd
from nmd_lab.model.column_model import make_column_model
from nmd_lab.model.model import Model, make_model

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
