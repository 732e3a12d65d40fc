"""The plots of a posterior, and of the trials from which options were chosen: what is drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from chosen import selection, trials, with_selection
from made_draws import made_up, plain
from matplotlib.colors import to_hex, to_rgb

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
    _, *ticks = [tick.get_text() for tick in ax.get_xticklabels()]
    assert ticks == ["mean", f"standard deviation, to {v.std(axis=0).max():.2g}"]


def test_each_row_is_a_picture(posterior):
    ax = posterior.plot.uncertainty(shape=(3, 4))
    assert len(ax.images) == 8
    assert ax.images[0].get_array().shape == (3, 4)
    one = plots.uncertainty(posterior, [-1], shape=(4, 3), noise=True)
    np.testing.assert_allclose(
        one.images[1].get_array().ravel(), posterior.predict_std(M - 1, np.arange(N))
    )


RANKS, ALPHAS = [4, 8, 16], [0.3, 1.0, 3.0, 10.0]


def drawn(plain, rows, chosen=None):
    """Return both panels."""
    return plots.selection(with_selection(plain, selection(rows, chosen)))


def curves(ax):
    """Return the points of each line with a line style: not single marks, not the dotted level."""
    return [np.transpose(line.get_data()) for line in ax.lines
            if line.get_linestyle() != "None" and line.get_marker() != "None"]  # fmt: skip


def ring(ax):
    """Return the point that is marked as the chosen one."""
    (marked,) = (c for c in ax.collections if len(c.get_facecolors()) == 0 and c.get_offsets().size)
    return marked.get_offsets()[0].tolist()


def words(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_left_panel_has_a_line_for_each_rank_and_the_right_its_lowest_error_in_a_band(plain):
    rows = trials(RANKS, ALPHAS)
    left, right = drawn(plain, rows)
    lines = curves(left)
    assert len(lines) == 3
    for rank, line in zip(RANKS, lines, strict=True):
        points = [(row["alpha"], row["error"]) for row in rows if row["rank"] == rank]
        np.testing.assert_allclose(line, points)
    assert left.get_xscale() == "log"
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["0.5", "1", "2", "5", "10"]
    assert (left.get_xlabel(), left.get_ylabel()) == ("alpha", "held-out root mean squared error")
    assert words(left) == ["4", "8", "16"]
    assert left.get_title() == "12 trials"
    assert ring(left) == [3.0, 2.5]
    (line,) = curves(right)
    np.testing.assert_allclose(line, [(4, 2.625), (8, 2.5), (16, 2.625)])
    band = right.collections[0].get_paths()[0].vertices
    for rank, error, spread in ((4, 2.625, 0.01), (16, 2.625, 0.01), (8, 2.5, 0.0)):
        edge = band[band[:, 0] == rank][:, 1]
        assert (edge.min(), edge.max()) == pytest.approx((error - spread, error + spread))
    assert ring(right) == [8, 2.5]
    assert right.get_title() == "chosen: rank 8, alpha 3"
    assert right.get_xticks().tolist() == RANKS
    assert right.get_legend() is None
    colors = [[to_rgb(line.get_color()) for line in ax.lines] for ax in (left, right)]
    assert set(colors[0]) <= set(colors[1])  # a rank has one colour


def test_other_models_have_their_own_line_after_the_chosen_one(plain):
    relu = [row | {"error": row["error"] - 0.5} for row in trials([4, 8], [1, 3])]
    relu = [row | {"nonlinearity": "ReLU()", "loss": "l1"} for row in relu]
    rows = relu + trials([4, 8, 16], [1, 3])
    left, right = drawn(plain, rows, chosen=6)  # which need not be the lowest
    assert ring(left) == [1, rows[6]["error"]]
    assert ring(right) == [8, rows[6]["error"]]
    assert words(right) == ["MinMax(0, 16), frobenius", "ReLU(), l1"]
    assert right.get_title() == "chosen: MinMax(0, 16), rank 8, alpha 1"
    styles = [line.get_linestyle() for line in right.lines if len(line.get_xdata()) > 1]
    assert styles[:2] == ["-", "--"]
    assert len(curves(left)) == 5
    assert [len(points) for points in curves(right)] == [3, 2]


def test_alpha_may_be_zero(plain):
    left, _ = drawn(plain, trials(RANKS, [0.0, 1.0, 10.0, 100.0]))
    assert left.get_xscale() == "symlog"
    assert left.get_xticklabels()[0].get_text() == "0"
    zero, one, ten, hundred = left.transData.transform([(x, 2.5) for x in (0, 1, 10, 100)])[:, 0]
    assert ten - one == pytest.approx(hundred - ten)
    assert zero < one
    only, _ = drawn(plain, trials([2, 4], [0.0]))
    assert only.get_xticks().tolist() == [0]


def test_what_is_not_drawn_is_counted(plain):
    rows = trials(RANKS, ALPHAS)
    rows[0] |= {"error": float("nan"), "spread": float("nan")}
    rows[-1] |= {"error": 1e6}
    left, right = drawn(plain, rows)
    assert left.get_title() == "12 trials (1 unfinished, 1 above the frame)"
    assert left.get_ylim()[1] < 4
    assert ring(left) == [3.0, 2.5]
    assert right.get_ylim()[1] < 4
    everything, _ = drawn(plain, rows, chosen=11)  # the chosen one is always seen
    assert everything.get_ylim()[1] > 1e6


def test_without_trials_an_error_says_what_to_do(plain):
    with pytest.raises(ValueError, match=r"fit has no trials .* given: let complete\(\) choose"):
        plain.plot.selection()
    assert not plt.get_fignums()
