"""When a trial ends, and whether it counts."""

import math

import numpy as np
import pytest

from nmd_lab.selection.progress import MAX_ITERATIONS, MAX_ITERATIONS_SLOW, Progress


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
    for k, (mean, residual) in enumerate(zip(means, residuals, strict=False)):
        progress.add(mean, objective(k), residual)
        if progress.is_over:
            break
    return progress


FLAT, STEPS = np.ones(1000), np.arange(100)
ENDS = {
    "near a stationary point": (FLAT, 10.0 ** (-0.2 * STEPS), {}, range(14, 18), True),
    "after so many iterations, as long as the factors move": (
        FLAT, 0.1 * FLAT, {"objective": lambda k: 2.0 - 0.01 * k}, [MAX_ITERATIONS_SLOW], False),
    "where it cannot win": (2 * FLAT, 0.1 * FLAT, {"lowest": 1.0}, [3], True),
    "once what gets worse is worse than the best": (
        0.9 + 0.01 * STEPS, 1e-4 * FLAT, {"lowest": 1.0}, range(12, 100), True),
    "at an error that is no number": (math.nan * FLAT, 0.1 * FLAT, {}, [1], True),
    "where the error of squares has settled, while their factors move": (
        1 + 0.5**STEPS, 0.1 * FLAT, {"is_slow": False}, range(10, 14), True),
    "after so many iterations of squares": (
        1 + 0.01 * (-1.0) ** STEPS, 0.1 * FLAT, {"is_slow": False}, [MAX_ITERATIONS], True),
}  # fmt: skip


@pytest.mark.parametrize("where", ENDS)
def test_it_ends(where):
    means, residuals, options, counts, does_count = ENDS[where]
    found = followed(means, residuals, **options)
    assert found.count in counts
    assert found.counts == does_count


def test_after_a_path_it_ends_once_the_error_has_grown():
    means = [2.0] * 12 + [2.0 - 0.1 * k for k in range(8)] + [1.3 + 0.02 * k for k in range(40)]
    found = followed(means, [0.1] * len(means), is_slow=False, keeps_best=True)
    assert found.best == 20
    assert found.count == 30
