"""Curves in the browser: the numbers that they get, and the functions that draw them."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest
from waiting import PATIENCE

pytest.importorskip("anywidget")

from nmd_lab.widgets._curves import FRONT, MOST_POINTS, CurveView, Panel
from nmd_lab.widgets._live_chart import LiveChart

PANELS = [
    Panel("error", {"a": "seen", "held_out": "held out"}, lowest="held_out"),
    Panel("other", {"b": "b"}),
]


def points_of(view):
    """Return the points that the browser gets, by key."""
    numbers, points, begin = np.frombuffer(view.values, "<f8"), {}, 0
    for key, size in view.sizes.items():
        points[key] = numbers[begin : begin + 2 * size].reshape(2, size)
        begin += 2 * size
    assert begin == numbers.size
    return points


def test_all_numbers_arrive_as_they_are():
    view = CurveView(PANELS)
    assert {key: each.shape for key, each in points_of(view).items()} == dict.fromkeys(
        ("a", "held_out", "b"), (2, 0)
    )
    a = np.geomspace(1, 1e-300, MOST_POINTS)
    view.show({"a": (range(1, a.size + 1), a), "b": ([1, 2], [0.0, np.inf]), "other": ([1], [2])})
    points = points_of(view)
    np.testing.assert_array_equal(points["a"], [np.arange(1, a.size + 1), a])
    np.testing.assert_array_equal(points["b"], [[1, 2], [0, np.inf]])
    assert list(points) == ["a", "held_out", "b"]
    view.show({})
    assert view.values == b""


def test_a_long_curve_is_thinned_but_keeps_its_ends_and_its_minimum():
    view = CurveView(PANELS)
    numbers = np.linspace(2, 1, 3000)
    numbers[1234], numbers[77] = 0.25, 0.0
    view.show({"held_out": (range(1, 3001), numbers)})
    x, y = points_of(view)["held_out"]
    assert x.size <= MOST_POINTS
    assert (x[0], x[-1]) == (1, 3000)
    assert np.all(np.diff(x) > 0)
    assert y[x == 1235] == [0.25]
    np.testing.assert_array_equal(y, numbers[x.astype(int) - 1])


def test_one_message_has_all_that_changes():
    view, sent = CurveView(PANELS), []
    view.comm.send = lambda data=None, buffers=(), **rest: sent.append((data, buffers))
    view.show({"a": ([1, 2], [1.0, 0.5])})
    ((message, buffers),) = sent
    assert message["state"] == {"sizes": {"a": 2, "held_out": 0, "b": 0}}
    assert message["buffer_paths"] == [["values"]]  # no text, no base64
    assert bytes(buffers[0]) == view.values


def test_the_caption_and_what_is_hidden():
    chart = LiveChart(PANELS)
    chart.show({})
    assert chart.view.layout.display == "none"
    chart.show({"iteration": [1, 2, 3], "a": [3.0, 2.0, 1.0]}, {1: 3.0, 2: 1.0, 3: 2.0}, " of X")
    assert chart.view.layout.display is None
    assert chart.caption.value == "held-out error: lowest 1 at iteration 2, 2 at 3 of X"
    assert points_of(chart.view)["held_out"].tolist() == [[1, 2, 3], [3, 1, 2]]


def in_node(code):
    """Return what an expression of the functions in curves.js gives, as JSON."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing")
    module = json.dumps((FRONT / "curves.mjs").as_uri())
    names = "decode, logTicks, wholeTicks, nearest"
    script = f"import {{ {names} }} from {module}; console.log(JSON.stringify({code}))"
    command = [node, "--input-type=module", "-e", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.11, 0.13), (0.2, 0.33), (1e-12, 1.0), (0.2, 40), (3, 3.0001), (1e-300, 1e300)],
)
def test_ticks_of_a_logarithmic_axis(low, high):
    ticks = in_node(f"logTicks({low}, {high})")
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))
    assert len(ticks) <= 6
    assert len(ticks) >= 2


@pytest.mark.parametrize("high", [1, 1.02, 7, 99, 2040, 123456])
def test_ticks_of_iterations_are_whole(high):
    ticks = in_node(f"wholeTicks(0, {high})")
    assert ticks[0] == 0
    assert len(ticks) in range(2, 8)
    steps = np.diff(ticks)
    assert np.all(steps == steps[0])
    assert steps[0] == int(steps[0]) >= 1


def test_the_nearest_point_is_found():
    x = [1, 2, 4, 8, 100]
    for number in (-5, 1, 1.4, 1.6, 3.1, 53, 55, 1000):
        k = in_node(f"nearest({x}, {number})")
        assert abs(x[k] - number) == min(abs(each - number) for each in x)
