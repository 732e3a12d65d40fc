"""Completed copies from draws of the joint distribution of all columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.data.labels import Labels
from nmd_lab.data.matching import MatchedData
from nmd_lab.model.model import each_group
from nmd_lab.sampler.joint_normal import JointDraws, columns_with_scores, draw_scores, scores_of
from nmd_lab.sampler.problem import problem_of_rows

from .draws import JOINT, Draws, Positions, RepeatedValues
from .predictive import Array

DIMENSIONS = (
    ("joint_draw", "joint_group", "score"),
    ("joint_draw", "joint_group", "score", "score_"),
    ("joint_draw", "joint_group"),
    ("matrix_column", "matrix_cut"),
)
"""Dimensions of the variables of `JOINT`."""

N_REPLICATES = 10_000
"""Numbers that replicate those of a column."""

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

    Attributes
    ----------
    repeated : dict of RepeatedValues
        Values that repeat in a column, which new numbers hold too.
    """

    def __init__(
        self, joint: JointDraws, draws: Draws, data: MatchedData, rng: np.random.Generator
    ) -> None:
        self._joint, self._draws, self._rng = joint, draws, rng
        (m, _), n = data.observations.shape, draws.shape[1]
        problem = problem_of_rows(
            data.as_sparse(Labels.plain((m, n))),
            draws.model,
            tuple("ordinal" if noise == "ordinal" else "gaussian" for noise in draws.noises),
            rank=1,
            offsets=("columns", 0.0),
        )
        known = scores_of(problem, draws.table, joint.cuts)
        self._scored = columns_with_scores(draws.table, draws.shape[1])
        incomplete = np.flatnonzero((known.low < known.high).any(axis=1))
        self._scores = known.at(incomplete)
        low, high, classes, _ = self._scores
        is_known = (low == high) | (np.isinf(low) & np.isinf(high))
        self._has_latent = not is_known.all() or bool((classes >= 0).any())
        self._z, self._labels = self._scores.first(), np.zeros(incomplete.size, np.int64)
        kinds = [draws.model.column_models[k] for k in self._scored]
        ends = [(np.array(k.nonlinearity.ends) - k.centre) / k.size for k in kinds]
        self._ends = np.array(ends).T.copy()
        self.repeated: dict[int, RepeatedValues] = {}
        self._seed, self._sweep = int(rng.integers(2**62)), 0
        self._place = np.full(m, -1)
        self._place[incomplete] = np.arange(incomplete.size)

    def next(self, k: int) -> None:
        """Draw the next copy, from a draw of the distribution."""
        steps, draw = NEXT_SWEEPS if self._sweep else FIRST_SWEEPS, self._joint.at(k)
        for _ in range(steps if self._has_latent else 1):
            self._sweep += 1
            key, about = (self._seed, self._sweep), (self._scores, self._z, draw, self._labels)
            draw_scores(*about, key, relabel=True, ends=self._ends)

    def numbers(self, entries: Any) -> Array:
        """Return values of numbers and levels at entries, within their limits."""
        i, j, low, high = entries
        z = self._z[self._place[i], np.searchsorted(self._scored, j)]
        x = np.empty(z.size)
        for k, at in each_group(j, self._draws.shape[1]):
            kind = self._draws.model.column_models[k]
            if kind.loss.classes == "ordered":
                levels = np.array(kind.loss.level_values)
                x[at] = levels[np.searchsorted(self._joint.cuts[k, 1 : levels.size], z[at])]
                continue
            x[at] = kind.modelled(z[at])
            if (values := self.repeated.get(k)) is not None:
                x[at] = values.near(x[at], self._rng)
        return np.clip(x, low, high)

    def replicates(self, _: Positions, column: int) -> Array:
        """Return numbers that replicate those of a column, whatever the row."""
        means, precisions, shares = self._joint[:3]
        rng = np.random.default_rng(0)
        draw, c = rng.integers(len(means), size=N_REPLICATES), self._scored.searchsorted(column)
        group = (rng.random(N_REPLICATES) > shares[draw].cumsum(axis=1)[:, :-1].T).sum(axis=0)
        sd = np.sqrt(np.linalg.inv(precisions)[draw, group, c, c])
        z: Array = means[draw, group, c] + sd * rng.standard_normal(N_REPLICATES)
        low, high = self._ends[:, c]
        kind = self._draws.model.column_models[column]
        return kind.modelled(z[(low < z) & (z < high)]).astype(np.float64)

    def classes(self, _: Any, rows: Positions, positions: Positions) -> Array:
        """Return the class of a category whose indicators have these positions."""
        at = np.searchsorted(self._scored, positions[1:])
        z = self._z[self._place[rows]][:, at]
        return np.where(z.max(axis=1) > 0, z.argmax(axis=1) + 1, 0).astype(np.float64)
