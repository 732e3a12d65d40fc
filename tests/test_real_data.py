"""What the library reaches on real data that may not be shipped (set NMD_LAB_DATA)."""

import numpy as np
import pytest
from scipy.io import loadmat

import nmd_lab

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def faces(data_dir):
    """CBCL: 2429 faces of 361 pixels, divided by the largest value."""
    X = np.ascontiguousarray(loadmat(data_dir / "cbcl" / "CBCL.mat")["X"].T, dtype=float)
    assert X.shape == (2429, 361)
    return X / X.max()


@pytest.mark.parametrize(("kept", "bound"), [(1.0, 0.1027), (0.5, 0.1045)])
@pytest.mark.exhaustive
def test_completion_of_faces(faces, kept, bound):
    """The paper's protocol: of the kept entries 20 % are held out as the test set."""
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        known = rng.random(faces.shape) < kept
        test = known & (rng.random(faces.shape) < 0.2)
        train = known & ~test
        fit = nmd_lab.complete(np.where(train, faces, np.nan), 5, nmd_lab.MinMax(0, 1),
                               alpha=0, max_iter=100, tol=0, random_state=seed)  # fmt: skip
        residual = (fit.reconstruct().values - faces)[test]
        errors.append(np.sqrt(np.mean(residual**2)))
        rows, columns = np.nonzero(test)
        predicted = fit.predict(rows, columns) - faces[test]
        np.testing.assert_allclose(predicted, residual, atol=1e-12)
    assert np.mean(errors) <= bound, errors
