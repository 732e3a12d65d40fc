"""The mixture of Gaussians with missing entries, and similar patches, against dense formulas."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from nmd_lab.data.patches import grid_of
from nmd_lab.inpainting import similar_patches
from nmd_lab.inpainting.mixture import GaussianMixture, fit_mixture
from nmd_lab.inpainting.similar_patches import N_PREDICTED, N_SIMILAR, SPREAD, window_of

D = 5


@pytest.fixture(scope="module")
def mixture():
    """Two groups of five entries."""
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(2, D, D))
    covariances = roots @ roots.transpose(0, 2, 1) / D
    return GaussianMixture(np.array([0.3, 0.7]), rng.normal(size=(2, D)), covariances)


def rows_of(mixture, n, missing, seed=1, most=0.2):
    """Rows with entries missing at random, and the variances of their noise, of 0.05 to `most`."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(2, n, p=mixture.weights)
    X = np.stack(
        [rng.multivariate_normal(mixture.means[g], mixture.covariances[g]) for g in groups]
    )
    variance = rng.uniform(0.05, most, X.shape)
    X += np.sqrt(variance) * rng.normal(size=X.shape)
    return np.where(rng.random(X.shape) < missing, np.nan, X), variance


def conditional(mean, S, x, v):
    """Mean and variances of z given what is seen of x, which has noise of the variances v."""
    o = ~np.isnan(x)
    gain = S[:, o] @ np.linalg.inv(S[np.ix_(o, o)] + np.diag(v[o]))
    return mean + gain @ (x[o] - mean[o]), np.diag(S - gain @ S[o])


def dense(mixture, x, v):
    """The log-likelihood of a row, and the mean and variances of z, by plain formulas."""
    o = ~np.isnan(x)
    scores, moments = [], []
    for weight, mean, S in zip(*vars(mixture).values(), strict=True):
        A = S[np.ix_(o, o)] + np.diag(v[o])
        density = multivariate_normal(mean[o], A).logpdf(x[o]) if o.any() else 0.0
        scores.append(np.log(weight) + density)
        moments.append(conditional(mean, S, x, v))
    means, variances = np.swapaxes(moments, 0, 1)
    r = np.exp(scores - logsumexp(scores))
    return logsumexp(scores), r @ means, r @ (variances + means**2) - (r @ means) ** 2


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("most", [0.05, 0.2])  # one variance allows the inverse of all entries
def test_predictions_and_log_likelihood_are_those_of_dense_formulas(mixture, missing, most):
    X, variance = rows_of(mixture, 20, missing, most=most)
    mean, spread = mixture.predict(X, variance)
    expected = [dense(mixture, x, v) for x, v in zip(X, variance, strict=True)]
    np.testing.assert_allclose(mean, [each[1] for each in expected], atol=1e-3)
    np.testing.assert_allclose(spread, [each[2] for each in expected], atol=1e-2)
    assert mixture.improve(X, variance)[1] == pytest.approx(sum(each[0] for each in expected))


def test_rounds_raise_the_log_likelihood(mixture, monkeypatch):
    monkeypatch.setattr("nmd_lab.inpainting.mixture.SHRINKAGE", 0)
    X, variance = rows_of(mixture, 400, 0.3)
    current = GaussianMixture(mixture.weights, mixture.means + 0.3, 2 * mixture.covariances)
    history = []
    for _ in range(8):
        current, total = current.improve(X, variance)
        history.append(total)
    assert np.all(np.diff(history) > 0)


def test_rows_of_one_pattern_count_as_rows_of_several(mixture):
    X, variance = rows_of(mixture, 60, 0.0)
    X[:30, 1] = np.nan
    variance[:] = 0.1
    mixed = np.random.default_rng(2).permutation(60)
    sorted_rows, shuffled = (mixture.improve(X[o], variance)[0] for o in (np.arange(60), mixed))
    np.testing.assert_allclose(sorted_rows.covariances, shuffled.covariances)


