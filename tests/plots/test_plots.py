"""Plots: what is drawn, not only that something is."""

import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import check_all_refused
from scipy import sparse

import nmd_lab
from nmd_lab import datasets, plots


@pytest.fixture(scope="module")
def X():
    return datasets.digits(120)


@pytest.fixture(scope="module")
def fit(X):
    return nmd_lab.decompose(X, 6, "relu", max_iter=60, tol=0, random_state=0)


def drawn(ax):
    """Return the arrays of the pictures."""
    return [np.ma.filled(image.get_array().astype(float), np.nan) for image in ax.images]


def test_convergence_draws_the_history_and_names_the_axis_of_one_quantity(fit):
    ax = plots.convergence(fit, quantities=["relative_error", "primal_residual"])
    error, primal = ax.lines
    np.testing.assert_array_equal(error.get_xdata(), np.arange(1, 61))
    np.testing.assert_array_equal(error.get_ydata(), fit.history.relative_error)
    np.testing.assert_array_equal(primal.get_ydata(), fit.history.primal_residual)
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["relative error", "primal residual ‖T − WH‖"]
    assert ax.get_yscale() == "log"
    assert f"{fit.relative_error:.3g}" in ax.get_title()
    assert "ReLU(), frobenius, rank 6" in ax.get_title()
    ax = plots.convergence(fit)
    assert ax.get_ylabel() == "relative error"
    assert ax.get_legend() is None
    assert ax.get_yscale() == "linear"  # this one spans too little for a logarithm


def test_components_are_images_in_their_places(fit):
    ax = plots.components(fit)
    images = drawn(ax)
    assert len(images) == 6
    for image, row in zip(images, fit.H.values, strict=True):
        np.testing.assert_allclose(image, row.reshape(8, 8))
    shuffled = nmd_lab.decompose(
        datasets.digits(120)[:, ::-1], 6, "relu", max_iter=60, tol=0, init=(fit.W, fit.H[:, ::-1])
    )
    for image, row in zip(drawn(plots.components(shuffled)), shuffled.H.values, strict=True):
        np.testing.assert_allclose(image, row[::-1].reshape(8, 8))  # by label, not by position


def test_components_of_stacked_dimensions(rng):
    field = xr.DataArray(rng.random((7, 4, 5)), dims=("time", "lat", "lon"),
                         coords={"lat": [10.0, 20, 30, 40]})  # fmt: skip
    fit = nmd_lab.decompose(field, 2, max_iter=3, sample_dims="time")
    image = drawn(plots.components(fit))[0]
    np.testing.assert_allclose(image, fit.H.isel(component=0).values[::-1])  # north is up


def test_components_of_a_picture_are_its_layers():
    pytest.importorskip("PIL")
    fit = nmd_lab.decompose(datasets.photograph(size=(30, 40)), 3, "identity", max_iter=5)
    layers = drawn(plots.components(fit))
    np.testing.assert_allclose(sum(layers), fit.reconstruct(), atol=1e-9)


def test_components_of_a_table_are_bars(rng):
    names = [f"property {i}" for i in range(7)]
    frame = pd.DataFrame(rng.random((20, 7)), columns=names)
    fit = nmd_lab.decompose(frame, 3, max_iter=5)
    ax = plots.components(fit)
    assert [label.get_text() for label in ax.get_yticklabels()] == names
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(3, 7)
    H = fit.H.values
    np.testing.assert_allclose(widths, 0.45 * H / np.abs(H).max(axis=1, keepdims=True))


def test_components_without_words_are_lines(rng):
    wave = xr.DataArray(rng.random((20, 50)), dims=("sample", "wavelength"),
                        coords={"wavelength": np.linspace(400, 700, 50)})  # fmt: skip
    wave.wavelength.attrs["units"] = "nm"
    ax = plots.components(nmd_lab.decompose(wave, 3, max_iter=5))
    curves = [line for line in ax.lines if len(line.get_xdata()) == 50]
    assert len(curves) == 3
    assert curves[0].get_xdata()[-1] == 700
    assert ax.get_xlabel() == "wavelength [nm]"


def test_reconstruction_of_rows(X, fit):
    ax = plots.reconstruction(fit, X, rows=[3, 10])
    images = drawn(ax)
    model = fit.reconstruct().values
    expected = [X.values[3], X.values[10], model[3], model[10],
                X.values[3] - model[3], X.values[10] - model[10]]  # fmt: skip
    for image, row in zip(images, expected, strict=True):
        np.testing.assert_allclose(image, row.reshape(8, 8))
    titles = [label.get_text() for label in ax.get_xticklabels()]
    assert titles[:2] == ["observed", "reconstruction"]
    assert titles[2].startswith("residual, ±")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["digit 3", "digit 0"]
    left, right = ax.images[0].norm, ax.images[2].norm
    assert (left.vmin, left.vmax) == (right.vmin, right.vmax)


