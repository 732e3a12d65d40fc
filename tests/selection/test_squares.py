"""Alternating least squares: where it ends is the minimum, and folds do not touch each other."""

import math

import numpy as np
import pytest

from nmd_lab.data.folds import draw_folds
from nmd_lab.data.inputs import observe
from nmd_lab.fit.summary import make_problem
from nmd_lab.model.model import make_model
from nmd_lab.problem.initialization import Start
from nmd_lab.problem.problem import scaling_for
from nmd_lab.request.options import Options
from nmd_lab.selection import trials as squares


def table(rng):
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 8)) + 0.3 * rng.normal(size=(30, 8)) + 2
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 3] = np.where(np.arange(30) < 29, np.nan, X[:, 3])
    X[4] = np.nan  # a row without any entry
    return X


def run(X, kind, rng, count=None, size=1.0):
    """Return the first `count` folds of size * X, and what is found on them, in its units."""
    data = observe(size * X)
    options = Options.of({"alpha": 0.7 * size, "offset_alpha": 0.2, "offsets": kind})
    folds = draw_folds(data, rng)[0][:count]
    scaling = scaling_for(make_model("identity", "frobenius"), 5 * size)
    problems = [make_problem(fold.rest, scaling, options, False) for fold in folds]
    W, H = rng.normal(size=(30, 3)), rng.normal(size=(3, 8))
    starts = [Start(W, H, True, problem.offsets) for problem in problems]
    assert squares.suits(problems[0], 3)
    return folds, squares.Squares(problems, folds).run(problems, starts, math.inf, 3)


@pytest.mark.parametrize("kind", ["none", "global", "rows", "columns", "both"])
@pytest.mark.parametrize("size", [1.0, 1e6])
def test_it_ends_at_a_minimum_of_the_objective(kind, size, rng, monkeypatch):
    monkeypatch.setattr("nmd_lab.selection.progress.SCORE_TOL", 0.0)
    monkeypatch.setattr(squares, "MAX_STEPS", 2000)
    X = table(rng)
    folds, (losses, ends, count) = run(X, kind, rng, size=size)
    assert len(folds) > 1
    assert count > 10
    judged = []
    for fold, end in zip(folds, ends, strict=True):
        W, H, (mean, of_rows, of_columns) = end.W, end.H, end.offsets
        assert (mean == 0) == (kind == "none")
        a = np.zeros(30) if of_rows is None else of_rows
        b = np.zeros(8) if of_columns is None else of_columns
        Y = W @ H + a[:, None] + b + mean
        rows, columns, x = fold.rest.entries()
        R = np.zeros(X.shape)
        R[rows, columns] = x - Y[rows, columns]
        gradients = [R @ H.T - 0.7 * size * W, W.T @ R - 0.7 * size * H]
        gradients += [] if of_rows is None else [R.sum(axis=1) - 0.2 * a]
        gradients += [] if of_columns is None else [R.sum(axis=0) - 0.2 * b]
        for gradient in gradients:
            assert np.abs(gradient).max() < 1e-6 * size**1.5
        held_out = fold.held_out
        judged.append((held_out.values - Y[held_out.rows, held_out.indices]) ** 2 / 2)
    np.testing.assert_allclose(losses, np.concatenate(judged), rtol=1e-9)


def test_a_fold_ends_as_it_would_alone(monkeypatch):
    monkeypatch.setattr("nmd_lab.selection.progress.SCORE_TOL", -1.0)  # it takes all iterations
    X = table(np.random.default_rng(0))
    together, alone = (run(X, "both", np.random.default_rng(1), count)[1] for count in (None, 1))
    np.testing.assert_allclose(together[1][0].W, alone[1][0].W, rtol=1e-6)
