"""The noise level at censored entries, estimated by a pilot run.

The loss of an entry with limits needs the standard deviation of the noise (`LimitModel`).  Where
settings are chosen by held-out entries, it is their error.  Otherwise a pilot run estimates it: a
few iterations, each time with the noise of the iterations before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from nmd_lab.data.observations import Observations
from nmd_lab.engines import iterates
from nmd_lab.engines.admm import Admm
from nmd_lab.model.column_model import LimitModel
from nmd_lab.problem.initialization import Start
from nmd_lab.problem.problem import Problem
from nmd_lab.problem.state import Iterate
from nmd_lab.request.options import Options

from .starts import first_start


def first_sd(observations: Observations) -> float:
    """Return the standard deviation of the known values, for a model that explains nothing."""
    total, first, second = 0.0, 0.0, 0.0
    for _, _, _, x, weights in _known_entries(observations):
        total, first = total + float(weights.sum()), first + float(weights @ x)
        second += float(weights @ np.square(x))
    if total == 0:
        return 0.0
    mean = first / total
    return math.sqrt(max(second / total - mean * mean, 0.0))


def with_sd(problem: Problem, sd: float) -> Problem:
    """Return a problem with the standard deviation of the noise, in the units of X."""
    model = problem.units.model
    if not model.has_form_for_limits:
        return problem
    return problem.with_model(model.with_limits(model.limits._replace(sd=sd)))


def with_estimated_sd(problem: Problem, options: Options) -> Problem:
    """Return a problem with the noise that a pilot run finds."""
    if not problem.units.model.has_form_for_limits:
        return with_sd(problem, 0.0)
    start = first_start(problem, options.rank, options, options.generator())
    return with_sd(problem, pilot_sd(problem, start))


def pilot_sd(problem: Problem, start: Start) -> float:
    """Return the standard deviation of the noise, in the units of X, by a pilot run."""
    model = problem.model
    sd, rank, (m, n) = first_sd(problem.observations), start.W.shape[1], problem.observations.shape
    n_known = sum(x.size for *_, x, _ in _known_entries(problem.observations))
    free = 1.0 - rank * (m + n - rank) / max(n_known, 1)
    unit = 2.0**problem.units.log2_unit_of_x
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(4):  # estimates
            pilot = replace(problem, model=model.with_limits(LimitModel(model.limits.smallest, sd)))
            for iterate in islice(iterates(Admm(), pilot, start), 20):
                if not iterate.is_finite:
                    return sd * unit
            W, H, offsets = problem.offset_columns.split(iterate.W_aug, iterate.H_aug)
            # A tenth of the known values are degrees of freedom that are left, at least.
            sd = min(sd, _rmse(problem, iterate) / math.sqrt(max(free, 0.1)))
            start = Start(W.copy(), H.copy(), True, offsets)
    return sd * unit


def _rmse(problem: Problem, iterate: Iterate) -> float:
    """Return the root mean squared error at the entries whose values are known."""
    total, squares, f = 0.0, 0.0, problem.model.nonlinearity
    W, Ht = iterate.W_aug.astype(np.float64), iterate.H_aug.T.astype(np.float64)
    for rows, i, j, x, weights in _known_entries(problem.observations):
        y = f(np.einsum("ij,ij->i", W[rows][i], Ht[j]))
        total, squares = total + float(weights.sum()), squares + float(weights @ np.square(x - y))
    return math.sqrt(squares / total) if total > 0 else 0.0


def _known_entries(observations: Observations) -> Iterator[tuple[slice, Any, Any, Any, Any]]:
    """Yield the entries whose values are known, a range of rows at a time."""
    (m, n), dense = observations.shape, observations.pattern is None
    per_row = n if dense else observations.n_observed / m
    step = max(1, int((1 << 18) / max(per_row, 1)))  # 2 MiB of doubles
    for first in range(0, m, step):
        rows = slice(first, min(first + step, m))
        indptr, indices, x, weights, limits = observations.csr_rows(rows)
        i = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        exact = np.ones(x.size, bool) if limits is None else limits.codes == 0
        yield rows, i[exact], indices[exact], x[exact], weights[exact]
