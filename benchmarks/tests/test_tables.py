"""The benchmark of tables: its parts against independent answers, and its page in small."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.impute import KNNImputer

from benchmarks.tables import data, hiding, methods, peers, regression, scores
from benchmarks.tables.__main__ import main


def mixed(rows=60):
    rng = np.random.default_rng(0)
    frame, _ = regression.generated(rng, rows)
    return frame


@pytest.mark.parametrize("is_weighted", [False, True])
def test_neighbours_are_those_of_scikit_learn(is_weighted):
    rng = np.random.default_rng(0)
    Z = np.where(rng.random((40, 5)) < 0.2, np.nan, rng.normal(size=(40, 5)))
    known = KNNImputer(n_neighbors=7, weights="distance" if is_weighted else "uniform")
    found = peers.by_neighbours(Z, Z, 7, is_weighted)
    np.testing.assert_allclose(found, known.fit_transform(Z))


def test_hidden_cells_keep_the_types_and_come_back_from_numbers():
    frame = mixed()
    seen, hidden = hiding.hide(frame, 0)
    assert (seen.dtypes == frame.dtypes).all()
    assert (seen.isna().to_numpy() == hidden).all()
    encoding = data.Encoding(seen)
    whole = encoding.again(frame)
    np.testing.assert_allclose(encoding.back(whole, "dose")[:, 0], frame["dose"])
    for name, found in methods.positions(encoding, seen, whole).items():
        np.testing.assert_array_equal(found, data.codes(frame[name]))


def test_scores_of_a_method_that_knows_all_and_of_one_that_knows_nothing():
    frame = mixed(400)
    seen, hidden = hiding.hide(frame, 0)
    p = {n: np.eye(data.n_classes(frame[n]))[data.codes(frame[n]).astype(int)]
         for n in ("smoker", "pain", "clinic")}  # fmt: skip
    points = {name: data.codes(frame[name]) for name in frame}
    draws = np.stack([data.Encoding(seen).again(frame)] * 3)
    best = scores.score(frame, seen, hidden, scores.Answer(points, p, draws))
    assert (best["number"], best["level"], best["class"], best["energy"]) == (0, 0, 1, 0)
    assert best["log"] > np.log(40 / 41)
    worst = scores.score(frame, seen, hidden, peers.METHODS["mean, frequencies"].fill(seen, 0))
    assert worst["number"] == pytest.approx(1, abs=0.1)
    shares = [frame[name].value_counts(normalize=True) for name in p]
    entropy = np.mean([stats.entropy(each.astype(float)) for each in shares])
    assert worst["log"] == pytest.approx(-entropy, abs=0.1)


def test_patterns_hide_the_cells_that_they_name():
    """A probability in proportion to the rank has a mean rank of 2/3 among the hidden cells."""
    frame = mixed(4000)
    for name in ("given another column", "large values"):
        _, hidden = hiding.hide(frame, 0, name)
        driver = "age" if name[0] == "g" else "marker"
        rank = frame[driver].rank(pct=True)[hidden[:, list(frame).index("marker")]]
        assert rank.mean() == pytest.approx(2 / 3, abs=0.03)
        assert hidden.mean() == pytest.approx(0.2, abs=0.05)
    _, hidden = hiding.hide(frame, 0, "blocks")
    assert np.unique(hidden, axis=0).sum(axis=1).tolist() in ([0, 3, 4], [0, 4, 3])


def test_the_score_and_the_ends_of_draws_of_a_normal_number():
    rng = np.random.default_rng(0)
    y = rng.normal(size=4000)
    truth = y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)
    draws = rng.normal(size=(19, y.size))
    assert scores.continuous_score(draws, y) == pytest.approx(truth.mean(), abs=0.01)
    low, high = scores.ends_of(draws).T  # the least and the largest of 19
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.9, abs=0.015)
    assert scores.ends_of(draws[:18]) is None


def test_the_calibration_error_of_probabilities():
    p = np.array([[0.8, 0.2]] * 10)
    truth = np.repeat([0, 1], [6, 4])
    assert scores.calibration_error(scores.in_bins(p, truth)) == pytest.approx(0.2)


def test_the_page_goes_on_where_it_was_stopped(tmp_path, capsys):
    arguments = ["--check", "--folder", str(tmp_path), "--parts", "compared", "coverage"]
    arguments += ["--methods", "nmd.sample", "KNN"]
    main(arguments)
    first = capsys.readouterr().out
    assert "| wine |" in first
    assert (tmp_path / "figures" / "tables_reliability.png").exists()
    main(arguments)
    again = capsys.readouterr().out
    assert again == first[first.index("# Impute tables") :]
