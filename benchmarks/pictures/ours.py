"""Methods of this library.

- `nmd.inpaint` has all arguments at their defaults, but for `denoise` where there is noise, and
  `loss="kl"` for counts.  Two more columns have transformed counts, and f = exp with KL.
- Limits: patches of the clipped photograph, for `nmd.complete` with `at_least=` at clipped pixels.
- MinMax: the same patches, where f(WH) ends at the ceiling and WH does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import nmd_lab as nmd

from .cases import CLIPPING, COUNTED, MISSING, NOISY, Problem
from .peers import Answer, Method, grid, unbiased_inverse

BEST, LIMITS = "nmd.inpaint", "nmd.complete, limits"
"""The methods that the ratios are about."""

ENDS = 1.645
"""Standard deviations from the mean to the ends of a 90 % interval."""

Array = np.ndarray


def inpaint(problem: Problem, seed: int, **options: Any) -> Answer:
    """Fill missing pixels, or remove noise; counts have a variance that is their mean."""
    loss = {"loss": "kl"} if problem.units != 1 else {}
    denoise = problem.noise is not None or problem.units != 1
    answer = restored(problem.given, denoise, seed, **loss, **options)
    return Answer(*(each / problem.units for each in answer))


def transformed(problem: Problem, seed: int, **options: Any) -> Answer:
    """Remove the noise of counts after the transform that the other methods have."""
    answer = restored(2 * np.sqrt(problem.given + 3 / 8), True, seed, **options)
    return Answer(*(unbiased_inverse(each) / problem.units for each in answer))


def by_exp(problem: Problem, seed: int, **options: Any) -> Answer:
    """Fit the patches of counts by exp and KL."""
    return inpaint(problem, seed, nonlinearity="exp", **options)


def restored(given: Array, denoise: bool, seed: int, **options: Any) -> Answer:
    """Return a picture of `nmd.inpaint`, with the ends of its 90 % intervals."""
    found = nmd.inpaint(given, denoise=denoise, random_state=seed, **options)
    picture, std = found["picture"].values, found["std"].values
    return Answer(picture, picture - ENDS * std, picture + ENDS * std)


def with_clipped_missing(problem: Problem, seed: int, **options: Any) -> Answer:
    """Fill clipped pixels as if they were missing, not below the ceiling."""
    given = np.where(problem.scored, np.nan, problem.given)
    return at_least_ceiling(problem, nmd.inpaint(given, random_state=seed, **options)["picture"])


def with_limits(problem: Problem, seed: int, *, size: int, rank: int) -> Answer:
    """Complete patches whose clipped pixels are lower limits."""
    patches = nmd.patches(problem.given, size, size // 2)
    limits = patches.values >= problem.ceiling
    fit = nmd.complete(patches, rank, "identity", at_least=limits, random_state=seed)
    return at_least_ceiling(problem, nmd.from_patches(fit.reconstruct(), like=problem.given))


def beyond_ceiling(problem: Problem, seed: int, *, size: int, rank: int) -> Answer:
    """Complete patches by an f that ends at the ceiling, and return the argument of f."""
    patches = nmd.patches(problem.given, size, size // 2)
    fit = nmd.complete(patches, rank, nmd.MinMax(0, problem.ceiling), random_state=seed)
    argument = patches.copy(data=argument_of(fit))
    return at_least_ceiling(problem, nmd.from_patches(argument, like=problem.given))


def argument_of(fit: nmd.Decomposition) -> Array:
    """Return WH with its offsets."""
    rows, columns = fit.W.shape[0], fit.H.shape[1]
    offsets = fit.offsets.of_rows(rows, float)[:, None] + fit.offsets.of_columns(columns, float)
    return fit.offsets.mean + offsets + fit.W.values @ fit.H.values


def at_least_ceiling(problem: Problem, picture: Any) -> Answer:
    """Return a picture whose clipped pixels alone are changed, to the ceiling or above."""
    restored = np.maximum(np.asarray(picture), problem.ceiling)
    return Answer(np.where(problem.scored, restored, problem.given))


SIZES = grid(size=(8, 16), rank=(8, 32))

OURS: Mapping[str, Method] = {
    BEST: Method(inpaint, (*MISSING, *NOISY, *COUNTED)),
    "nmd.inpaint, transformed": Method(transformed, COUNTED),
    "nmd.inpaint, exp and KL": Method(by_exp, COUNTED),
    "nmd.inpaint, clipped as missing": Method(with_clipped_missing, CLIPPING),
    "nmd.complete, MinMax": Method(beyond_ceiling, CLIPPING, SIZES),
    LIMITS: Method(with_limits, CLIPPING, SIZES),
}
"""Our methods by name."""
