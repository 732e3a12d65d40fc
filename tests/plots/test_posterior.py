"""The plots of a posterior: what is drawn, not only that something is."""

import numpy as np
import pytest
from made_draws import made_up, plain
from matplotlib.colors import to_hex

from nmd_lab import plots
from nmd_lab.plots._canvas import Palette

M, N = 20, 12


@pytest.fixture(scope="module")
def posterior():
    rng = np.random.default_rng(2)
    return made_up(
        np.zeros((M, N)),
        log_likelihood=rng.normal(size=(2, 40)),
        predictions=rng.normal(size=(2, 40, 3)),
        probe_rows=[0, 7, 5],
        probe_columns=[4, 2, 0],
    )


@pytest.fixture(scope="module")
def X(posterior):
    """New observations from the posterior, so that intervals are right."""
    holes = np.full((M, N), np.nan)
    holes[0, 0] = 0.0
    copies = posterior.impute(holes, M * N, random_state=1)
    return np.array([copy.ravel()[k] for k, copy in enumerate(copies)]).reshape(M, N)


def test_trace(posterior):
    ax = posterior.plot.trace()
    for line, values in zip(ax.lines, posterior.trace.log_likelihood.values, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert f"R-hat {posterior.rhat.log_likelihood.item():.3f}" in ax.get_title()
    probe = plots.trace(posterior, probe=1)
    np.testing.assert_array_equal(
        probe.lines[1].get_ydata(), posterior.trace.prediction.values[1, :, 1]
    )
    assert probe.get_ylabel() == "prediction at row 7, column 2"
    with pytest.raises(IndexError, match="probe=3 is not recorded: the trace has 3 of them"):
        plots.trace(posterior, probe=3)


def test_predictions_against_observed(posterior, X):
    ax = posterior.plot.predictions(X, level=0.5, max_points=1000)
    inside, outside, diagonal = ax.lines
    drawn = np.concatenate([inside.get_xdata(), outside.get_xdata()])
    np.testing.assert_array_equal(np.sort(drawn), np.sort(X.ravel()))
    share = inside.get_xdata().size / X.size
    assert f"{100 * share:.0f} % of the 50 % intervals" in ax.get_title()
    assert share == pytest.approx(0.5, abs=0.1)
    assert to_hex(outside.get_color()) == Palette.positive
    assert list(diagonal.get_xdata()) == [X.min(), X.max()]
    few = plots.predictions(posterior, X, max_points=10)
    assert sum(line.get_xdata().size for line in few.lines[:2]) == 10


def test_calibration(posterior, X):
    ax = posterior.plot.calibration(X, levels=[0.2, 0.5, 0.9])
    levels, shares = ax.lines[-1].get_data()
    assert list(levels) == [0.2, 0.5, 0.9]
    np.testing.assert_allclose(shares, levels, atol=0.1)
    assert np.all(np.diff(shares) > 0)


def test_map_beside_the_picture(posterior, X):
    holes = X.copy()
    holes[2, 5] = np.nan
    ax = posterior.plot.uncertainty(X=holes)
    observed, mean, spread = (image.get_array() for image in ax.images)
    assert np.ma.getmaskarray(np.ma.masked_invalid(observed))[2, 5]
    v, _, _, _ = plain(posterior)
    np.testing.assert_allclose(mean, v.mean(axis=0), atol=2e-6)
    np.testing.assert_allclose(spread, v.std(axis=0), atol=2e-6)
    assert [tick.get_text() for tick in ax.get_xticklabels()][1:] == [
        "mean",
        f"standard deviation, to {v.std(axis=0).max():.2g}",
    ]


def test_each_row_is_a_picture(posterior):
    ax = posterior.plot.uncertainty(shape=(3, 4))
    assert len(ax.images) == 8
    assert ax.images[0].get_array().shape == (3, 4)
    one = plots.uncertainty(posterior, [-1], shape=(4, 3), noise=True)
    np.testing.assert_allclose(
        one.images[1].get_array().ravel(), posterior.predict_std(M - 1, np.arange(N))
    )
    with pytest.raises(ValueError, match="does not hold 12 columns"):
        plots.uncertainty(posterior, shape=(5, 3))
    with pytest.raises(IndexError, match="rows holds 20"):
        plots.uncertainty(posterior, [20])