def test_reconstruction_of_rows_that_make_no_picture(rng):
    users = pd.Index([f"u{i}" for i in range(9)], name="user")
    frame = pd.DataFrame(rng.random((9, 50)), index=users, columns=[f"film {i}" for i in range(50)])
    ax = plots.reconstruction(nmd_lab.decompose(frame, 2, max_iter=5), frame, rows=["u4", 2, "u8"])
    np.testing.assert_array_equal(drawn(ax)[0], frame.iloc[[4, 2, 8]])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["user u4", "user u2", "user u8"]
    top, middle, bottom = ax.get_yticks()
    assert top < middle < bottom  # the axis points down, as in the table


def test_reconstruction_shows_what_was_hidden(X, rng):
    seen = rng.random(X.shape) < 0.7
    fit = nmd_lab.complete(X, 4, "minmax", observed=seen, alpha=0, max_iter=20)
    ax = plots.reconstruction(fit, X, observed=seen)
    original, observed, model, residual = drawn(ax)
    np.testing.assert_array_equal(original, X)
    np.testing.assert_array_equal(np.isnan(observed), ~seen)
    np.testing.assert_allclose(model, fit.reconstruct())
    np.testing.assert_allclose(residual, X - fit.reconstruct())
    holes = plots.reconstruction(fit, X.where(seen))
    assert holes.get_xticklabels()[0].get_text() == "observed"
    np.testing.assert_array_equal(np.isnan(drawn(holes)[2]), ~seen)


@pytest.mark.parametrize(
    ("loss", "name", "label"),
    [
        ("frobenius", "Gaussian", "residual of ink"),
        ("l1", "Laplace", "residual of ink"),
        ("kl", "Gaussian", "Pearson residual"),
    ],
)
def test_residuals_are_compared_with_the_noise_of_the_loss(loss, name, label):
    rng = np.random.default_rng(0)
    clean = (rng.random((300, 3)) + 0.5) @ (rng.random((3, 200)) + 0.5)
    if loss == "kl":
        noisy = datasets.poisson(clean, peak=100, random_state=0) * 100
    else:
        draw = rng.standard_normal if loss == "frobenius" else rng.laplace
        noisy = clean + 0.1 * draw(size=clean.shape)
    fit = nmd_lab.decompose(noisy, 3, "identity", loss, max_iter=150)
    left, right = plots.residuals(fit, xr.DataArray(noisy, name="ink"))
    assert right.get_xlabel() == f"{name} quantile"
    assert left.get_xlabel() == label
    area = sum(bar.get_height() * bar.get_width() for bar in left.patches)
    assert area == pytest.approx(1)
    curve, points = left.lines[0], right.lines[0]
    assert np.trapezoid(curve.get_ydata(), curve.get_xdata()) == pytest.approx(1, abs=0.05)
    # The noise is that of the loss
    expected, found = points.get_xdata()[20:-20], points.get_ydata()[20:-20]
    np.testing.assert_allclose(found, expected, atol=0.05 * np.abs(expected).max())


