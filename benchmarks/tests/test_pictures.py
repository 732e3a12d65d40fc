"""The benchmark of photographs: its cases and scores against independent answers, and its page."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks.pictures import cases, peers, scores
from benchmarks.pictures.__main__ import main

CIRCLES = np.hypot(*np.mgrid[-32:32, -32:32]) % 16 / 16


@pytest.mark.parametrize("case", cases.CASES)
def test_a_case_is_repeatable_and_scores_some_pixels(case):
    problem, again = (cases.problem_of(case, CIRCLES, 0) for _ in range(2))
    np.testing.assert_array_equal(problem.given, again.given)
    np.testing.assert_array_equal(problem.truth, CIRCLES)
    assert problem.scored.any()
    is_changed = problem.given != CIRCLES * problem.units
    assert not (is_changed & ~problem.scored).any()


@pytest.mark.parametrize("mean", [1, 4])
def test_the_inverse_of_anscombe_is_unbiased(mean):
    counts = np.arange(60)
    stable = np.sum(stats.poisson.pmf(counts, mean) * 2 * np.sqrt(counts + 3 / 8))
    assert peers.unbiased_inverse(stable) == pytest.approx(mean, rel=0.02)


def test_interpolation_and_radial_functions_continue_a_plane():
    plane = np.add.outer(np.arange(20.0), np.arange(30.0)) / 60
    problem = cases.problem_of("60 % missing", plane, 0)
    inside = np.s_[4:-4, 4:-4]
    filled = peers.interpolation(problem, 0).picture
    np.testing.assert_allclose(filled[inside], plane[inside], atol=1e-9)
    problem = cases.problem_of("clipped", plane, 0)
    settings = {"kernel": "thin_plate_spline", "neighbors": 30}
    filled = peers.radial_functions(problem, 0, **settings).picture
    np.testing.assert_allclose(filled, plane, atol=1e-6)


def test_scores_of_a_known_error():
    pytest.importorskip("skimage")
    problem = cases.problem_of("60 % missing", np.full((64, 64), 0.5), 0)
    is_odd = np.broadcast_to(np.arange(64) % 2, (64, 64))
    ends = problem.truth + 0.01 * is_odd, problem.truth + 0.1
    found = scores.score(problem, peers.Answer(problem.truth + 0.1, *ends))
    assert (found["rmse"], found["psnr"]) == (pytest.approx(0.1), pytest.approx(20))
    assert found["coverage"] == pytest.approx(1 - is_odd[problem.scored].mean())
    assert scores.score(problem, peers.Answer(problem.truth + 0.6))["rmse"] == pytest.approx(0.5)


def test_the_page_resumes_where_it_was_stopped(tmp_path, capsys):
    pytest.importorskip("skimage")
    arguments = ["--check", "--folder", str(tmp_path)]
    main(arguments)
    first = capsys.readouterr().out
    assert "| china |" in first
    assert (tmp_path / "figures" / "pictures_restored.png").exists()
    main(arguments)
    again = capsys.readouterr().out
    assert again == first[first.index("# Photographs") :]
