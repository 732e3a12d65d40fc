"""Predictions of a posterior against integrals over T on a fine grid."""

import numpy as np
import pandas as pd
import pytest
from helpers import some
from made_draws import LEVELS, A, B, made_up, plain, posterior_of, values_of_f
from scipy import sparse, stats

import nmd_lab
from nmd_lab.data.labels import labels_of

M, N = 5, 4
ROWS, COLUMNS = np.array([0, 4, 2]), np.array([3, 1, 1])

AFTER = [("modulus", "frobenius"), ("square", "kl"), ("minmax", "l1")]
AFTER += [("relu", "frobenius"), ("square", "l1"), ("identity", "l1")]
KINDS = [["identity", "frobenius", noise] for noise in ("gaussian", "ordinal")]
KINDS += [["relu", "frobenius", "before"], *([*pair, "after"] for pair in AFTER)]
KINDS += [[f, "frobenius", "before"] for f in ("minmax", "modulus", "square")]


@pytest.fixture(params=some(KINDS, 6), ids=" ".join)
def posterior(request):
    return made_up(np.zeros((M, N)), *request.param)


class BruteForce:
    """The predictive distribution of one entry, by sums over draws and a grid of T."""

    def __init__(self, posterior, i, j):
        v, rho, beta, cuts = plain(posterior)
        self.kind, self.loss = posterior.noise, posterior.loss.name
        self.v, self.rho, self.cuts = v[:, i, j], rho, cuts
        self.beta = None if beta is None else beta[:, None]
        self.f, self.weights = values_of_f(posterior, self.v, rho)
        if self.kind == "ordinal":
            t = stats.norm.cdf(np.column_stack([cuts, np.full(rho.size, np.inf)]) - self.v[:, None])
            self.shares = np.diff(t, axis=1, prepend=0)

    def means(self):
        """The expected value in each draw."""
        return self.shares @ LEVELS if self.kind == "ordinal" else self.f @ self.weights

    def std(self):
        if self.kind == "ordinal":
            square = (self.shares @ np.square(LEVELS)).mean()
        else:
            square = ((self.f**2) @ self.weights).mean()
        if self.kind == "after":
            square += (self.noise().var() @ self.weights).mean()
        return np.sqrt(square - self.means().mean() ** 2)

    def noise(self):
        """The distribution of x given f(T)."""
        if self.loss == "kl":
            return stats.poisson(self.f)
        if self.loss == "l1":
            return stats.laplace(self.f, 1 / self.beta)
        return stats.norm(self.f, 1 / np.sqrt(self.beta))

    def cdf(self, x):
        if self.kind == "ordinal":
            return (self.shares @ (np.array(LEVELS) <= x)).mean()
        if self.kind == "after":
            return (self.noise().cdf(x) @ self.weights).mean()
        return ((self.f <= x) @ self.weights).mean()

    def density(self, x):
        if self.kind == "ordinal":
            return self.shares[:, LEVELS.index(x)].mean()
        if self.kind == "after":
            law = self.noise()
            return ((law.pmf(x) if self.loss == "kl" else law.pdf(x)) @ self.weights).mean()
        if (atom := (np.isclose(self.f, x, atol=1e-12) @ self.weights).mean()) > 1e-3:
            return atom
        width = 0.02
        return (self.cdf(x + width) - self.cdf(x - width)) / (2 * width)


def truths(posterior):
    """Return the predictive distributions of the entries of the tests."""
    return [BruteForce(posterior, i, j) for i, j in zip(ROWS, COLUMNS, strict=True)]


def test_means_and_spreads(posterior):
    mean, std = posterior.predict(ROWS, COLUMNS), posterior.predict_std(ROWS, COLUMNS)
    alone = posterior.predict_std(ROWS, COLUMNS, noise=False)
    for p, truth in enumerate(truths(posterior)):
        assert mean[p] == pytest.approx(truth.means().mean(), abs=2e-6)
        assert std[p] == pytest.approx(truth.std(), rel=1e-5)
        assert alone[p] == pytest.approx(truth.means().std(), rel=1e-4)


def test_probabilities_and_intervals(posterior):
    discrete = posterior.noise == "ordinal" or posterior.loss.name == "kl"
    above = 2.0 if discrete else 0.31
    exact = 1e-6 if posterior.noise == "ordinal" else 4e-4
    if posterior.noise == "after":
        exact = 4e-3  # 16 points for each of 60 draws
    probability = posterior.probability(ROWS, COLUMNS, above=above)
    intervals = posterior.predict_interval(ROWS, COLUMNS, level=0.8)
    for p, truth in enumerate(truths(posterior)):
        assert probability[p] == pytest.approx(1 - truth.cdf(above), abs=exact)
        for end, share in zip(intervals[p], (0.1, 0.9), strict=True):
            assert truth.cdf(end + 1e-9) >= share - exact  # at an atom the share is in between
            assert truth.cdf(end - 1e-9) <= share + exact


def test_intervals_of_f_alone_are_quantiles_over_draws(posterior):
    intervals = posterior.predict_interval(ROWS, COLUMNS, level=0.5, noise=False)
    wanted = [np.quantile(truth.means(), [0.25, 0.75]) for truth in truths(posterior)]
    np.testing.assert_allclose(intervals, wanted, atol=3e-6)


