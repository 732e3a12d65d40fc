"""The cells that are hidden while an ensemble is tuned, at which its mixture is calibrated.

A mixture of forecasts spreads more than its members need (T. Gneiting and R. Ranjan, "Combining
predictive distributions", Electronic Journal of Statistics 7, 1747-1782, 2013).  Numbers get
a spread with which the 90 % intervals of the hidden cells cover 90 %.  Probabilities of levels and
classes are raised to the power of one over a temperature (C. Guo, G. Pleiss, Y. Sun and K.
Weinberger, "On calibration of modern neural networks", ICML 2017), with which their log score is
highest.  Those of classes are first divided by their frequencies, and then multiplied by them: the
evidence of a row gets weaker or stronger, and a class without any keeps its frequency.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from nmd_lab.data.observations import Observations
from nmd_lab.data.split import first_of_cells
from nmd_lab.model.ordinal import interval_mass

from .cut_points import ends_in_rows
from .latent_sweep import ChainState
from .problem import SampledProblem
from .sampled_model import knows_T

FAINT = 1e-12
"""Smallest probability of a hidden level, so that one cell does not decide."""

COVERED = 0.9
"""Fraction of the hidden numbers within the intervals that get their spread."""

CELLS_OF_PRIOR = 100
"""Number of cells that the prior counts for, by which the spread is 1."""

NARROWEST, WIDEST = 0.71, 1.4
"""Limits of the spread: a weighted mean of two draws can have no smaller one."""

TEMPERATURES = np.exp(np.linspace(-1.4, 0.4, 37))
"""Temperatures among which that of each column is found."""

WIDTH, WIDTH_OF_COLUMNS = 0.35, 0.2
"""Standard deviation of the logarithm of the temperature in a prior: of the table around 1, and of
a column around the table."""

Array = NDArray[np.float64]
Positions = NDArray[np.intp]


class Scores(NamedTuple):
    """What a member, or a mixture of them, says of the hidden cells.

    Attributes
    ----------
    log_densities : ndarray (n_hidden,)
        Logarithm of the density of T, or of the probability of the level.
    below : ndarray (n_hidden,)
        Probability of a T below that of the cell.
    masses : ndarray (n_levels, K)
        Probabilities of all levels of the hidden levels; of an indicator that of its class alone.
    """

    log_densities: Array
    below: Array
    masses: Array

    def plus(self, other: Scores) -> Scores:
        """Return the sums of densities and probabilities."""
        log_densities = np.logaddexp(self.log_densities, other.log_densities)
        return Scores(log_densities, self.below + other.below, self.masses + other.masses)


class Hidden(NamedTuple):
    """Hidden cells, in the units of the problem, with T for numbers and a position for levels.

    Attributes
    ----------
    rows, columns : ndarray of int (n_hidden,)
        Positions.
    values : ndarray (n_hidden,)
        T without units, or the position of the level.
    is_level : ndarray of bool (n_hidden,)
        Whether it is a level.
    cells : ndarray of int (n_levels,)
        Number of the cell of each level; the indicators of a category are one cell.
    is_indicator : ndarray of bool (n_levels,)
        Whether it is an indicator.
    firsts : ndarray of int (n_levels,)
        Column of the matrix at which the column of the table begins.
    n_codes : int
        Largest number of levels of a column.
    frequency : ndarray (n,)
        Fraction of the second level among the cells of each column of two; otherwise 1.
    """

    rows: Positions
    columns: Positions
    values: Array
    is_level: NDArray[np.bool_]
    cells: Positions
    is_indicator: NDArray[np.bool_]
    firsts: Positions
    n_codes: int
    frequency: Array

    @classmethod
    def of(cls, problem: SampledProblem, hidden: Observations) -> Hidden:
        """Return the hidden cells whose T or level is known; others are not scored."""
        cells, table = first_of_cells(hidden), hidden.labels.table
        hidden = problem.units_of_X.scaled_observations(hidden).as_sparse()
        i, j, x = hidden.entries()
        limits, values = hidden.limits, np.full(x.size, np.nan)
        kinds: Any = zip(problem.noises, problem.model.kinds, strict=True)
        is_level = (np.array(problem.noises) == "ordinal")[j]
        for k, (noise, kind) in enumerate(kinds):
            at = np.flatnonzero(j == k)
            if noise == "ordinal":
                values[at] = kind.loss.codes(x[at])
            elif knows_T(noise, kind.nonlinearity):
                values[at] = (kind.nonlinearity.pseudo_inverse(x[at]) - kind.centre) / kind.size
        known = np.isfinite(values) if limits is None else np.isfinite(values) & (limits.codes == 0)
        i, j, levels = i[known].astype(np.intp), j[known].astype(np.intp), known & is_level
        firsts, is_indicator = np.arange(problem.shape[1]), np.zeros(problem.shape[1], bool)
        if table is not None:
            firsts = table.first_of_cell
            is_indicator = np.array([each.has_indicators for each in table.of_matrix])
        at = hidden.entries().columns[levels]
        _, cell = np.unique(cells[levels], return_inverse=True)
        counts = [np.empty(0) if each is None else each.counts for each in problem.levels]
        frequency = [(c[1] + 0.5) / (c.sum() + 1) if c.size == 2 else 1.0 for c in counts]
        n_codes = max(each.size for each in counts)
        of_levels = cell.ravel(), is_indicator[at], firsts[at], n_codes, np.array(frequency)
        return cls(i, j, values[known], is_level[known], *of_levels)

    def no_scores(self) -> Scores:
        """Return the sums before any sweep."""
        n = self.values.size
        masses = np.zeros((self.cells.size, self.n_codes))
        return Scores(np.full(n, -np.inf), np.zeros(n), masses)

    def scores(self, problem: SampledProblem, state: ChainState) -> Scores:
        """Return what a state of a chain says of the cells."""
        v = problem.at(state.rows, state.columns, self.rows, self.columns).astype(np.float64)
        rho = state.rho[self.columns]
        z = np.sqrt(rho) * (self.values - v)
        logs = 0.5 * np.log(rho) - 0.5 * z**2
        masses = self._masses(problem, state, v[self.is_level])
        logs[self.is_level] = np.log(self._observed(masses) + FAINT)
        return Scores(logs, ndtr(z), self._of_classes(masses))

    def _masses(self, problem: SampledProblem, state: ChainState, v: Array) -> Array:
        """Return the probability of each level of the hidden levels, given WH there."""
        if not v.size:
            return np.zeros((0, self.n_codes))
        columns = self.columns[self.is_level]
        centre, size = problem.units_of_kinds[columns].T
        ends = ends_in_rows(state.cuts)[columns] - (centre + size * v)[:, None]
        return np.asarray(interval_mass(ends[:, :-1], ends[:, 1:]))

    def _observed(self, masses: Array) -> Array:
        """Return the probabilities of the levels that are hidden."""
        codes = self.values[self.is_level].astype(np.intp)
        return np.asarray(masses[np.arange(codes.size), codes])

    def _of_classes(self, masses: Array) -> Array:
        """Return probabilities where those of the indicators of a cell add to 1."""
        at, found = self.is_indicator, masses.copy()
        if at.any():
            sums = np.bincount(self.cells[at], masses[at, 1], self.cells.max() + 1)
            found[at] = 0.0
            found[at, 1] = masses[at, 1] / np.maximum(sums[self.cells[at]], FAINT)
        return found

    def calibration(self, spread: float, temperature: Array | float) -> dict[str, NDArray[Any]]:
        """Return the arrays of each draw by name; those of the mixture itself are 1."""
        each = np.broadcast_to(temperature, self.frequency.shape)
        return {"spread": np.array(spread), "temperature": each, "frequency": self.frequency}

    def spread(self, below: Array) -> float:
        """Return the spread of intervals that cover their share of the numbers.

        `below` has the probability that the mixture gives to T below each cell.
        """
        if self.is_level.all():
            return 1.0
        z = np.abs(ndtri(np.clip(below[~self.is_level], FAINT, 1 - FAINT)))
        ratio = np.quantile(z, COVERED) / ndtri((1 + COVERED) / 2)
        return float(np.clip(ratio ** (z.size / (z.size + CELLS_OF_PRIOR)), NARROWEST, WIDEST))

    def temperatures(self, masses: Array) -> Array | float:
        """Return the temperature of each column of the matrix; `masses` are those of the mixture.

        It maximises the log score of the hidden levels and classes together with its prior, first
        of all columns, then of each.
        """
        n, codes = self.frequency.size, self.values[self.is_level]
        if not masses.size:
            return 1.0
        at = ~self.is_indicator | (codes == 1)
        second, logs = self.frequency[self.columns[self.is_level], None], np.log(TEMPERATURES)
        first = np.where(second < 1, 1 - second, 1.0)  # a high temperature leaves these references
        references = np.where(np.arange(self.n_codes) == 1, second, first)
        ratios = masses / references
        observed = np.log(self._observed(ratios)[at] + FAINT)
        scores = np.zeros((n, TEMPERATURES.size))
        for k, temperature in enumerate(TEMPERATURES):
            powers = np.where(masses > 0, references * ratios ** (1 / temperature), 0).sum(axis=1)
            sums = np.log(np.bincount(self.cells, powers)[self.cells[at]] + FAINT)
            scores[:, k] = np.bincount(self.firsts[at], observed / temperature - sums, n)
        whole = logs[np.argmax(scores.sum(axis=0) - 0.5 * (logs / WIDTH) ** 2)]
        prior = 0.5 * ((logs - whole) / WIDTH_OF_COLUMNS) ** 2
        return np.asarray(TEMPERATURES[np.argmax(scores - prior, axis=1)])
