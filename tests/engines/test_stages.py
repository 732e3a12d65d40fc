"""Quasi-Newton steps on the augmented Lagrangian: gradients, bounds, ends, and optimality."""

import itertools
import math

import numpy as np
import pytest
from helpers import PLAIN, given, prepare
from oracles import PAIRS, forward

import nmd_lab
from nmd_lab.engines.stages import Lagrangian, Refiner, optimality

ENDS = 3000
"""Passes within which everything on these small problems has to come to its end."""

SMOOTH = [(f, loss) for f, loss in PAIRS if loss != "l1" and f != "minmax"]
"""Pairs whose minima are not, as a rule, at a kink."""


def matrix(f, noise=0.1, m=16, n=12, rank=3, seed=0):
    rng = np.random.default_rng(seed)
    X = forward(f, rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)))
    return np.abs(X + noise * rng.normal(size=X.shape))


def exactly(f, m=30, n=24, rank=3, seed=0):
    """Data that have a solution, and the solution."""
    rng = np.random.default_rng(seed)
    W, H = rng.normal(size=(m, rank)), rng.normal(size=(rank, n))
    return forward(f, W @ H), W, H


def begun(X, f, loss, rank=3, **options):
    """A problem, and factors to start from."""
    options = {"init": "random", "random_state": 1, **options}
    prepared = prepare(X, rank, given(f), loss, absent_are_zeros=True, **options)
    start = next(prepared.starts)
    return prepared.problem, *prepared.problem.extend(start)


def after(iterations, X, f, loss, **options):
    """A problem, and the factors that the plain algorithm arrives at."""
    plain = {"max_iter": iterations, "random_state": 1, "solver": PLAIN}
    fit = nmd_lab.decompose(X, 3, given(f), loss, **plain, **options)
    problem, _, _ = begun(X, f, loss, **options)
    return problem, *fit._factors


def polish(problem, W, H):
    """Yield the candidates of a polish."""
    refiner = Refiner()
    state = refiner.begin(problem, "polish", nmd_lab.problem.state.Iterate(W, H))
    while (candidate := refiner.step(problem, state)) is not None:
        yield candidate


def all_of(job):
    found = list(itertools.islice(job, ENDS + 1))
    assert len(found) <= ENDS
    return found


@pytest.mark.parametrize("offsets", ["none", "global", "both"])
@pytest.mark.parametrize(("f", "loss"), [("relu", "frobenius"), ("square", "kl"), ("minmax", "l1")])
def test_gradient_with_ridge_and_offsets(f, loss, offsets):
    problem, W, H = begun(matrix(f), f, loss, offsets=offsets, alpha=0.4)
    rng = np.random.default_rng(3)
    function = Lagrangian(problem, W, H)
    x = rng.normal(size=function.state.x.size)
    function.state.x = x
    point = function.point(0.6)
    along, step = rng.normal(size=x.size), 1e-6
    above, below = (function.evaluate(x + sign * step * along)[0] for sign in (1, -1))
    assert point.gradient @ along == pytest.approx((above - below) / (2 * step), rel=1e-5)


# Homotopy ---------------------------------------------------------------------------------------


def test_bounds_move_apart_within_the_domain_of_the_loss():
    f = nmd_lab.MinMax(0.5, 1.5)
    wide = [f.with_wider_bounds(width, (-math.inf, math.inf)) for width in (1.0, 0.25)]
    assert [(one.a, one.b) for one in wide] == [(-0.5, 2.5), (0.25, 1.75)]
    positive = f.with_wider_bounds(1.0, nmd_lab.KL.domain)
    assert (positive.a, positive.b) == (0.0, 2.5)
    for narrow in (nmd_lab.MinMax(1, 1), nmd_lab.MinMax(0, math.inf), nmd_lab.ReLU()):
        assert narrow.with_wider_bounds(1.0, (-math.inf, math.inf)) is None


# Polish -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "loss"), SMOOTH)
def test_a_polish_goes_down_to_a_stationary_point(f, loss):
    X = matrix(f, seed=7)
    problem, W, H = after(30, X, f, loss)
    first, *others = all_of(polish(problem, W, H))
    best = min(others, key=lambda candidate: candidate.objective)
    assert best.objective <= first.objective
    found = optimality(problem.observations, problem, best.W_aug, best.H_aug)
    assert found < (1e-2 if loss == "kl" else 1e-4)
    assert found < max(optimality(problem.observations, problem, W, H), 1e-6)


@pytest.mark.parametrize(("f", "loss"), [("relu", "frobenius"), ("square", "kl")])
def test_how_a_product_is_split_into_factors_does_not_matter(f, loss):
    """The metric of the steps sees to it: with the plain gradient one of the two would stand."""
    problem, W, H = after(30, matrix(f, seed=7), f, loss)
    rng = np.random.default_rng(1)
    change = 1e3 * (rng.normal(size=(3, 3)) + 3 * np.eye(3))
    one = all_of(polish(problem, W, H))
    other = all_of(polish(problem, W @ change, np.linalg.solve(change, H)))
    lowest = [min(candidate.objective for candidate in found) for found in (one, other)]
    assert lowest[1] == pytest.approx(lowest[0], rel=1e-6)
    assert len(other) < 4 * len(one)


# Optimality -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_optimality_is_zero_at_an_exact_solution_and_large_elsewhere(f, loss):
    X, W, H = exactly(f)
    if (f, loss) == ("identity", "kl"):
        W, H = np.abs(W), np.abs(H)
        X = W @ H
    problem, _, _ = begun(X, f, loss)
    assert optimality(problem.observations, problem, W, H) < 1e-12
    assert optimality(problem.observations, problem, 2 * W, H / 2) < 1e-12
    _, elsewhere, _ = exactly(f, seed=5)
    assert optimality(problem.observations, problem, np.abs(elsewhere), np.abs(H)) > 1e-2


def test_optimality_of_least_squares_is_that_of_the_singular_value_decomposition():
    X = matrix("identity", noise=0.5)
    U, values, Vt = np.linalg.svd(X)
    problem, _, _ = begun(X, "identity", "frobenius")
    for k in (slice(0, 3), slice(1, 4)):  # which is stationary as well
        assert optimality(problem.observations, problem, U[:, k] * values[k], Vt[k]) < 1e-6
    assert optimality(problem.observations, problem, 0.9 * U[:, :3] * values[:3], Vt[:3]) > 1e-2


def test_where_no_slope_is_left_the_constraint_still_counts():
    """Zeros as factors have no slope under any model, but KL is infinite there."""
    found = {}
    for loss in ("frobenius", "kl"):
        problem, W, H = begun(matrix("relu") + 0.1, "relu", loss)
        found[loss] = optimality(problem.observations, problem, 0 * W, 0 * H)
    assert found["frobenius"] < 1e-5
    assert found["kl"] > 1e-4