def test_an_interval_of_counts_does_not_depend_on_other_entries():
    W = np.array([[0.1], [1.0], [3.0]])
    labels = labels_of(np.zeros((3, 1)))
    arrays = {"W": np.tile(W, (1, 20, 1, 1)), "H": np.ones((1, 20, 1, 1))}
    arrays |= {"rho": np.full((1, 20), 1e12), "noise": "after"}
    counts = posterior_of(labels, nonlinearity="square", loss="kl", **arrays)
    together = counts.predict_interval(np.arange(3), 0, level=0.9)
    alone = np.vstack([counts.predict_interval(k, 0, level=0.9) for k in range(3)])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together[0], stats.poisson(0.01).ppf([0.05, 0.95]))


def test_densities(posterior):
    x = {"ordinal": [1.0, 3.5], "kl": [0.0, 2.0]}.get(
        "ordinal" if posterior.noise == "ordinal" else posterior.loss.name, [0.35, 0.7]
    )
    tolerance = 2e-2 if posterior.noise == "after" else 4e-3
    if posterior.noise == "before" and posterior.nonlinearity.name in ("relu", "minmax"):
        x = [*x, {"relu": 0.0, "minmax": B}[posterior.nonlinearity.name]]
    for value in x:
        found = np.exp(posterior.log_density(ROWS, COLUMNS, value))
        wanted = [truth.density(value) for truth in truths(posterior)]
        np.testing.assert_allclose(found, wanted, rtol=tolerance)


def test_impossible_values_have_density_zero():
    X = np.zeros((M, N))
    for f, x in (("relu", -0.1), ("minmax", A - 0.1), ("modulus", -1.0), ("square", -1.0)):
        assert np.all(made_up(X, f, noise="before").log_density(ROWS, COLUMNS, x) == -np.inf)


def test_limits_in_single_precision_are_limits():
    posterior = made_up(np.zeros((M, N)), "minmax", noise="before")
    exact = posterior.log_density(ROWS, COLUMNS, B)
    np.testing.assert_array_equal(posterior.log_density(ROWS, COLUMNS, np.float32(B)), exact)
    assert np.all(exact < 0)


@pytest.mark.parametrize(("f", "loss", "noise"), KINDS)
def test_intervals_hold_new_observations(f, loss, noise):
    """Copies of X are drawn from the predictive distribution, so intervals cover as promised."""
    X = np.full((40, 30), np.nan)
    X[0, 0] = 1.0
    posterior = made_up(X, f, loss, noise, draws=50)
    copies = np.stack(posterior.impute(X, 100, random_state=3))[:, 1:]
    i, j = np.divmod(np.arange(30, 1200), 30)
    low, high = posterior.predict_interval(i, j, level=0.8).T.reshape(2, 39, 30)
    share = np.mean((low <= copies) & (copies <= high))
    if noise == "ordinal" or loss == "kl" or (noise == "before" and f in ("relu", "minmax")):
        assert share > 0.79  # levels, and atoms at limits, make intervals too wide
    else:
        assert share == pytest.approx(0.8, abs=0.01)
    spread = posterior.uncertainty().values[1:].mean()
    assert copies.std(axis=0).mean() == pytest.approx(spread, rel=0.03)


def test_spreads_at_test_data():
    posterior = made_up(pd.DataFrame(np.zeros((M, N)), index=list("abcde"), columns=list("wxyz")))
    test = pd.DataFrame([[np.nan, 2.0], [1.0, 0.5]], index=["c", "a"], columns=["z", "w"])
    at = [2, 0, 0], [0, 3, 0]
    found = posterior.predict_std(test).loc["a", "w"]
    assert found == pytest.approx(posterior.predict_std(0, 0)[0])
    np.testing.assert_array_equal(posterior.predict_interval(test), posterior.predict_interval(*at))
    densities = posterior.log_density(*at, [2.0, 1.0, 0.5])
    np.testing.assert_array_equal(posterior.log_density(test), densities)
    matrix = sparse.csr_array(([3.0, 4.0], ([1, 2], [2, 0])), shape=(M, N))
    stored = posterior.probability(matrix, above=0.2)
    assert sparse.issparse(stored)
    np.testing.assert_array_equal(stored.data, posterior.probability([1, 2], [2, 0], above=0.2))


def test_a_loss_of_the_user_has_means_but_no_noise():
    class Huber(nmd_lab.losses.Loss):
        name = "huber"

    posterior = made_up(np.zeros((M, N)), "relu", Huber(), "after")
    low, _ = posterior.predict_interval(ROWS, COLUMNS, noise=False).T
    assert np.all(low < posterior.predict(ROWS, COLUMNS))
    with pytest.raises(ValueError, match="has no distribution of new observations"):
        posterior.predict_std(ROWS, COLUMNS)


@pytest.mark.parametrize(
    ("loss", "power", "standard"),
    [(nmd_lab.Frobenius(), 2, stats.norm()), (nmd_lab.L1(), 1, stats.laplace())],
)
def test_a_loss_of_the_user_with_a_distribution_has_intervals(loss, power, standard):
    model = nmd_lab.losses.NoiseModel("own", 0.5, power, standard)
    own = type("Own", (type(loss),), {"noise_model": model})()
    ours, theirs = (made_up(np.zeros((M, N)), "relu", each, "after") for each in (own, loss))
    at = ROWS, COLUMNS
    for name in ("predict_std", "predict_interval"):
        found, expected = (getattr(each, name)(*at) for each in (ours, theirs))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    found, expected = (each.probability(*at, above=0.2) for each in (ours, theirs))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
