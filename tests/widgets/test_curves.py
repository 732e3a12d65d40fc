"""Curves in the browser: the numbers that they get."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("anywidget")

from explorer_page import arrays_of

from nmd_lab.widgets.charts import MOST_POINTS, Panel, curves_part

PANELS = [
    Panel("error", {"a": "seen", "held_out": "held out"}, lowest="held_out"),
    Panel("other", {"b": "b"}),
]


def recording(held_out=(), **curves):
    n = max((len(numbers) for numbers in curves.values()), default=0)
    curves = {"iteration": range(1, n + 1), **curves}
    return SimpleNamespace(curves=curves, held_out=dict(held_out), remembers=False)


def test_all_numbers_arrive_as_they_are():
    a = np.geomspace(1, 1e-300, MOST_POINTS)
    b = np.full(a.size, np.inf)
    points = arrays_of(curves_part(PANELS, recording(a=a, b=b, other=a)))
    assert list(points) == ["a", "b"]
    np.testing.assert_array_equal(points["a"], [np.arange(1, a.size + 1), a])
    np.testing.assert_array_equal(points["b"][1], b)
    assert curves_part(PANELS, recording()) is None


def test_a_long_curve_is_thinned_but_keeps_its_ends_and_its_minimum():
    numbers = np.linspace(2, 1, 3000)
    numbers[1234], numbers[77] = 0.25, 0.0
    x, y = arrays_of(curves_part(PANELS, recording(enumerate(numbers, 1))))["held_out"]
    assert x.size <= MOST_POINTS
    assert (x[0], x[-1]) == (1, 3000)
    assert np.all(np.diff(x) > 0)
    assert y[x == 1235] == [0.25]
    np.testing.assert_array_equal(y, numbers[x.astype(int) - 1])


def test_held_out_errors_have_one_colour_in_all_explorers_and_runs_have_others():
    both = Panel("error", {"relative_error": "seen", "held_out": "hidden"})
    alone = Panel("held out", {"held_out": "hidden"})
    run = recording({1: 0.5}, relative_error=[4.0])
    part = curves_part([both, alone], run, [("run 3", run)])
    first, second = ({c["key"]: c["color"] for c in panel["curves"]} for panel in part["panels"])
    assert second.items() <= first.items()
    assert len(set(first.values())) == len(first) == 4


def test_other_runs_have_curves_of_their_own():
    part = curves_part(PANELS, recording(a=[2.0, 1.0]), [("run 3", recording({1: 0.5}, a=[4.0]))])
    labels = [[each["label"] for each in panel["curves"]] for panel in part["panels"]]
    assert labels == [["seen", "held out", "seen, run 3", "held out, run 3"], ["b"]]
    assert [each["past"] for each in part["panels"][0]["curves"]] == [False, False, True, True]
    assert {key: points[1].tolist() for key, points in arrays_of(part).items()} == {
        "a": [2, 1], "a run 3": [4], "held_out run 3": [0.5],
    }  # fmt: skip
