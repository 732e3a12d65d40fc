"""Coverage of the intervals of a posterior at held-out data, as a number and as a chart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.observations import observe
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior.posterior import Posterior

LEVEL = 0.9  # probability of the intervals

MOST_CHECKED, MOST_DRAWN = 5000, 500
"""Largest numbers of entries that are checked and drawn; of more, a random sample."""


class Findings(NamedTuple):
    """What a posterior says at known entries."""

    held_out: bool  # whether the sampler has not seen the entries
    n_entries: int  # number of entries
    coverage: float  # share of the intervals that hold the observed value
    rmse: float  # root mean squared error of the posterior mean
    entries: SparseObservations  # the entries, or a sample of them, to be drawn
    mean: NDArray[Any]  # posterior mean, and the ends of the intervals, at these
    low: NDArray[Any]
    high: NDArray[Any]

    @property
    def summary(self) -> str:
        """The coverage in one line."""
        which = "held-out" if self.held_out else "known"
        return (
            f"{100 * self.coverage:.0f} % of the {100 * LEVEL:.0f} % intervals hold the {which} "
            "value"
        )

    @property
    def caption(self) -> str:
        """The line below the chart."""
        if not self.held_out:
            return (
                f"{self.n_entries} entries that the sampler has seen, RMSE {self.rmse:.4g}: hold "
                "some out to judge the intervals"
            )
        return f"{self.n_entries} held-out entries: RMSE of the posterior mean {self.rmse:.4g}"


def findings(posterior: Posterior, X: Any, held_out: Any) -> Findings:
    """Return what a posterior says at held-out entries, or at seen ones if there are none."""
    entries = None if held_out is None else observe(held_out).as_sparse()
    unseen = entries is not None and entries.n_observed > 0
    observations = entries if entries is not None and unseen else observe(X).as_sparse()
    checked = sample(observations, MOST_CHECKED)
    mean, low, high = _at(posterior, checked)
    x = checked.values
    drawn = sample(checked, MOST_DRAWN)
    return Findings(
        unseen,
        x.size,
        float(np.mean((low <= x) & (x <= high))),
        float(np.sqrt(np.mean((mean - x) ** 2))),
        drawn,
        *_at(posterior, drawn),
    )


def _at(
    posterior: Posterior, entries: SparseObservations
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the posterior mean and the ends of the intervals of new observations."""
    rows, columns, _ = entries.entries()
    at = entries_at(rows, columns)
    low, high = posterior.predict_interval(at, level=LEVEL).T
    return posterior.predict(at), low, high


def sample(entries: SparseObservations, most: int) -> SparseObservations:
    """Return observations, or a random sample of them that is always the same."""
    if entries.n_observed <= most:
        return entries
    drawn = np.zeros(entries.n_observed, dtype=bool)
    drawn[np.random.default_rng(0).choice(drawn.size, most, replace=False)] = True
    return entries.select(drawn)
