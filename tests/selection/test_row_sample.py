"""The settings of large data are chosen from a sample of the rows."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd
from nmd_lab.data import folds as row_sample
from nmd_lab.selection.search import Search

SHARE_OF_ROWS = "The trials had 300 of the 1500 rows"
NUMBERS = "trials had 421 of the 1500 rows; the others chose the ridge with all of them."


def table(m=1500, seed=0):
    """Return a generated table of six numbers and two classes, with holes, and all its numbers."""
    rng = np.random.default_rng(seed)
    WH = rng.normal(size=(m, 2)) @ rng.normal(size=(2, 8))
    numbers = WH[:, :6] + 0.5 * rng.normal(size=(m, 6))
    X = pd.DataFrame(np.where(rng.random((m, 6)) < 0.2, np.nan, numbers), columns=list("abcdef"))
    classes = WH[:, 6:] + rng.logistic(size=(m, 2)) > 0
    for name, column in zip("yz", classes.T, strict=True):
        X[name] = pd.Categorical(np.where(column, "yes", "no")).astype("category")
    return X, numbers


def error(fit, X, numbers):
    """Return the error at the holes of the numbers."""
    hidden = X[list("abcdef")].isna().to_numpy()
    predicted = fit.reconstruct().sel(column=list("abcdef")).values
    return np.sqrt(np.mean((predicted - numbers)[hidden] ** 2))


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(row_sample, "MAX_CELLS", 300 * 8 * 0.85)
    monkeypatch.setattr(row_sample, "MAX_CELLS_OF_TABLE", 300 * 8 * 0.85)
    monkeypatch.setattr(row_sample, "MIN_ROWS", 300)


@pytest.mark.parametrize("is_mixed", [True, False])
def test_a_choice_from_some_rows_repeats_and_is_as_good(is_mixed, small_samples, monkeypatch):
    """As one from all rows, with which the ridge of numbers alone is chosen in any case."""
    X, numbers = table()
    X = X if is_mixed else X[list("abcdef")]
    some = nmd.complete(X, random_state=0)
    note, chosen = some.selection.attrs["note"], some.selection.attrs["chosen"]
    assert (SHARE_OF_ROWS if is_mixed else NUMBERS) in note
    assert some.parameters["alpha"] == some.selection["alpha"].item(chosen) == some.chosen["alpha"]
    if not is_mixed:
        count = int(note.removeprefix("The first ").split()[0])
        assert chosen >= count
        assert not some.selection["tied"][:count].any()  # their errors are at other entries
    again = nmd.complete(X, **some.chosen, random_state=1)
    np.testing.assert_allclose(again.reconstruct(), some.reconstruct(), atol=0.05)
    monkeypatch.undo()
    every = nmd.complete(X, random_state=0)
    assert "trials had" not in every.selection.attrs.get("note", "")
    assert error(some, X, numbers) < 1.01 * error(every, X, numbers)


def test_given_ridges_are_tried_on_all_rows(small_samples):
    X, _ = table()
    choice = nmd.Choice(alphas=[1.0, 10.0])
    fit = nmd.complete(X, validation=choice, random_state=0)
    assert fit.parameters["alpha"] in (1.0, 10.0)
    assert "The trials had" not in fit.selection.attrs.get("note", "")


def test_the_ridge_grows_as_the_largest_singular_value_of_noise():
    rng = np.random.default_rng(0)
    few, many = (np.linalg.norm(rng.normal(size=(m, 50)), 2) for m in (400, 6400))
    searched = SimpleNamespace(shape=(400, 50))
    assert many / few == pytest.approx(Search.growth(searched, 6400), rel=0.03)
    assert Search.growth(searched, 400) == 1
