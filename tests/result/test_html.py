"""The HTML representation of a fit in a notebook."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import xarray as xr
from given import given

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
    assert [element.text for element in root.iter("b")] == ["nmd_lab.Decomposition"]


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
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b|rgb|black|white", html)


def test_the_curve_follows_the_history(fit):
    root = ET.fromstring(fit._repr_html_())
    points = root.find(".//polyline").attrib["points"].split()
    assert 50 < len(points) <= 150
    heights = np.array([float(point.split(",")[1]) for point in points])
    errors = fit.history.relative_error.values
    assert (heights[0] < heights[-1]) == (errors[0] > errors[-1])
    assert heights.min() >= 0
    assert heights.max() < 90


@pytest.mark.parametrize("iterations", [1, 2])
def test_short_histories(small, iterations):
    html = nmd_lab.decompose(small, 2, max_iter=iterations)._repr_html_()
    assert ("<svg" in html) == (iterations > 1)
    ET.fromstring(html)