def test_the_groups_are_found(mixture):
    means = mixture.means + np.array([[-4.0], [4.0]])
    apart = GaussianMixture(mixture.weights, means, mixture.covariances)
    X, variance = rows_of(apart, 3000, 0.3)
    start = GaussianMixture(np.ones(1), np.zeros((1, D)), 9 * np.eye(D)[None])
    found = fit_mixture(X, variance, start, 2, np.random.default_rng(0))
    order = np.argsort(found.means[:, 0])
    np.testing.assert_allclose(found.weights[order], apart.weights, atol=0.02)
    np.testing.assert_allclose(found.means[order], apart.means, atol=0.15)


def test_noise_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(4000, 8))
    start = GaussianMixture(np.ones(1), np.zeros((1, 8)), np.eye(8)[None])
    fitted = fit_mixture(X, np.full_like(X, 1e-5), start, 1, rng)
    assert fitted.noise(len(X)) == pytest.approx(0.01, rel=0.1)


SIZE, SHAPE = 4, (30, 34)


def picture_of(missing, seed=0, most=0.1):
    """Pixels with noise and missing ones, an estimate of them, and the variances of both."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    truth = np.sin(x / 2) + np.cos(y / 3 + x / 5)
    noise = rng.uniform(0.01, most, SHAPE)
    pixels = truth + np.sqrt(noise) * rng.normal(size=SHAPE)
    estimate = truth + 0.1 * rng.normal(size=SHAPE)
    pixels[rng.random(SHAPE) < missing] = np.nan
    return pixels, noise, estimate, rng.uniform(0.005, 0.02, SHAPE)


def places():
    """Places in a picture."""
    strides = np.array([SHAPE[1], 1])
    offsets = grid_of(np.empty(SHAPE), SIZE, SIZE).offsets
    last = np.subtract(SHAPE, SIZE)
    return strides, last, window_of(last), offsets @ strides


def dense_patches(pixels, noise, estimate, spread, corner):
    """Positions, means and variances of the patches that are most like the one at a corner."""
    near = [
        (i, j)
        for i in range(max(corner[0] - 10, 0), min(corner[0] + 10, SHAPE[0] - SIZE) + 1)
        for j in range(max(corner[1] - 10, 0), min(corner[1] + 10, SHAPE[1] - SIZE) + 1)
    ]

    def patch(of, at):
        return of[at[0] : at[0] + SIZE, at[1] : at[1] + SIZE].ravel()

    here = patch(estimate, corner)
    near.sort(key=lambda at: np.sum((patch(estimate, at) - here) ** 2))
    Z = np.array([patch(estimate, at) for at in near[:N_SIMILAR]])
    S = np.cov(Z.T, bias=True)
    S += SPREAD * np.diag(np.mean([patch(spread, at) for at in near[:N_SIMILAR]], axis=0))
    return [
        (at, *conditional(Z.mean(axis=0), S, patch(pixels, at), patch(noise, at)))
        for at in near[:N_PREDICTED]
    ]


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("most", [0.01, 0.1])  # one variance allows the inverse of all entries
def test_predictions_are_those_of_dense_formulas(missing, most):
    picture = picture_of(missing, most=most)
    pixels, noise, estimate, spread = (each.reshape(-1) for each in picture)
    corners, of_picture = np.array([(0, 0), (13, 16), (26, 30)]), places()
    ((positions, mean, variance),) = similar_patches.predict_alike(
        (pixels, noise), (estimate, spread), corners, of_picture, print
    )
    expected = [each for corner in corners for each in dense_patches(*picture, corner)]
    at = [i * SHAPE[1] + j for (i, j), _, _ in expected]
    np.testing.assert_array_equal(positions, np.array(at)[:, None] + of_picture[3])
    np.testing.assert_allclose(mean, [each[1] for each in expected], atol=1e-8)
    np.testing.assert_allclose(variance, [each[2] for each in expected], atol=1e-8)
