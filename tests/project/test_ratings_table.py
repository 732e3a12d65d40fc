"""The tables of docs/ratings.md: no look at the test, equal effort, scores, stored answers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm

import nmd_lab as nmd

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.ratings_table import __main__ as command  # noqa: E402
from benchmarks.ratings_table import cells, page, problems, scores, tuning  # noqa: E402
from benchmarks.ratings_table.methods import Method, Ordinal, Posterior  # noqa: E402
from benchmarks.ratings_table.peers import one_hot  # noqa: E402
from benchmarks.selection.problems import Problem, ratings_90_10  # noqa: E402
from benchmarks.selection.store import Store  # noqa: E402

AVAILABLE = [name for name, method in cells.METHODS.items() if method.available()]


def generated() -> Problem:
    """Return generated ratings with a tenth as the test."""
    return ratings_90_10(nmd.datasets.make_ratings(80, 60, 1200, random_state=0))


def shuffled(problem: Problem) -> Problem:
    """Return the problem with its test ratings in another order."""
    return problem._replace(values=np.random.default_rng(1).permutation(problem.values))


@pytest.mark.parametrize("name", AVAILABLE)
def test_shuffled_test_ratings_change_no_prediction(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, found, errors = cells.METHODS[name], [], []
    judge = cells.judge

    def remember(fitted: Any, problem: Problem, error: float) -> dict[str, Any]:
        found.append(np.asarray(fitted.predict(problem.rows, problem.columns)))
        return judge(fitted, problem, error)

    monkeypatch.setattr(cells, "judge", remember)
    sweeps = {"draws": 5, "tune": 3} if method.is_sampler else {}
    for problem in (generated(), shuffled(generated())):
        monkeypatch.setattr(cells, "problem_of", lambda name, run, problem=problem: problem)
        best: dict[str, Any] = {"setting": {}, "error": 0.0}
        if method.grid:
            best = cells.choice(name="", method=name, run=0, n_trials=3, draws=5, tune=3, source="")
        setting = cells.json.dumps(best["setting"] | sweeps)
        errors.append(
            cells.score(
                name="", method=name, run=0, setting=setting, error=best["error"], source=""
            )["rmse"]
        )
    np.testing.assert_array_equal(*found)
    assert errors[0] != errors[1]  # they were judged by other ratings


def test_folds_are_disjoint_and_settings_see_none_of_them() -> None:
    table = nmd.datasets.make_ratings(80, 60, 1200, random_state=0)

    def entries(problem: Problem) -> set[tuple[int, int]]:
        X = problem.X.tocoo()
        return set(zip(X.row.tolist(), X.col.tolist(), strict=True))

    everything = set(zip(table["user"].tolist(), table["item"].tolist(), strict=True))
    once = entries(problems.fold(table, problems.ONCE))
    seen: set[tuple[int, int]] = set()
    for run in range(3):
        problem = problems.fold(table, run)
        test = set(zip(problem.rows.tolist(), problem.columns.tolist(), strict=True))
        assert len(test) == len(everything) // 10
        assert not test & (once | seen | entries(problem))
        assert len(test | entries(problem)) == len(everything)
        seen |= test
    assert len(once | seen) == len(everything)


def test_held_out_ratings_are_training_ratings_that_are_not_learnt() -> None:
    train = generated().X
    problem = problems.hold_out(train, 3)
    assert (problem.X[problem.rows, problem.columns] == 0).all()
    together = problem.X + sparse.csr_array(
        (problem.values, (problem.rows, problem.columns)), shape=train.shape
    )
    assert abs(together - train).max() == 0
    np.testing.assert_array_equal(problem.rows, problems.hold_out(train, 3).rows)


def test_the_walk_finds_the_lowest_point_and_keeps_its_number_of_trials() -> None:
    grid = {"a": (0, 1, 2, 3, 4), "b": (0, 1, 2, 3)}
    tried: list[tuple[int, int]] = []

    def error(setting: dict[str, int]) -> float:
        tried.append((setting["a"], setting["b"]))
        return (setting["a"] - 3) ** 2 + (setting["b"] - 0) ** 2 + 0.5

    best, errors = tuning.walk(grid, {"a": 1, "b": 2}, error, 12)
    assert best == {"a": 3, "b": 0}
    assert errors[3, 0] == 0.5
    assert len(tried) == len(set(tried)) == len(errors) <= 12
    best, errors = tuning.walk(grid, {"a": 1, "b": 2}, error, 3)
    assert len(errors) == 3
    assert best == {"a": 3, "b": 2}


def test_predictions_are_clipped_to_the_range_of_the_training_ratings() -> None:
    train = sparse.csr_array([[1.0, 5.0], [3.0, 0.0]])
    clipped = scores.clipped(np.array([0.2, 6.0, 4.5, np.nan]), train)
    np.testing.assert_array_equal(clipped, [1.0, 5.0, 4.5, 3.0])


def test_the_log_likelihood_against_the_normal_distribution() -> None:
    rng, levels = np.random.default_rng(0), np.array([1.0, 2.0, 3.5])
    guess, values = rng.normal(2, 1, 50), rng.choice(levels, 50)
    edges = {1.0: (-np.inf, 1.5), 2.0: (1.5, 2.75), 3.5: (2.75, np.inf)}
    noise = [norm(mean, 0.7) for mean in guess]
    mass = [
        each.cdf(edges[x][1]) - each.cdf(edges[x][0])
        for each, x in zip(noise, values.tolist(), strict=True)
    ]
    above = scores.gaussian(lambda rows, columns: guess, 0.7)
    every = np.arange(50)
    found = scores.log_likelihood(above, every, every, values, levels)
    assert found == pytest.approx(np.mean(np.log(np.maximum(mass, 1e-6))), rel=1e-9)


def test_one_hot_lines_have_their_user_and_their_item() -> None:
    found = one_hot(np.array([0, 2]), np.array([1, 0]), (3, 2)).toarray()
    np.testing.assert_array_equal(found, [[1, 0, 0, 0, 1], [0, 0, 1, 1, 0]])


def test_the_sampler_is_called_with_its_sweeps_and_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []

    class FakePosterior:
        def predict(self, rows: Any, columns: Any) -> Any:
            return np.full(len(rows), 3.0)

        def probability(self, rows: Any, columns: Any, *, above: float) -> Any:
            return np.full(len(rows), float(above < 3))

    def sample(X: Any, **options: Any) -> FakePosterior:
        calls.append(options)
        return FakePosterior()

    monkeypatch.setattr(nmd, "sample", sample, raising=False)
    monkeypatch.setattr(nmd, "Ordinal", lambda: "ordinal", raising=False)
    problem = generated()
    for method in (Posterior(), Ordinal()):
        assert method.available()
        answer = cells.judge(method.fit(problem.X, 4, rank=5, draws=7, tune=2), problem, 0.0)
        assert answer["rmse"] == pytest.approx(np.sqrt(np.mean((problem.values - 3) ** 2)))
        right = np.abs(problem.values - 3) < 0.01
        assert answer["log_likelihood"] == pytest.approx(np.mean(~right) * np.log(1e-6))
    shared = {"rank": 5, "draws": 7, "tune": 2, "random_state": 4, "threads": 1, "progress": False}
    assert calls == [shared, shared | {"loss": "ordinal"}]


@pytest.fixture
def small_sets(monkeypatch: pytest.MonkeyPatch) -> dict[str, problems.Set]:
    """One set of generated ratings, in place of the real ones."""
    sets = {"generated": problems.Set(lambda run: generated(), 2, "seeds", 5, 3)}
    monkeypatch.setattr(cells, "SETS", sets)
    cells.problem_of.cache_clear()
    return sets


def test_a_stopped_run_goes_on_and_what_is_missing_is_left_out(
    tmp_path: Path, small_sets: dict[str, problems.Set], monkeypatch: pytest.MonkeyPatch
) -> None:
    methods: list[Method] = [cells.METHODS["offsets alone"], cells.METHODS["nmd.complete, tuned"]]
    effort = cells.Effort(2, 5, 3)
    before = page.page(cells.Finished(tmp_path), small_sets, methods, effort)
    assert "## generated" not in before
    assert "offsets alone" not in before
    page.page(Store(tmp_path), small_sets, methods[1:], effort)
    half = page.page(cells.Finished(tmp_path), small_sets, methods, effort)
    assert "2 of 2 seeds.\n" in half
    assert "offsets alone" not in half
    fits: list[str] = []
    timed_fit = cells.timed_fit

    def counted(method: Method, *given: Any) -> Any:
        fits.append(method.name)
        return timed_fit(method, *given)

    monkeypatch.setattr(cells, "timed_fit", counted)
    text = page.page(Store(tmp_path), small_sets, methods, effort)
    again = page.page(cells.Finished(tmp_path), small_sets, methods, effort)
    assert text == again
    # The tuned fits were stored: only the fixed one is done, beside each of the others.
    assert sorted(fits) == 2 * ["nmd.complete, tuned"] + 2 * ["offsets alone"]
    assert "| nmd.complete, tuned | 0." in text
    assert "2 of 2 seeds.\n" in text


def test_a_row_compares_runs_with_our_tuned_fit() -> None:
    def answer(error: float, ratio: float, seconds: float) -> dict[str, Any]:
        choice = {"setting": {"rank": 5}, "seconds": 2 * seconds}
        return {"rmse": error, "mae": error, "plain": error, "ratio": ratio, "seconds": seconds,
                "choice": choice}  # fmt: skip

    ours = [answer(0.9, 2.0, 1.0), answer(0.8, 2.0, 1.0)]
    theirs = [answer(0.91, 8.0, 4.0), answer(0.83, 8.0, 4.0)]
    found = page.row("theirs", theirs, ours)
    assert found == ("theirs", "0.8700 ± 0.0566", "0.8700 ± 0.0566", "0.8700 ± 0.0566",
                     "+0.0200 ± 0.0141", "–", "4", "12", "rank 5")  # fmt: skip
    assert page.row("ours", ours, ours)[4:] == ("–", "–", "1", "3", "rank 5")


def test_the_command_names_what_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(type(cells.METHODS["cmfrec"]), "available", lambda self: False)
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)  # the command is a process
    command.main(["--quick", "--stored", "--folder", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "cmfrec is left out: pip install cmfrec" in printed
    assert "cmfrec is left out: it is not installed here." in " ".join(printed.split())
    assert "## Published figures" in printed
