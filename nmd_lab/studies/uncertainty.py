"""How good the intervals and the distributions of a posterior are on held-out entries."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nmd_lab.result.posterior.posterior import Posterior

LEVEL = 0.9
"""Level of the intervals whose coverage is measured."""

OF_A_POSTERIOR = {
    "held_out_coverage_90": {"long_name": "share of held-out entries in their 90 % interval"},
    "held_out_log_density": {"long_name": "mean log-density of held-out entries"},
}
"""Numbers that only a posterior has, with the attributes of their variables."""


def held_out_scores(
    posterior: Posterior,
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
    values: NDArray[np.floating],
) -> dict[str, float]:
    """Return the numbers of `OF_A_POSTERIOR`.

    Parameters
    ----------
    posterior : Posterior
        Posterior of a matrix in which some entries are hidden.
    rows, columns : ndarray of int (n_entries,)
        Positions of these entries.
    values : ndarray of float (n_entries,)
        Their values.

    Returns
    -------
    dict
        Scores by name; NaN without entries, and where the loss says no distribution.  The
        log-density is minus infinity where a value is one that the model does not allow.
    """
    scores = dict.fromkeys(OF_A_POSTERIOR, math.nan)
    if not values.size:
        return scores
    try:
        low, high = posterior.predict_interval(rows, columns, level=LEVEL).T
        scores["held_out_coverage_90"] = float(np.mean((low <= values) & (values <= high)))
        log_densities = posterior.log_density(rows, columns, values)
    except ValueError:  # a loss of the user, or a level that the posterior does not know
        return scores
    scores["held_out_log_density"] = float(np.mean(log_densities))
    return scores
