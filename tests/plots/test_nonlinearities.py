"""The plot of f with the data: points, line, panels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from nmd_lab import plots  # noqa: E402

RNG = np.random.default_rng(0)
X = np.exp(RNG.normal(size=(40, 2)) @ RNG.normal(size=(2, 14)) / 2)
OPTIONS = {"alpha": 0.1, "random_state": 0, "max_iter": 30}


@pytest.fixture(autouse=True)
def _clean_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(X, columns=[f"c{k}" for k in range(14)])


@pytest.fixture(scope="module")
def table(frame):
    return nmd.complete(frame, 2, ["identity", *["monotone"] * 13], **OPTIONS)


def test_one_f_has_one_panel():
    holes = X.copy()
    holes[3, 4] = np.nan
    fit = nmd.complete(holes, 2, "monotone", offsets="rows", **OPTIONS)
    (ax,) = fit.plot.nonlinearity(holes)
    ax.figure.canvas.draw()
    points, line = ax.lines
    WH = fit.W.values @ fit.H.values + fit.offsets.rows[:, None] + fit.offsets.mean
    seen = np.isfinite(holes)
    np.testing.assert_allclose(points.get_xdata(), WH[seen])
    np.testing.assert_array_equal(points.get_ydata(), X[seen])
    np.testing.assert_allclose(line.get_ydata(), fit.nonlinearity(line.get_xdata()))
    ends = [WH[seen].min(), WH[seen].max()]
    np.testing.assert_allclose(line.get_xdata()[[0, -1]], ends)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("WH", "X")
    assert ax.get_title() == "Monotone(20 knots)"
    few = plots.nonlinearity(fit, holes, max_points=7)[0].lines[0]
    assert few.get_xdata().size == 7


def test_a_table_has_a_panel_for_each_column_with_a_curve(table, frame):
    axes = table.plot.nonlinearity(frame)
    assert [ax.get_title() for ax in axes] == [f"c{k}" for k in range(1, 13)]  # at most a dozen
    axes[0].figure.canvas.draw()
    for k, ax in enumerate(axes, start=1):
        points, line = ax.lines
        np.testing.assert_array_equal(points.get_ydata(), frame[f"c{k}"])
        f = table.nonlinearity[k]
        np.testing.assert_allclose(f(points.get_xdata()), table.reconstruct().values[:, k])
        np.testing.assert_allclose(line.get_ydata(), f(line.get_xdata()))
    chosen = table.plot.nonlinearity(frame, columns=["c13", "c0"])
    assert [ax.get_title() for ax in chosen] == ["c13", "c0"]
    assert chosen[0].figure.axes[-1] is chosen[1]


def test_panels_go_onto_axes_that_are_there(table, frame):
    drawn = plt.subplots(1, 2)[1]
    axes = table.plot.nonlinearity(frame, columns=["c1", "c2"], ax=drawn)
    assert list(axes) == list(drawn)
    with pytest.raises(ValueError, match="ax has 2 Axes for 1 panels"):
        table.plot.nonlinearity(frame, columns="c1", ax=drawn)


def test_a_posterior_is_drawn_at_its_mean(frame):
    posterior = nmd.sample(
        frame, 2, ["identity", *["monotone"] * 13], draws=8, tune=4, random_state=0
    )
    (ax,) = posterior.plot.nonlinearity(frame, columns="c3")
    points, line = ax.lines
    kind = posterior._kinds.kinds[3]
    i = np.arange(40)
    WH = kind.centre + kind.size * posterior._fitted.linear_at(i, np.full(40, 3)).mean(axis=0)
    np.testing.assert_allclose(points.get_xdata(), WH)
    np.testing.assert_array_equal(points.get_ydata(), frame["c3"])
    np.testing.assert_allclose(line.get_ydata(), kind.nonlinearity(line.get_xdata()))


def test_what_cannot_be_drawn_is_refused(frame):
    linear = nmd.complete(frame, 2, ["identity"] * 14, **OPTIONS)
    with pytest.raises(ValueError, match="Every column has the identity"):
        linear.plot.nonlinearity(frame)
    which = np.zeros(X.shape, int)
    which[0, 0] = 1
    each = nmd.complete(X, 2, (["identity", "exp"], which), **OPTIONS)
    with pytest.raises(ValueError, match="an f for each entry"):
        each.plot.nonlinearity(X)
    with pytest.raises(KeyError):
        linear.plot.nonlinearity(frame, columns="age")
