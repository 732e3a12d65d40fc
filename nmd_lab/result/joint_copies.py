"""Completed copies from draws of the joint distribution of all columns."""

from __future__ import annotations

import numpy as np
import xarray as xr

from nmd_lab.data.labels import Labels
from nmd_lab.data.matching import MatchedData
from nmd_lab.model.model import Model, each_group
from nmd_lab.problem.scaling import OffsetColumns, Scaling
from nmd_lab.sampler.joint_normal import JointDraws, draw_scores
from nmd_lab.sampler.priors import Prior
from nmd_lab.sampler.problem import SampledProblem, with_limits
from nmd_lab.sampler.scores import columns_with_scores, scores_of

from .draws import JOINT, Draws, Positions
from .mixture import Array, RepeatedValues, has_repeated_value

DIMENSIONS = (
    ("joint_draw", "joint_group", "score"),
    ("joint_draw", "joint_group", "score", "score_"),
    ("joint_draw", "joint_group"),
    ("matrix_column", "matrix_cut"),
)
"""Dimensions of the variables of `JOINT`."""

FIRST_SWEEPS, NEXT_SWEEPS = 20, 5
"""Sweeps for the first completed copy, and for each further one, where scores have limits."""


def dataset_of_joint(draws: JointDraws) -> xr.Dataset:
    """Return the draws as a Dataset."""
    return xr.Dataset(dict(zip(JOINT, zip(DIMENSIONS, draws, strict=True), strict=True)))


def draws_in(dataset: xr.Dataset) -> JointDraws:
    """Return the draws of a Dataset."""
    return JointDraws(*(dataset[name].values for name in JOINT))


class JointCopies:
    """Completed copies of the rows of X.

    Parameters
    ----------
    joint : JointDraws
        Draws of the distribution of a row.
    draws : Draws
        Draws of the posterior, which has the models of the columns.
    data : MatchedData
        The rows of X, and where the posterior has their columns.
    rng : Generator
        Random numbers.
    """

    def __init__(
        self, joint: JointDraws, draws: Draws, data: MatchedData, rng: np.random.Generator
    ) -> None:
        self._joint, self._draws, self._rng = joint, draws, rng
        problem = _problem_of(draws, data)
        known = scores_of(problem, draws.table, joint.cuts)
        self._scored = columns_with_scores(draws.table, draws.shape[1])
        rows = np.flatnonzero((known.low < known.high).any(axis=1))
        self._scores = known.at(rows)
        low, high, classes, _ = self._scores
        is_known = (low == high) | (np.isinf(low) & np.isinf(high))
        self._has_latent = not is_known.all() or bool((classes >= 0).any())
        self._z, self._labels = self._scores.first(), np.zeros(rows.size, np.int64)
        self._ends = _ends_of_scores(draws.model)[:, self._scored]
        self._repeated = _repeated_values(problem)
        self._seed, self._sweep = int(rng.integers(2**62)), 0
        self._place = np.full(data.observations.shape[0], -1)
        self._place[rows] = np.arange(rows.size)

    def next(self, k: int) -> None:
        """Draw the next copy, from a draw of the distribution."""
        steps, draw = NEXT_SWEEPS if self._sweep else FIRST_SWEEPS, self._joint.at(k)
        for _ in range(steps if self._has_latent else 1):
            self._sweep += 1
            key, about = (self._seed, self._sweep), (self._scores, self._z, draw, self._labels)
            draw_scores(*about, key, relabel=True, ends=self._ends)

    def numbers(self, i: Positions, j: Positions) -> Array:
        """Return values of numbers and levels at rows of X and columns of the posterior."""
        z = self._z[self._place[i], np.searchsorted(self._scored, j)]
        x = np.empty(z.size)
        for k, at in each_group(j, self._draws.shape[1]):
            kind = self._draws.model.column_models[k]
            if kind.loss.classes == "ordered":
                levels = np.array(kind.loss.level_values)
                x[at] = levels[np.searchsorted(self._joint.cuts[k, 1 : levels.size], z[at])]
                continue
            x[at] = kind.modelled(z[at])
            if (values := self._repeated.get(k)) is not None:
                x[at] = values.near(x[at], self._rng)
        return x

    def classes(self, rows: Positions, positions: Positions) -> Array:
        """Return the class of a category whose indicators have these positions."""
        at = np.searchsorted(self._scored, positions[1:])
        z = self._z[self._place[rows]][:, at]
        return np.where(z.max(axis=1) > 0, z.argmax(axis=1) + 1, 0).astype(np.float64)


def _problem_of(draws: Draws, data: MatchedData) -> SampledProblem:
    """Return rows of X as a problem of the sampler."""
    m, n = data.observations.shape[0], draws.shape[1]
    rows = MatchedData(data.observations, np.arange(m), data.columns)
    problem = SampledProblem(
        scaling=Scaling(draws.model),
        noises=tuple("ordinal" if noise == "ordinal" else "gaussian" for noise in draws.noises),
        rank=1,
        offset_columns=OffsetColumns("columns", 0.0),
        prior=Prior(1.0, np.ones(n)),
        observations=rows.as_sparse(Labels.plain((m, n))),
        threads=1,
    )
    return with_limits(problem)


def _ends_of_scores(model: Model) -> Array:
    """Return the ends (2, n) of the scores of each column."""
    kinds = model.column_models
    return np.array([(np.array(k.nonlinearity.ends) - k.centre) / k.size for k in kinds]).T


def _repeated_values(problem: SampledProblem) -> dict[int, RepeatedValues]:
    """Return the values that repeat in each column of numbers without limits."""
    found = {}
    for k, (noise, at) in enumerate(zip(problem.noises, problem.entries_of_kinds, strict=True)):
        x = problem.values[at].astype(np.float64)
        is_limited = problem.limits is not None and problem.limits.limited[at].any()
        if noise != "ordinal" and not is_limited and x.size and has_repeated_value(x):
            found[k] = RepeatedValues.of(x, x)
    return found
