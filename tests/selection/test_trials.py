"""Trials: short fits from given factors, judged at held-out entries, and when each ends.

Alternating least squares: where it ends is the minimum, and folds do not touch each other.
"""

import math

import numpy as np
import pytest
from helpers import given, some, stored
from oracles import distance, forward

import nmd_lab as nmd
from nmd_lab.data.folds import draw_folds
from nmd_lab.data.inputs import observe
from nmd_lab.fit.summary import describe, make_problem
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.losses import as_loss
from nmd_lab.model.model import make_model
from nmd_lab.model.nonlinearities import as_nonlinearity
from nmd_lab.problem.initialization import Start
from nmd_lab.problem.problem import scaling_for
from nmd_lab.request.options import Options, Setting
from nmd_lab.selection import trials as squares
from nmd_lab.selection.progress import MAX_ITERATIONS, MAX_ITERATIONS_SLOW, Progress, Trial
from nmd_lab.selection.trials import Trials


def data(shape=(40, 30), rank=2, noise=0.05, share=0.7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    X += noise * rng.normal(size=shape)
    return np.where(rng.random(shape) < share, X, np.nan)


def trials_of(X, stopped=lambda: False, options=None, **how):
    known = describe(observe(X, **how), None, Options(), is_table=False)
    folds, _ = known.folds_for_trials(np.random.default_rng(0))
    return Trials(folds, known, options or Options(), np.random.default_rng(0), stopped)


def setting(f="identity", loss="frobenius", rank=2, alpha=0.3, offsets="none", offset_alpha=1.0):
    return Setting(as_nonlinearity(given(f)), as_loss(loss), rank, alpha, offsets, offset_alpha)


def argument(start):
    """Return WH and offsets, which f maps to the model."""
    Y, offsets = start.W @ start.H + start.offsets.mean, start.offsets
    return Y + offsets.of_rows(len(Y), float)[:, None] + offsets.of_columns(len(Y.T), float)


# The error ----------------------------------------------------------------------------------------


PAIRS = [("identity", "frobenius"), ("relu", "l1"), ("minmax", "frobenius"), ("square", "l1")]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offsets", ["none", "both"])
@pytest.mark.parametrize(("f", "loss"), some(PAIRS, 1))
def test_losses_are_those_at_the_held_out_entries(f, loss, offsets, weighted):
    X = np.abs(data())
    rng = np.random.default_rng(5)
    weights = rng.random(X.shape) + 0.5 if weighted else np.ones(X.shape)
    trials = trials_of(X, weights=weights if weighted else None)
    trial = trials.run(setting(f, loss, offsets=offsets))
    expected, sizes = [], []
    for fold, start in zip(trials.folds, trial.starts, strict=True):
        rows, columns, _ = fold.held_out.entries()
        each = distance(loss, X[rows, columns], forward(f, argument(start))[rows, columns])
        expected.append(weights[rows, columns] * each)
        sizes.append(weights[rows, columns])
    losses = np.concatenate(expected) / np.concatenate(sizes).mean()
    np.testing.assert_allclose(trial.losses, losses, rtol=1e-6, atol=1e-12)
    assert trial.mean == pytest.approx(losses.mean(), rel=1e-6)


def test_the_error_and_its_spread():
    rng = np.random.default_rng(0)
    losses, lower = rng.random(500), rng.random(500) / 2
    trial, best = (Trial(setting(), each, 3, 0.1) for each in (losses, lower))
    assert trial.error == pytest.approx(math.sqrt(2 * losses.mean()))
    assert trial.spread(trial) == 0
    resampled = []
    for _ in range(4000):  # the bootstrap of the difference of both errors
        k = rng.integers(500, size=500)
        resampled.append(math.sqrt(2 * losses[k].mean()) - math.sqrt(2 * lower[k].mean()))
    assert trial.spread(best) == pytest.approx(np.std(resampled), rel=0.1)
    l1 = Trial(setting(loss="l1"), losses, 3, 0.1)
    assert l1.error == pytest.approx(losses.mean())
    assert math.isnan(l1.spread(best))  # there is no unit for both
    unfinished = Trial(setting(), np.array([1.0, np.inf]), 3, 0.1)
    assert unfinished.mean == math.inf
    assert math.isnan(unfinished.row(unfinished)["error"])


def test_offsets_alone_are_judged_on_all_folds():
    """Errors that are repeated for folds left out would make the best trial look sure."""
    X = data(noise=3.0)
    zeros = Start(np.zeros((40, 1)), np.zeros((1, 30)), True, NO_OFFSETS)
    found = []
    for alpha in (None, 0.3, 30.0):  # what was tried before
        trials = trials_of(X)
        if alpha is not None:
            trials.run(setting(alpha=alpha))
        starts = [zeros] * len(trials.folds)
        found.append(trials.run(setting(rank=1, alpha=1e6), starts, kind="offsets_alone").losses)
    assert len(trials.folds) > 1
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


# Warm starts --------------------------------------------------------------------------------------


def test_a_warm_start_needs_few_iterations_and_is_not_changed():
    trials = trials_of(data())
    cold = trials.run(setting())
    before = [(start.W.copy(), start.H.copy()) for start in cold.starts]
    warm = trials.run(setting(alpha=0.25), cold.starts)
    assert warm.n_iter < cold.n_iter
    assert warm.mean < 1.1 * cold.mean
    assert warm.setting.alpha == 0.25
    for rank in (1, 2, 4):
        trials.run(setting(rank=rank), cold.starts)
    for start, (W, H) in zip(cold.starts, before, strict=True):
        np.testing.assert_array_equal(start.W, W)
        np.testing.assert_array_equal(start.H, H)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_components_that_died_come_back(is_sparse):
    """Zero factors are a standstill of the iteration; a trial begins elsewhere."""
    trials = trials_of(stored(data(share=0.3)) if is_sparse else data())
    zeros = Start(np.zeros((40, 2)), np.zeros((2, 30)), True, NO_OFFSETS)
    trial = trials.run(setting(), [zeros] * len(trials.folds))
    cold = trials.run(setting())
    assert trial.mean < 1.3 * cold.mean
    for start in trial.starts:
        assert np.linalg.matrix_rank(start.W @ start.H) == 2


@pytest.mark.parametrize(("before", "rank", "noise"), [(2, 3, 0.05), (5, 2, 0.01)])
def test_components_come_from_the_residual_and_the_smallest_go_first(before, rank, noise):
    X = data(rank=rank, noise=noise)
    first = trials_of(X).run(setting(rank=before))
    trials = trials_of(X)  # beside a better one, it would not do all folds
    second = trials.run(setting(rank=rank), first.starts)
    cold = trials.run(setting(rank=rank))
    assert {start.W.shape[1] for start in second.starts} == {rank}
    assert second.error < 1.2 * cold.error
    assert second.error < 0.3 * first.error or before > rank


# Manners ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", ["identity", "square", "modulus"])
def test_a_stop_ends_a_trial_after_one_iteration_of_each_fold_or_in_its_warm_up(f):
    trials = trials_of(np.abs(data()), stopped=lambda: True)
    trial = trials.run(setting(f))  # which is no interruption of the fit
    assert trial.n_iter == len(trials.folds)
    assert np.isfinite(trial.mean)


def test_the_options_of_the_fit_count():
    X = data()
    fixed = trials_of(X, options=Options(solver=nmd.ADMM(rho=50.0))).run(setting())
    assert fixed.n_iter != trials_of(X).run(setting()).n_iter


def followed(means, residuals, lowest=math.inf, objective=lambda k: 1.0 + 0.9**k, **how):
    """Return the progress of a trial that ends where it ends by itself."""
    progress = Progress(lowest, 3, **how)
    for k, (mean, residual) in enumerate(zip(means, residuals, strict=False)):
        progress.add(mean, objective(k), residual)
        if progress.is_over:
            break
    return progress


FLAT, STEPS, SLOW = np.ones(1000), np.arange(100), {"is_slow": True}
ENDS = {
    "near a stationary point": (FLAT, 10.0 ** (-0.2 * STEPS), SLOW, range(14, 18), True),
    "after so many iterations, as long as the factors move": (
        FLAT, 0.1 * FLAT, SLOW | {"objective": lambda k: 2.0 - 0.01 * k}, [MAX_ITERATIONS_SLOW],
        False),
    "where it cannot win": (2 * FLAT, 0.1 * FLAT, SLOW | {"lowest": 1.0}, [3], True),
    "once what gets worse is worse than the best": (
        0.9 + 0.01 * STEPS, 1e-4 * FLAT, SLOW | {"lowest": 1.0}, range(12, 100), True),
    "at an error that is no number": (math.nan * FLAT, 0.1 * FLAT, SLOW, [1], True),
    "where the error of squares has settled, while their factors move": (
        1 + 0.5**STEPS, 0.1 * FLAT, {}, range(10, 14), True),
    "after so many iterations of squares": (
        1 + 0.01 * (-1.0) ** STEPS, 0.1 * FLAT, {}, [MAX_ITERATIONS], True),
}  # fmt: skip


@pytest.mark.parametrize("where", ENDS)
def test_it_ends(where):
    means, residuals, options, counts, does_count = ENDS[where]
    found = followed(means, residuals, **options)
    assert found.count in counts
    assert found.counts == does_count


def test_after_a_path_it_ends_once_the_error_has_grown():
    means = [2.0] * 12 + [2.0 - 0.1 * k for k in range(8)] + [1.3 + 0.02 * k for k in range(40)]
    found = followed(means, [0.1] * len(means), keeps_best=True)
    assert found.best == 20
    assert found.count == 30


def table(rng):
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 8)) + 0.3 * rng.normal(size=(30, 8)) + 2
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 3] = np.where(np.arange(30) < 29, np.nan, X[:, 3])
    X[4] = np.nan  # a row without any entry
    return X


