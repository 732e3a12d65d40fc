"""Running moments of predictions at some entries, for data whose draws are too large to keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from nmd_lab._runtime.checks import check_positions
from nmd_lab.data.entries import FloatArray
from nmd_lab.model.censored import expected_value
from nmd_lab.model.mixed import each_group

from .latent_sweep import conditional_of, ends_in_rows
from .problem import SampledProblem
from .state import ChainState


@dataclass
class Moments:
    """Number, mean and sum of squares of what was added."""

    mean: FloatArray
    squares: FloatArray
    count: int = 0


class Targets:
    """Mean and variance of the expected X over sweeps, by Welford's update."""

    def __init__(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> None:
        self.rows, self.columns = rows, columns
        self.now = Moments(np.zeros(rows.size), np.zeros(rows.size))

    def add(self, problem: SampledProblem, state: ChainState) -> None:
        """Add a sweep."""
        products = problem.at(state.rows, state.columns, self.rows, self.columns).astype(np.float64)
        if not problem.by_column:
            value = _expected(problem, state, 0 * self.columns, products, self.rows)
        else:
            value, columns = np.empty(products.size), self.columns
            for _, at in each_group(_first_alike(problem)[columns], problem.shape[1]):
                value[at] = _expected(problem, state, columns[at], products[at], self.rows[at])
        now = self.now
        now.count += 1
        change = value - now.mean
        now.mean += change / now.count
        now.squares += change * (value - now.mean)

    def moments(self, exponent: int) -> dict[str, Any]:
        """Return positions, means and standard deviations, in units 2^exponent of those here."""
        std = np.sqrt(self.now.squares / max(self.now.count, 1))
        return {
            "target_row": self.rows,
            "target_column": self.columns,
            "target_mean": np.ldexp(self.now.mean, exponent),
            "target_std": np.ldexp(std, exponent),
        }


def _first_alike(problem: SampledProblem) -> NDArray[np.intp]:
    """Return the first column with the same levels for each column; a number has itself."""
    first: dict[Any, int] = {}
    kinds = enumerate(problem.model.kinds)
    keys = [
        np.asarray(k.loss.level_values).tobytes() if k.loss.classes == "ordered" else j
        for j, k in kinds
    ]
    return np.array([first.setdefault(key, j) for j, key in enumerate(keys)])


def _expected(
    problem: SampledProblem,
    state: ChainState,
    kinds: NDArray[np.intp],
    WH: FloatArray,
    rows: NDArray[np.intp],
) -> FloatArray:
    """Return the expected X, given WH with offsets, of a kind, or of several of the same levels."""
    k = int(kinds[0])
    kind, noise = problem.model.kinds[k], problem.noises[k]
    v: FloatArray = kind.centre + kind.size * WH
    if noise == "gaussian":
        return v
    if kind.loss.classes == "ordered":
        used, which = np.unique(kinds, return_inverse=True)
        ends = ends_in_rows([state.cuts[each] for each in used])[which]
        above = ndtr(v[:, None] - ends[:, 1:-1])  # probabilities of the levels above a cut point
        expected: FloatArray = kind.loss.level_values[0] + above @ np.diff(kind.loss.level_values)
        return expected
    _, _, rho, *_ = conditional_of(problem, state, [k])
    if problem.noise_by == "rows":
        rho = rho[rows]
    return expected_value(kind.nonlinearity, v, 1 / np.sqrt(rho))


def check_targets(targets: Any, shape: tuple[int, int]) -> Targets | None:
    """Return the targets of `nmd_lab.sample`, checked; None without any."""
    if targets is None:
        return None
    if not isinstance(targets, tuple | list) or len(targets) != 2:
        raise TypeError(f"targets is a {type(targets).__name__}: give a pair (rows, columns).")
    i, j = np.broadcast_arrays(np.atleast_1d(targets[0]), np.atleast_1d(targets[1]))
    return Targets(
        *(check_positions("targets", at, n) for at, n in zip((i, j), shape, strict=True))
    )
