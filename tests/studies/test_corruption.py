"""Hidden entries and noise: their number and places, the same for all methods and levels."""

import itertools

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.studies import known_entries
from nmd_lab.studies.known_entries import HIDE, Corruption, hidden_entries


@pytest.fixture(scope="module")
def faces():
    return nmd.datasets.digits(80)


@pytest.fixture(scope="module")
def data(faces):
    X = faces.copy()
    X.values[np.random.default_rng(5).random(X.shape) < 0.2] = np.nan
    return known(X)


def known(X, shape=None):
    return known_entries.read_known_entries(X, shape)


@pytest.mark.parametrize("kind", HIDE)
@pytest.mark.parametrize("pictures", [False, True])
def test_shares_are_kept_and_nested(kind, pictures, data):
    data = data if pictures else known(data.observations.to_array())
    assert (data.picture is not None) == pictures
    masks = [hidden_entries(data, Corruption(kind, share), 3) for share in (0, 0.1, 0.3, 0.8)]
    assert not masks[0].any()
    for share, mask in zip((0.1, 0.3, 0.8), masks[1:], strict=True):
        assert mask.mean() == pytest.approx(share, abs=0.05)
    for fewer, more in itertools.pairwise(masks):
        assert not (fewer & ~more).any()
    other = hidden_entries(data, Corruption(kind, 0.3), 4)
    again = hidden_entries(data, Corruption(kind, 0.3), 3)
    assert (other != masks[2]).any()
    np.testing.assert_array_equal(again, masks[2])


@pytest.mark.parametrize("kind", ["random", "by_value"])
def test_each_row_and_column_keeps_an_entry(kind, data):
    kept = ~hidden_entries(data, Corruption(kind, 0.95), 0)
    (rows, columns, _), (m, n) = data.entries, data.observations.shape
    # 80 rows and 64 columns need at least 80 entries; 5 % are 205
    assert len(np.unique(rows[kept])) == m
    assert len(np.unique(columns[kept])) == n


def test_rows_and_columns_are_whole(data):
    for axis, kind in enumerate(("rows", "columns")):
        indices = data.entries[axis]
        hidden = hidden_entries(data, Corruption(kind, 0.25), 0)
        assert not set(indices[hidden]) & set(indices[~hidden])
        assert len(set(indices[hidden])) == round(0.25 * data.observations.shape[axis])


def test_blocks_are_patches_of_each_picture(faces):
    hidden = hidden_entries(known(faces), Corruption("blocks", 0.2), 0).reshape(-1, 8, 8)
    for holes in hidden:
        # every hidden pixel is in a hidden patch of 2 x 2
        patches = holes[:-1, :-1] & holes[1:, :-1] & holes[:-1, 1:] & holes[1:, 1:]
        covered = np.zeros((8, 8), bool)
        for i, j in np.argwhere(patches):
            covered[i : i + 2, j : j + 2] = True
        np.testing.assert_array_equal(covered, holes)
    assert len({holes.tobytes() for holes in hidden}) > 70
    study = nmd.Study(faces.values, rank=2, missing={"blocks": 0.2}, shape=(8, 8))
    np.testing.assert_array_equal(study.cell(seed=0).hidden.reshape(-1, 8, 8), hidden)
    # a photograph is one picture
    photo = known(np.ones((40, 60)))
    holes = hidden_entries(photo, Corruption("blocks", 0.3), 0).reshape(40, 60)
    runs = np.diff(np.flatnonzero(np.diff(np.pad(holes, 1).astype(int).ravel())))[::2]
    assert runs.min() >= 10


def test_large_values_go_missing_more(data):
    hidden = hidden_entries(data, Corruption("by_value", 0.3), 0)
    values = data.entries.values
    ranks = np.argsort(np.argsort(values + 1e-9 * np.random.default_rng(0).random(values.size)))
    lower, upper = (hidden[(ranks < values.size / 2) == half].mean() for half in (True, False))
    # chances in proportion to the rank: 1 to 3 for few, less for a third
    assert 2 < upper / lower < 3


def test_noise_is_that_of_the_data_sets_with_the_same_numbers_at_each_level(faces):
    data = known(faces)
    x = data.entries.values
    clean, half, gaussian = (
        known_entries.noisy_values(data, Corruption("gaussian", size), 0) - x
        for size in (0, 0.1, 0.2)
    )
    assert not clean.any()
    assert gaussian.std() == pytest.approx(0.2, rel=0.05)
    np.testing.assert_allclose(2 * half, gaussian, atol=1e-12)
    salt = known_entries.noisy_values(data, Corruption("salt_and_pepper", 0.4), 0)
    assert set(salt[salt != x]) == {0.0, 1.0}
    counts = 50 * known_entries.noisy_values(data, Corruption("poisson", 50), 0)
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    outliers = known_entries.noisy_values(data, Corruption("outliers", 0.05), 0) - x
    assert (outliers != 0).mean() == pytest.approx(0.05, abs=0.01)
    assert outliers[outliers != 0].std() == pytest.approx(5 * x.std(), rel=0.15)


def test_all_methods_and_arguments_get_the_same_data(faces):
    study = nmd.Study(
        faces, method=["admm", "svd"], rank=[2, 5], loss=["l1", "kl"], noise={"outliers": 0.1}
    )
    first = study.cell(algorithm="admm", rank=2, loss="l1", seed=1).X
    for labels in ({"algorithm": "svd"}, {"rank": 5}, {"loss": "kl"}):
        cell = study.cell(**({"algorithm": "admm", "rank": 2, "loss": "l1", "seed": 1} | labels))
        assert first.identical(cell.X)
    assert not first.identical(study.cell(algorithm="admm", rank=2, loss="l1", seed=2).X)
    # ... whatever else the grid holds
    other = nmd.Study(faces, rank=2, noise={"gaussian": 1, "outliers": 0.1}, random_state=1)
    assert first.identical(other.cell(noise="outliers 0.1", seed=1).X)