def run_squares(X, kind, rng, count=None, size=1.0):
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
    folds, (losses, ends, count) = run_squares(X, kind, rng, size=size)
    assert len(folds) > 1
    assert count > 10
    judged = []
    for fold, end in zip(folds, ends, strict=True):
        W, H, (mean, of_rows, of_columns) = end.W, end.H, end.offsets
        assert (mean == 0) == (kind == "none")
        rows, columns, x = fold.rest.entries()
        Y, R = argument(end), np.zeros(X.shape)
        R[rows, columns] = x - Y[rows, columns]
        gradients = [R @ H.T - 0.7 * size * W, W.T @ R - 0.7 * size * H]
        gradients += [] if of_rows is None else [R.sum(axis=1) - 0.2 * of_rows]
        gradients += [] if of_columns is None else [R.sum(axis=0) - 0.2 * of_columns]
        for gradient in gradients:
            assert np.abs(gradient).max() < 1e-6 * size**1.5
        held_out = fold.held_out
        judged.append((held_out.values - Y[held_out.rows, held_out.indices]) ** 2 / 2)
    np.testing.assert_allclose(losses, np.concatenate(judged), rtol=1e-9)


def test_a_fold_ends_as_it_would_alone(monkeypatch):
    monkeypatch.setattr("nmd_lab.selection.progress.SCORE_TOL", -1.0)  # it takes all iterations
    X = table(np.random.default_rng(0))
    runs = (run_squares(X, "both", np.random.default_rng(1), count) for count in (None, 1))
    together, alone = (starts[0].W for _, (_, starts, _) in runs)
    np.testing.assert_allclose(together, alone, rtol=1e-6)
