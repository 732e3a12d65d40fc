"""The demo's picture that its sensor has clipped, and its default call."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import nmd_lab as nmd

pytest.importorskip("matplotlib")

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "demo", module)  # its dataclass asks for it
        spec.loader.exec_module(module)
        yield module


def test_minmax_beats_a_linear_model_and_interpolation_beats_minmax(demo, tmp_path):
    picture = demo.fringes()
    assert 0.1 < float((picture == 0).mean()) < 0.4
    assert 0.1 < float((picture == 1).mean()) < 0.4
    table = demo.Table([])
    demo.complete_fringes(table, tmp_path)
    rows = [line for line in table.lines if line.startswith("  ") and "." in line]
    errors = {line[:48].strip(): float(line[48:].split()[0]) for line in rows}
    (mean, svd, linear, default, interpolated) = errors.values()
    assert interpolated < default < 0.85 * linear < linear < svd < mean
    assert "MinMax" in list(errors)[-2]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "fringes.png", "fringes_selection.png"
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_the_default_call_is_that_of_a_user(demo):
    observed = demo.hide(demo.fringes()[::4, ::4], 0.6, 0)
    fit = demo.default_fit(observed)
    again = nmd.complete(observed, random_state=demo.SEED)
    np.testing.assert_array_equal(fit.W, again.W)
