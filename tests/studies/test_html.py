"""The HTML of a study and of its best model."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

import nmd_lab as nmd
from nmd_lab.studies import Study
from nmd_lab.studies.summary import study_html


@pytest.fixture(scope="module")
def study():
    made = Study(nmd.datasets.digits(30), rank=[1, 6], alpha=1, max_iter=40, missing=[0.2, 0.3])
    made.run(progress=False)
    return made


def text_of(html):
    return "".join(ET.fromstring(html).itertext())


def test_it_leads_with_the_best_model_and_its_error(study):
    lead = "".join(ET.fromstring(study._repr_html_())[0].itertext())
    ranking = study.rank_test()
    assert ranking.index[0] == (6,)
    best, second = ranking["mean"]
    assert lead.startswith(f"{best:.2g} ± ")
    assert "held-out entries (mean over missing, seed): rank 6" in lead
    assert lead.endswith(f"· rank 1 {second:.2g}")


def test_it_says_whether_the_second_differs(study):
    results = study.results.copy(deep=True)
    assert study.rank_test()["low"].iloc[1] > 0
    assert "The second, rank 1, differs from the best" in text_of(study_html("", results))
    best = results.held_out_rmse.sel(rank=6)
    results.held_out_rmse.loc[{"rank": 1}] = best + [[-1e-3, 2e-3, 1e-3]] * 2
    assert "The second, rank 1, cannot be told from the best" in text_of(study_html("", results))
    one = results.isel(seed=[0])
    assert "one seed cannot tell" in text_of(study_html("", one))


def test_it_draws_an_interval_for_each_other_model(study):
    root = ET.fromstring(study._repr_html_())
    assert len(root.findall(".//svg/circle")) == 2
    assert len(root.findall(".//svg/path")) == 1 + 1  # the line at the best, and an interval
    assert "(mean over missing, seed)" in "".join(root.itertext())


def test_flags_count_the_fits_that_failed_or_have_not_converged(study):
    results = study.results.copy(deep=True)
    results["warnings"][:] = ""
    assert "fits:" not in text_of(study_html("", results))
    results["status"][0, 0, 0] = "failed"
    results["warnings"][1, 0, :2] = "NotConvergedWarning: max_iter"
    text = text_of(study_html("", results))
    assert "1 of 12 fits: failed." in text
    assert "2 of 12 fits: not converged." in text


def test_it_says_what_is_missing(study):
    new = Study(nmd.datasets.digits(12), rank=[1, 2], alpha=1)
    assert "no results yet: call run()" in text_of(new._repr_html_())
    results = study.results.copy(deep=True)
    results.held_out_rmse[:] = float("nan")
    results.observed_rmse[:] = float("nan")
    assert "NaN somewhere for every model" in text_of(study_html("", results))


def test_labels_are_escaped(study):
    results = study.results.assign_coords(rank=["<b>one</b>", 'six"&'])
    assert "<b>one</b>" in text_of(study_html("a <b>line</b>", results))
