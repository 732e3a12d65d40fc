"""Predictions by similar patches, against plain formulas."""

import numpy as np
import pytest

from nmd_lab.data.patches import grid_of
from nmd_lab.inpainting import similar_patches
from nmd_lab.inpainting.similar_patches import N_PREDICTED, N_SIMILAR, SPREAD, window_of

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


def dense(pixels, noise, estimate, spread, corner):
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
    found = []
    for at in near[:N_PREDICTED]:
        x, v = patch(pixels, at), patch(noise, at)
        o = ~np.isnan(x)
        gain = S[:, o] @ np.linalg.inv(S[np.ix_(o, o)] + np.diag(v[o]))
        mean = Z.mean(axis=0)
        found.append((at, mean + gain @ (x[o] - mean[o]), np.diag(S - gain @ S[o])))
    return found


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("most", [0.01, 0.1])  # one variance allows the inverse of all entries
def test_predictions_are_those_of_dense_formulas(missing, most):
    picture = picture_of(missing, most=most)
    pixels, noise, estimate, spread = (each.reshape(-1) for each in picture)
    corners, of_picture = np.array([(0, 0), (13, 16), (26, 30)]), places()
    ((positions, mean, variance),) = similar_patches.predict_alike(
        (pixels, noise), (estimate, spread), corners, of_picture, print
    )
    expected = [each for corner in corners for each in dense(*picture, corner)]
    at = [i * SHAPE[1] + j for (i, j), _, _ in expected]
    np.testing.assert_array_equal(positions, np.array(at)[:, None] + of_picture[3])
    np.testing.assert_allclose(mean, [each[1] for each in expected], atol=1e-8)
    np.testing.assert_allclose(variance, [each[2] for each in expected], atol=1e-8)
