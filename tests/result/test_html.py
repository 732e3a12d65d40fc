"""The HTML representation of a fit in a notebook."""

from __future__ import annotations

import base64
import io
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import xarray as xr
from chosen import selection, trials, with_selection
from given import given
from PIL import Image

import nmd_lab


@pytest.fixture
def fit(small):
    X = xr.DataArray(small, dims=("<b>rows</b>", 'a"b&c'))
    return nmd_lab.decompose(X, 3, given("minmax"), max_iter=300, tol=0, random_state=5)


def test_it_is_well_formed_and_escaped(fit):
    html = fit._repr_html_()
    root = ET.fromstring(html)
    text = "".join(root.itertext())
    assert "<b>rows</b>: 20" in text
    assert 'a"b&c: 15' in text
    assert "nmd_lab.Decomposition" in text
    assert not list(root.iter("b"))


def test_it_shows_model_error_stop_reason_and_parameters(fit):
    text = "".join(ET.fromstring(fit._repr_html_()).itertext())
    for expected in ("MinMax(0, 1)", "frobenius", f"{fit.relative_error:.4g}", fit.stop_reason,
                     "300 of 300", "random_state", "rho", "auto",
                     nmd_lab.__version__):  # fmt: skip
        assert expected in text, expected


def test_it_is_deterministic_and_has_no_fixed_colours(fit):
    html = fit._repr_html_()
    assert html == fit._repr_html_()
    assert not re.search(r"\bid=", html)
    html = re.sub(r'src="[^"]*"', "", html)
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b|rgb|black|white", html)


def test_it_begins_with_the_headline_and_folds_the_details(fit):
    lead, *_ = root = ET.fromstring(fit._repr_html_())
    number = f"{fit.relative_error:.2g} relative error where seen, nothing is held out"
    assert "".join(lead.itertext()).strip() == number
    assert [d.find("summary").text for d in root.iter("details")] == ["Details", "Parameters"]
    assert not list(root.iter("script"))


def test_a_chosen_fit_shows_the_sentence_and_the_errors_by_rank(fit):
    chosen = with_selection(fit, selection(trials([2, 4, 8, 16], [1, 3])))
    root = ET.fromstring(chosen._repr_html_())
    text = "".join(root.itertext())
    assert chosen.selection.sentence in text
    assert "held-out error 2.75 → 2.5, rank 2 to 16, ring at 8" in text
    assert len(root.findall(".//circle")) == 4 + 1
    heights = [float(p.split(",")[1]) for p in root.find(".//polyline").attrib["points"].split()]
    assert np.argmax(heights) == 2


def test_errors_of_other_losses_and_unfinished_trials_are_not_compared(fit):
    rows = trials([2, 4, 8], [3]) + trials([16], [3], loss="kl", error=0.1)
    rows[0]["error"] = float("nan")
    root = ET.fromstring(with_selection(fit, selection(rows, 2))._repr_html_())
    assert "rank 4 to 8, ring at 8" in "".join(root.itertext())
    rows[1]["error"] = float("nan")
    assert "<svg" not in with_selection(fit, selection(rows, 2))._repr_html_()
    assert "<svg" not in fit._repr_html_()


def test_the_picture_is_a_png_of_a_size_that_pages_do_not_change(fit):
    image = ET.fromstring(fit._repr_html_()).find(".//img")
    assert image.attrib["alt"] == "model"
    assert "width: 72px; height: 96px" in image.attrib["style"]
    content = base64.b64decode(image.attrib["src"].split(",")[1])
    assert Image.open(io.BytesIO(content)).size == (15, 20)
