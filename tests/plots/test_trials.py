"""The plot of the trials from which options were chosen: what is drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from chosen import selection, trials, with_selection
from matplotlib.colors import to_rgb

from nmd_lab import plots

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


def test_the_chosen_trial_need_not_be_the_lowest(plain):
    left, right = drawn(plain, trials(RANKS, ALPHAS), chosen=1)
    error = trials([4], [1.0])[0]["error"]
    assert ring(left) == [1.0, error]
    assert ring(right) == [4, error]


def test_other_models_have_their_own_line_after_the_chosen_one(plain):
    relu = [row | {"error": row["error"] - 0.5} for row in trials([4, 8], [1, 3])]
    relu = [row | {"nonlinearity": "ReLU()", "loss": "l1"} for row in relu]
    left, right = drawn(plain, relu + trials([4, 8, 16], [1, 3]), chosen=7)
    assert words(right) == ["MinMax(0, 16), frobenius", "ReLU(), l1"]
    assert right.get_title() == "chosen: MinMax(0, 16), rank 8, alpha 3"
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
