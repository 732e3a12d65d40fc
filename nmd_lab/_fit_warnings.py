"""The warnings of a finished fit, which `decompose` and `complete` give."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .data.base import Observations
from .result.decomposition import Decomposition
from .solver.prepare import Prepared
from .warnings import NMDWarning, NotConvergedWarning, OverfitWarning, UnobservedWarning


@dataclass(frozen=True)
class WarningOptions:
    """Constants of the warnings.

    Attributes
    ----------
    decrease : float
        Relative decrease of the objective in the last tenth of the iterations above which a fit is
        not converged.
    entries_per_number : float
        Number of observed entries for each number in W and H below which more iterations without a
        ridge may fit noise.
    short_lines : float
        Share of rows and columns with fewer observed entries than components above which the same
        holds.
    samples : int
        Number of entries at which predictions are compared with the data.
    beyond : float
        Distance from the range of the data, in units of that range, at which a prediction is far
        from it.
    share_beyond : float
        Share of such predictions among the missing entries above which a fit is overfitted.
    fewest_beyond : int
        Least number of such predictions.
    """

    decrease: float = 1e-3
    entries_per_number: float = 3.0
    short_lines: float = 0.01
    samples: int = 20_000
    beyond: float = 1.0
    share_beyond: float = 0.002
    fewest_beyond: int = 3


WARNINGS = WarningOptions()


class Beyond(NamedTuple):
    """Predictions far from the range of the data.

    Attributes
    ----------
    smallest, largest : float
        Range of the predictions.
    low, high : float
        Range of the observed entries.
    """

    smallest: float
    largest: float
    low: float
    high: float


def warn_about(fit: Decomposition, prepared: Prepared, stacklevel: int) -> None:
    """Give all warnings that apply to a fit.

    Parameters
    ----------
    fit : Decomposition
        The fit.
    prepared : Prepared
        Its problem and options.
    stacklevel : int
        Number of calls between the user's line and this function.
    """
    messages: dict[type[NMDWarning], str] = {
        UnobservedWarning: _unobserved(prepared),
        OverfitWarning: _overfit(fit, prepared),
        NotConvergedWarning: _not_converged(fit, prepared),
    }
    for category, message in messages.items():
        if message:
            warnings.warn(message, category, stacklevel=stacklevel + 1)


def _not_converged(fit: Decomposition, prepared: Prepared) -> str:
    """Return the warning if the last tenth of the iterations still lowered the objective."""
    options = prepared.options
    if options.tol == 0 or fit.stop_reason.code != "max_iter":
        return ""
    lowest = np.minimum.accumulate(fit.history["objective"].values)
    before, after = lowest[-1 - max(1, fit.n_iter // 10) :][0], lowest[-1]
    if before - after <= WARNINGS.decrease * abs(after):
        return ""
    remedy = (
        "raise max_iter, or pass tol=0 if so many iterations are what you want."
        if _determined(prepared, fit.rank)
        else "give a ridge (alpha) or validation=0.1, since so few observed entries for each "
        "component let more iterations make the predictions worse."
    )
    return (
        f"max_iter={options.max_iter} ended a fit whose last tenth of iterations still "
        f"lowered the objective by {(before - after) / abs(before):.1%}: {remedy}"
    )


def _determined(prepared: Prepared, rank: int) -> bool:
    """Return whether the observed entries, the ridge or held-out entries determine a fit."""
    observations, options = prepared.problem.observations, prepared.options
    if options.alpha > 0 or prepared.held_out is not None:
        return True
    m, n = observations.shape
    if observations.n_observed == m * n:
        return True
    counts = np.concatenate([observations.counts(1), observations.counts(0)])
    counts = counts[counts > 0]
    short = np.count_nonzero(counts < rank)
    enough = observations.n_observed >= WARNINGS.entries_per_number * rank * counts.size
    return bool(enough and short <= WARNINGS.short_lines * counts.size)


def _overfit(fit: Decomposition, prepared: Prepared) -> str:
    """Return the warning if predictions of missing entries are far from the range of the data."""
    found = _far_predictions(fit, prepared.problem.observations)
    if found is None:
        return ""
    remedies = ["a larger alpha" if prepared.options.alpha > 0 else "a ridge (alpha)"]
    remedies += ["validation=0.1"] if prepared.held_out is None else []
    return (
        f"predictions of missing entries reach from {found.smallest:.3g} to {found.largest:.3g}, "
        f"though X lies between {found.low:.3g} and {found.high:.3g}: give {', '.join(remedies)} "
        "or a smaller rank."
    )


def _far_predictions(fit: Decomposition, observations: Observations) -> Beyond | None:
    """Return the range of predictions if more than a few are far from the data, else None."""
    m, n = observations.shape
    missing = m * n - observations.n_observed
    if not missing:
        return None
    positions = np.arange(m * n)
    if m * n > WARNINGS.samples:
        positions = np.random.default_rng(0).integers(m * n, size=WARNINGS.samples)
    rows, columns = np.divmod(positions, n)
    seen = (observations.counts(1) > 0)[rows] & (observations.counts(0) > 0)[columns]
    low, high = observations.range()
    margin = WARNINGS.beyond * ((high - low) or abs(high))
    predictions = np.asarray(fit.predict(rows[seen], columns[seen]), dtype=np.float64)
    far = np.count_nonzero((predictions < low - margin) | (predictions > high + margin))
    limit = WARNINGS.share_beyond * missing / (m * n) * positions.size
    if far < max(limit, WARNINGS.fewest_beyond):
        return None
    return Beyond(float(predictions.min()), float(predictions.max()), low, high)


def _unobserved(prepared: Prepared) -> str:
    """Return the warning if rows or columns have no observed entry and no offsets."""
    if prepared.options.offsets != "none":
        return ""
    rows, columns = prepared.problem.observations.empty_rows_and_columns()
    if not rows.size + columns.size:
        return ""
    counts = {"row": rows.size, "column": columns.size}
    named = " and ".join(
        f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts.items() if count
    )
    return (
        f"X has no observed entry in {named}, whose predictions are f(0): drop them, or pass "
        "offsets='both' for predictions from the offsets."
    )
