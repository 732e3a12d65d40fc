"""When a trial ends, and whether it counts."""

import math

import numpy as np

from nmd_lab.problem.state import Iterate
from nmd_lab.selection.progress import MAX_ITERATIONS, MAX_ITERATIONS_SLOW, Progress


def iterate(objective, residual):
    return Iterate(None, None, objective, 0.1, 0.1, 0.1, 1.0, residual)


def followed(
    means,
    residuals,
    lowest=math.inf,
    objective=lambda k: 1.0 + 0.9**k,
    is_slow=True,
    keeps_best=False,
):
    """Return the progress of a trial that ends where it ends by itself."""
    progress = Progress(lowest, 3, is_slow=is_slow, keeps_best=keeps_best)
    for k, (mean, residual) in enumerate(zip(means, residuals, strict=True)):
        progress.add(mean, iterate(objective(k), residual))
        if progress.is_over:
            break
    return progress


def test_it_ends_near_a_stationary_point():
    found = followed([1.0] * 100, 10.0 ** (-0.2 * np.arange(100)))
    assert 14 <= found.count <= 17
    assert found.counts


def test_constant_errors_are_no_end_as_long_as_the_factors_move():
    falls = lambda k: 2.0 - 0.01 * k  # noqa: E731
    found = followed([1.0] * 1000, [0.1] * 1000, objective=falls)
    assert found.count == MAX_ITERATIONS_SLOW
    assert not found.counts


def test_it_ends_where_it_cannot_win():
    found = followed([2.0] * 100, [0.1] * 100, lowest=1.0)
    assert found.count == 3
    assert found.counts


def test_what_gets_worse_is_tried_until_it_is_worse():
    means = [0.9 + 0.01 * k for k in range(100)]
    found = followed(means, [1e-4] * 100, lowest=1.0)
    assert means[found.count - 1] > 1.0


def test_an_error_that_is_not_a_number_ends_it():
    assert followed([math.nan] * 5, [0.1] * 5).count == 1


def test_squares_end_where_the_error_has_settled():
    """Their factors may still move."""
    means = 1.0 + 0.5 ** np.arange(100)
    found = followed(means, [0.1] * 100, is_slow=False)
    assert 10 <= found.count <= 13
    assert found.counts
    assert (
        followed([1.0 + 0.01 * (-1) ** k for k in range(100)], [0.1] * 100, is_slow=False).count
        == MAX_ITERATIONS
    )


def test_after_a_path_it_ends_once_the_error_has_grown():
    means = [2.0] * 12 + [2.0 - 0.1 * k for k in range(8)] + [1.3 + 0.02 * k for k in range(40)]
    found = followed(means, [0.1] * len(means), is_slow=False, keeps_best=True)
    assert found.best == 20
    assert found.count == 30
