"""Descent: as many steps as in theory, the minima that SciPy finds, and never a rise."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from nmd_lab.engines.lbfgs import MAX_TRIALS, Descent, Pairs, Point, descend, pairs_for


def begin(function, x):
    x = np.array(x, dtype=float)
    return Point(x, *function(x))


def points(function, start):
    """The points that a descent evaluates, with the metric of the steepest descent."""
    descent, pairs = Descent(start), Pairs(maxlen=pairs_for(start.x.size))
    while (point := descend(descent, function, lambda _: np.copy, pairs)) is not None:
        yield point


def steps(function, x, most=500):
    """The start and every point from which descent went on."""
    start = begin(function, x)
    found = itertools.islice(points(function, start), most)
    return [start, *(point for point in found if point.accepted)]


def rosenbrock(x):
    return float(rosen(x)), rosen_der(x)


def quadratic(dimension, condition, seed=0):
    """A quadratic with its minimum."""
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.normal(size=(dimension, dimension)))
    hessian = (axes * np.geomspace(1, condition, dimension)) @ axes.T
    lowest = rng.normal(size=dimension)

    def function(x):
        gradient = hessian @ (x - lowest)
        return 0.5 * float((x - lowest) @ gradient), gradient

    return function, lowest


@pytest.mark.parametrize(("dimension", "condition"), [(2, 100), (6, 1e3), (10, 1e4), (30, 100)])
def test_a_quadratic_takes_as_many_steps_as_with_scipy(dimension, condition):
    """Both remember ten steps; steepest descent would take about as many as the condition."""
    function, lowest = quadratic(dimension, condition)
    start, *others = steps(function, np.zeros(dimension))
    reference = []

    def note(intermediate_result):
        reference.append(intermediate_result.fun)

    minimize(function, np.zeros(dimension), jac=True, method="L-BFGS-B", callback=note,
             options={"ftol": 0, "gtol": 0})  # fmt: skip
    needed, by_scipy = (
        1 + next(k for k, value in enumerate(values) if value < 1e-12 * start.value)
        for values in ([point.value for point in others], reference)
    )
    assert needed <= 1.3 * by_scipy + 1
    np.testing.assert_allclose(others[-1].x, lowest, atol=1e-5)


def wavy(x):
    """Many hollows, walls between them."""
    return float(np.sum(x**2 / 20 - np.cos(3 * x))), x / 10 + 3 * np.sin(3 * x)


def kinked(x):
    """Not smooth at all, with a kink along each axis."""
    slopes = np.arange(1.0, x.size + 1)
    return float(np.abs(x) @ slopes), np.sign(x) * slopes


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("function", [rosenbrock, wavy, kinked])
def test_no_step_that_is_accepted_rises(function, seed):
    start = 4 * np.random.default_rng(seed).normal(size=8)
    values = [point.value for point in steps(function, start, most=300)]
    assert values[-1] < values[0]
    assert np.all(np.diff(values) <= 0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_end_it(value):
    def lost(x):
        return value, np.full_like(x, value)

    nowhere = list(points(lost, begin(lost, np.ones(3))))
    assert not any(point.accepted for point in nowhere)
    start = begin(rosenbrock, [-1.2, 1.0])
    tried = list(points(lost, start))
    assert len(tried) == MAX_TRIALS
    assert not any(point.accepted for point in tried)
    sloped = lambda x: (rosenbrock(x)[0], np.full_like(x, value))  # noqa: E731
    assert [point.accepted for point in points(sloped, start)].count(True) == 1


@pytest.mark.parametrize("beyond", [np.nan, np.inf])
def test_a_search_comes_back_from_where_the_function_is_not_defined(beyond):
    def barrier(x):
        if np.any(x <= 0):
            return beyond, np.full_like(x, beyond)
        return float(np.sum(x - 0.01 * np.log(x))), 1 - 0.01 / x

    found = steps(barrier, [3.0, 0.5, 1.0])
    np.testing.assert_allclose(found[-1].x, 0.01, rtol=1e-4)
