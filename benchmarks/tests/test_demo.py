"""The demo leads with a decomposition and a completion; what it prints of its table is right."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nmd_lab import datasets

pytest.importorskip("matplotlib")

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ByMeans:
    """An imputer that takes the mean of each column."""

    def fit_transform(self, X):
        return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


def test_an_imputer_of_scikit_learn_gives_means_and_the_commonest_class(demo):
    truth = datasets.penguins()
    hidden = np.random.default_rng(0).random(truth.shape) < 0.2
    filled = demo.with_imputer(ByMeans(), truth.mask(hidden))
    seen = truth.mask(hidden)
    for name in seen:
        best = seen[name].mode()[0] if name in demo.CLASSES else seen[name].mean()
        expected = seen[name].astype(object).fillna(best)
        pd.testing.assert_series_equal(
            filled[name].astype(object), expected, check_dtype=False, rtol=1e-12
        )


def test_scores_are_of_hidden_cells_alone(demo):
    truth = datasets.penguins()
    hidden = np.zeros(truth.shape, bool)
    hidden[0, truth.columns.get_loc("year")] = hidden[:4, truth.columns.get_loc("sex")] = True
    hidden &= truth.notna().to_numpy()
    guessed = truth.copy()
    guessed["year"] = guessed["year"].astype(float)
    guessed.loc[0, "year"] += 2 * truth["year"].std()
    guessed["sex"] = "male"
    right = (truth["sex"][:4] == "male").sum() / hidden.sum(axis=0).max()
    assert demo.scores(guessed, truth, hidden) == pytest.approx([2, right])


def test_a_decomposition_and_a_completion_come_before_the_table(demo, monkeypatch, tmp_path):
    done = []
    for name in ("decompose", "complete", "impute", "inpaint"):
        monkeypatch.setattr(demo, name, lambda out, name=name: done.append(name))
    monkeypatch.setattr("sys.argv", ["demo.py", "--out", str(tmp_path)])
    monkeypatch.setattr(demo.warnings, "simplefilter", lambda *_: None)
    demo.main()
    assert done == ["decompose", "complete", "impute", "inpaint"]
