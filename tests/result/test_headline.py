"""The one number of a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from chosen import selection, trials, with_selection

import nmd_lab
from nmd_lab.result.summary import headline_of


@pytest.fixture
def plain(small):
    return nmd_lab.decompose(small, 3, alpha=0.5, max_iter=10, tol=0, random_state=5)


def test_a_chosen_fit_has_the_error_of_its_trial_and_that_of_offsets_alone(plain):
    fit = with_selection(plain, selection(trials([4, 8], [3]), offsets_alone=2.75))
    found = headline_of(fit)
    assert float(found["value"]) == float(fit.selection["error"][fit.selection.chosen]) == 2.5
    assert found["text"] == "off at 7900 held-out entries"
    assert found["rivals"] == "· offsets alone 2.75"
    assert not found["worse"]
    assert headline_of(with_selection(plain, selection(trials([8], [3]))))["rivals"] == ""


def test_another_measure_and_the_unit_of_the_data_are_named(plain):
    chosen = selection(trials([4, 8], [3]), measure="mean loss")
    assert headline_of(with_selection(plain, chosen))["text"] == "mean loss, held out"
    labels = replace(plain._labels, attrs={"units": "K"})
    fit = replace(with_selection(plain, selection(trials([8], [3]))), _labels=labels)
    assert headline_of(fit)["text"] == "K off at 7900 held-out entries"


def test_early_stopping_holds_out_too(small):
    fit = nmd_lab.decompose(small, 3, validation=0.2, max_iter=30, random_state=0)
    at = fit.history.validation_rmse.sel(iteration=fit.parameters["iteration"])
    assert headline_of(fit)["value"] == f"{float(at):.2g}"


def test_without_held_out_entries_it_says_so(plain):
    found = headline_of(plain)
    assert found["value"] == f"{plain.relative_error:.2g}"
    assert found["text"] == "relative error where seen, nothing is held out"


def test_a_real_choice_knows_its_rival_and_the_error_where_seen(rng):
    X = np.outer(rng.normal(size=60), rng.normal(size=40)) + 0.1 * rng.normal(size=(60, 40))
    fit = nmd_lab.complete(X, nonlinearity="identity", random_state=0)
    about = fit.selection.attrs
    errors = fit.selection["error"].values
    assert errors[about["chosen"]] < 0.2 < 0.8 < about["offsets_alone"]
    assert about["offsets_alone"] in errors
    residual = X - fit.reconstruct().values
    assert about["error_where_seen"] == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-6)