def test_scatter_by_a_coordinate_by_numbers_and_by_nothing(fit):
    ax = plots.scatter(fit, 1, 2, labels="digit")
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == [str(digit) for digit in range(10)]
    assert ax.get_legend().get_title().get_text() == "digit"
    threes = ax.collections[3].get_offsets()
    np.testing.assert_allclose(threes, fit.W.values[fit.W.digit == 3][:, [1, 2]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component 1", "component 2")
    sizes = xr.DataArray(np.linspace(0, 1, 120), dims="image", name="size")
    ax = plots.scatter(fit, labels=sizes)
    np.testing.assert_allclose(ax.collections[0].get_array(), sizes)
    assert ax.figure.axes[1].get_ylabel() == "size"
    np.testing.assert_allclose(plots.scatter(fit).collections[0].get_offsets(), fit.W.values[:, :2])


def test_without_matplotlib_a_plot_says_how_to_get_it(fit, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        plots.convergence(fit)


RNG = np.random.default_rng(0)
INCOME = np.exp(RNG.normal(size=(40, 2)) @ RNG.normal(size=(2, 14)) / 2)
FRAME = pd.DataFrame(INCOME).add_prefix("c")
OPTIONS = {"alpha": 0.1, "random_state": 0, "max_iter": 30}


def test_one_f_has_one_panel():
    holes = INCOME.copy()
    holes[3, 4] = np.nan
    fit = nmd_lab.complete(holes, 2, "monotone", offsets="rows", **OPTIONS)
    (ax,) = fit.plot.nonlinearity(holes)
    points, line = ax.lines
    WH = fit.W.values @ fit.H.values + fit.offsets.rows[:, None] + fit.offsets.mean
    seen = np.isfinite(holes)
    np.testing.assert_allclose(points.get_xdata(), WH[seen])
    np.testing.assert_array_equal(points.get_ydata(), INCOME[seen])
    np.testing.assert_allclose(line.get_ydata(), fit.nonlinearity(line.get_xdata()))
    ends = [WH[seen].min(), WH[seen].max()]
    np.testing.assert_allclose(line.get_xdata()[[0, -1]], ends)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("WH", "X")
    assert ax.get_title() == "Monotone(20 knots)"
    few = plots.nonlinearity(fit, holes, max_points=7)[0].lines[0]
    assert few.get_xdata().size == 7


def test_a_table_has_a_panel_for_each_column_with_a_curve():
    table = nmd_lab.complete(FRAME, 2, ["identity", *["monotone"] * 13], **OPTIONS)
    axes = table.plot.nonlinearity(FRAME)
    assert [ax.get_title() for ax in axes] == [f"c{k}" for k in range(1, 13)]  # at most a dozen
    for k, ax in enumerate(axes, start=1):
        points, line = ax.lines
        np.testing.assert_array_equal(points.get_ydata(), FRAME[f"c{k}"])
        f = table.nonlinearity[k]
        np.testing.assert_allclose(f(points.get_xdata()), table.reconstruct().values[:, k])
        np.testing.assert_allclose(line.get_ydata(), f(line.get_xdata()))
    chosen = table.plot.nonlinearity(FRAME, columns=["c13", "c0"])
    assert [ax.get_title() for ax in chosen] == ["c13", "c0"]
    assert chosen[0].figure.axes[-1] is chosen[1]


def test_a_posterior_is_drawn_at_its_mean():
    posterior = nmd_lab.sample(
        FRAME, 2, ["identity", *["monotone"] * 13], draws=8, tune=4, random_state=0
    )
    (ax,) = posterior.plot.nonlinearity(FRAME, columns="c3")
    points, line = ax.lines
    kind = posterior._model.column_models[3]
    i = np.arange(40)
    WH = kind.centre + kind.size * posterior._draws.linear_at(i, np.full(40, 3)).mean(axis=0)
    np.testing.assert_allclose(points.get_xdata(), WH)
    np.testing.assert_array_equal(points.get_ydata(), FRAME["c3"])
    np.testing.assert_allclose(line.get_ydata(), kind.nonlinearity(line.get_xdata()))


def test_what_cannot_be_drawn_is_refused(fit, X):
    bare = nmd_lab.decompose(X.values, 2, max_iter=3)
    linear = nmd_lab.complete(FRAME, 2, ["identity"] * 14, **OPTIONS)
    which = np.zeros(INCOME.shape, int)
    which[0, 0] = 1
    each = nmd_lab.complete(INCOME, 2, (["identity", "exp"], which), **OPTIONS)
    residuals, reconstruction = partial(plots.residuals, fit), partial(plots.reconstruction, fit)
    coloured = lambda by: plots.scatter(fit, labels=by)  # noqa: E731
    check_all_refused([
        ("quantities=.* choose from", lambda of: plots.convergence(fit, quantities=of), ["speed"]),
        (r"shape=\(3, 3\) does not hold 64 columns",
         lambda shape: plots.components(bare, shape=shape), (3, 3)),
        ("shape=None leaves open", lambda kind: plots.components(bare, kind=kind), "images"),
        ("kind='stars' is unknown", lambda kind: plots.components(fit, kind=kind), "stars"),
        ("X has 3 rows: give the 120 of the fit", residuals, sparse.eye_array(3)),
        ("X has 2 rows: give", reconstruction, X.values[:2]),
        ("labels along 'image'", residuals, X.assign_coords(image=X.image + 7)),
        ("rows holds 120, .* from 0 to 119", lambda rows: reconstruction(X, rows=rows), [120]),
        ("y=6 is no component: there are 6", lambda y: plots.scatter(fit, 0, y), 6),
        ("'colour' is no coordinate of .*digit", coloured, "colour"),
        ("2 values: give one for each of 120 rows", coloured, [1, 2]),
        ("Every column has the identity", linear.plot.nonlinearity, FRAME),
        ("an f for each entry", each.plot.nonlinearity, INCOME),
        ("'age'", lambda name: linear.plot.nonlinearity(FRAME, columns=name), "age"),
    ])  # fmt: skip
