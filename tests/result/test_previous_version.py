"""Fits that an earlier version saved are read as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nmd_lab as nmd

PREVIOUS = Path(__file__).parents[1] / "previous_version"

EXPECTED = np.load(PREVIOUS / "expected.npz")

NAMES = sorted({name.split("/")[0] for name in EXPECTED.files})


def test_every_kind_of_file_is_there():
    assert NAMES == ["baseline", "direct", "levels", "ratings", "relu", "stopped"]


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_of_the_previous_version_is_read(name):
    fit = nmd.load(PREVIOUS / f"{name}.nc")
    np.testing.assert_allclose(fit.reconstruct().values, EXPECTED[f"{name}/model"], rtol=1e-12)
    np.testing.assert_array_equal(fit.history["objective"].values, EXPECTED[f"{name}/objective"])
    assert fit.stop_reason == EXPECTED[f"{name}/stop_reason"]
    assert fit.stop_reason.code == "other"  # these files have the sentence alone
    assert fit._repr_html_()
    assert repr(fit)


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_saved_again(name, tmp_path):
    fit = nmd.load(PREVIOUS / f"{name}.nc")
    fit.save(tmp_path / "again.nc")
    again = nmd.load(tmp_path / "again.nc")
    assert again.W.identical(fit.W)
    assert again.H.identical(fit.H)
    assert again.history.identical(fit.history)
    assert again.stop_reason == fit.stop_reason


def test_labels_of_every_kind_come_back():
    levels = nmd.load(PREVIOUS / "levels.nc")
    assert list(levels.W.indexes["row"].names) == ["plot", "year"]
    ratings = nmd.load(PREVIOUS / "ratings.nc")
    assert ratings.W["user"].values.tolist() == list("abcd")
    assert ratings.offsets.rows is not None
    assert ratings.offsets.columns is not None
    assert ratings.predict_labels("a", 1).shape == (1,)


@pytest.mark.parametrize("name", ["relu", "stopped", "levels"])
def test_a_fit_goes_on_from_it(name):
    fit = nmd.load(PREVIOUS / f"{name}.nc")
    X = fit.reconstruct()
    options = {"max_iter": 2, "tol": 0, "penalty": "balanced"}
    again = nmd.decompose(
        X.values.reshape(fit.shape), fit.rank, fit.nonlinearity, fit.loss, init=fit, **options
    )
    assert again.relative_error < 1e-6
