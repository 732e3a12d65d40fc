"""The tables of docs/selection.md: simple models, the walk on the grid, stored answers, pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.selection import compared, fits, hindsight, never_worse, recovery, simple  # noqa: E402
from benchmarks.selection.generated import MAKERS, generate  # noqa: E402
from benchmarks.selection.problems import hide, hide_share, moving_block  # noqa: E402
from benchmarks.selection.store import Store  # noqa: E402

DONE: list[int] = []


def work(*, number: int) -> dict[str, int]:
    """Square a number, and remember that it was done."""
    DONE.append(number)
    return {"square": number**2}


def test_an_answer_is_worked_out_once(tmp_path: Path) -> None:
    DONE.clear()
    answers = [Store(tmp_path).get(work, number=number) for number in (3, 4, 3)]
    assert [answer["square"] for answer in answers] == [9, 16, 9]
    assert DONE == [3, 4]


def test_answers_that_depend_on_the_code_are_worked_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DONE.clear()
    for code in ("old", "new"):
        monkeypatch.setattr("benchmarks.selection.store.state_of_code", lambda code=code: code)
        Store(tmp_path).get(work, number=5)
        Store(tmp_path).get(work, depends_on_code=False, number=6)
    assert DONE == [5, 6, 5]


def test_test_entries_are_hidden_from_the_fit() -> None:
    X = np.arange(1.0, 13.0).reshape(3, 4)
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[1, 2] = hidden[0, 3] = True
    problem = hide(X, hidden)
    assert np.isnan(problem.X[problem.rows, problem.columns]).all()
    assert sorted(problem.values.tolist()) == [4.0, 7.0]
    assert sorted(problem.observed()[2].tolist()) == sorted(X[~hidden].tolist())
    assert problem.rmse(problem.values + 2) == 2.0


def test_a_moving_block_hides_nine_pixels_of_each_image() -> None:
    assert set(np.isnan(moving_block().X).sum(axis=1)) == {9}


@pytest.mark.parametrize("name", MAKERS)
def test_generated_sets_have_observed_and_test_entries(name: str) -> None:
    problem = generate(name)
    assert problem.observed()[2].size > 0
    assert problem.values.size > 0
    again = generate(name)
    np.testing.assert_array_equal(problem.X, again.X)


def test_simple_models_against_plain_means() -> None:
    rng = np.random.default_rng(0)
    problem = hide_share(3 + rng.normal(size=(20, 15)) + rng.normal(size=15), 0.4)
    errors = simple.errors(problem)
    columns = np.nanmean(problem.X, axis=0)[problem.columns]
    rows = np.nanmean(problem.X, axis=1)[problem.rows]
    assert errors["column means"] == pytest.approx(problem.rmse(columns))
    assert errors["row means"] == pytest.approx(problem.rmse(rows))
    assert errors["offsets"] < errors["global mean"]


def test_offsets_solve_their_ridge_problem() -> None:
    rng = np.random.default_rng(1)
    X, ridges = rng.normal(size=(6, 5)), (2.0, 3.0)
    rows, columns = (index.ravel() for index in np.indices(X.shape))
    mean, b, c = simple.offsets((rows, columns, X.ravel()), X.shape, ridges)
    residual = X - mean - b[:, None] - c
    np.testing.assert_allclose(residual.sum(axis=1), ridges[0] * b, atol=1e-8)
    np.testing.assert_allclose(residual.sum(axis=0), ridges[1] * c, atol=1e-8)


def test_the_walk_ends_where_alpha_is_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = hindsight.Grid(Store(tmp_path), "offsets")

    def score(**point: Any) -> dict[str, float]:
        step = 4 * np.log10(point["alpha"] / grid.problem.observed()[2].std())
        return {"rmse": (step - 3) ** 2 + (point["rank"] - 4) ** 2 + 1}

    monkeypatch.setattr(hindsight, "plain", score)
    grid.search((2, 4, 6), ("identity",), 4)
    best = min(grid.errors, key=grid.errors.__getitem__)
    assert (best.rank, best.step) == (4, 3)
    assert {point.offset_alpha for point in grid.errors} == set(hindsight.OFFSET_ALPHAS)


def test_expensive_sets_have_ranks_next_to_the_chosen_one() -> None:
    name = hindsight.EXPENSIVE[0]
    assert hindsight.ranks_of(name, 16, quick=False) == (2, 6, 12, 16, 20, 24, 40)
    assert hindsight.ranks_of(name, 1, quick=False) == (1, 2, 6, 12, 24, 40)
    assert hindsight.ranks_of(name, 100, quick=False) == (2, 6, 12, 24, 40, 64, 100)
    assert hindsight.ranks_of("digits, 60 %", 16, quick=False) == hindsight.RANKS


def test_nonlinearities_of_the_grid_by_word() -> None:
    problem = generate("counts")
    found = [repr(fits.function(word, problem)) for word in ("identity", "relu", "minmax")]
    assert found[:2] == ["Identity()", "ReLU()"]
    assert found[2] == f"MinMax(0, {np.nanmax(problem.X):g})"


def test_the_default_and_a_plain_call_are_scored() -> None:
    default = fits.default(name="6x5")
    chosen = {name: default[name] for name in ("rank", "alpha")}
    plain = fits.plain(name="6x5", nonlinearity="minmax", offset_alpha=-1, **chosen)
    assert default["trials"]
    assert min(default["rmse"], plain["rmse"]) > 0


def test_sections_say_how_often_the_goal_is_missed(tmp_path: Path) -> None:
    default = {"rmse": 1.1, "rank": 3, "alpha": 2.0, "offsets": "both", "offset_alpha": 3.0,
               "nonlinearity": "Identity()",
               "trials": [{"rank": 3, "error": 1.0, "spread": 0.0}]}  # fmt: skip
    best = {**default, "rmse": 1.0, "n_fits": 9}
    record = {"name": "a set", "default": default, "best": best, "simple": {"row means": 1.2},
              "timing": {"ratio": 2.0}, "excess": [0.1, 10.0, 0.2]}  # fmt: skip
    slow = {**record, "name": "slow", "excess": [0.1], "timing": {"ratio": 9.0}}
    text = " ".join(compared.section([record, slow], tmp_path).split())
    assert "2 of 2 sets in the middle of the seeds, 1 with every seed" in text
    assert "Missed in the middle of the seeds by none; with some seed by a set." in text
    assert "1 of 2 sets. Missed by slow." in text
    lost = {**record, "excess": [-1.0, 10.0, 0.0], "simple": 1.0, "word": "row means"}
    text = never_worse.section([lost, {**lost, "name": "won", "excess": [-3.0]}], tmp_path)
    assert "on 1 (a set), and worse at all, as printed, on 1." in " ".join(text.split())
    assert "In the middle of the seeds it is more than 0.5 % worse on: none." in " ".join(
        text.split()
    )


def test_ranks_tie_within_their_spread_of_the_lowest_error() -> None:
    trials = [
        {"rank": rank, "error": error, "spread": spread}
        for rank, error, spread in ((2, 1.5, 0.2), (4, 1.1, 0.2), (8, 1.0, 0.0), (12, 1.2, 0.1))
    ]
    assert compared.ties(trials) == "4–8"
    assert compared.ties(trials[2:]) == "8"


def test_the_figure_of_the_ranks(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    records = [
        {"m": 100, "n": 80, "holes": holes, "snr": snr, "true": 4, "visible": 4, "chosen": 4 + snr}
        for holes in recovery.HOLES
        for snr in recovery.SNRS
    ]
    text = recovery.section(records, tmp_path)
    assert (tmp_path / "rank_recovery.png").exists()
    assert "SNR 1;" not in text
    assert "15 of 15 of rank 4." in " ".join(text.split())
    assert "Cells below the goal: 100 × 80, 10 % holes, SNR 2;" in " ".join(text.split())
    assert "| 100 × 80, 10 % holes | 100 % (0 %) | 0 % (0 %) |" in text
