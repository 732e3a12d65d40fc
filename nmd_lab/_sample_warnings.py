"""The warning of chains that have not settled."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from .result.posterior.posterior import Posterior
from .warnings import NotConvergedWarning


@dataclass(frozen=True)
class ConvergenceOptions:
    """Limits of the warning.

    Attributes
    ----------
    rhat : float
        Split R-hat of a prediction from which it has not converged.
    share : float
        Share of such predictions above which there is a warning.
    fewest : int
        Number of sweeps below which split R-hat says nothing.
    """

    rhat: float = 1.2
    share: float = 0.1
    fewest: int = 8


CONVERGENCE = ConvergenceOptions()


def warn_of_chains(posterior: Posterior, stacklevel: int) -> None:
    """Warn if the predictions of the chains have not settled.

    Parameters
    ----------
    posterior : Posterior
        Result.
    stacklevel : int
        Number of calls between the user's line and this function.
    """
    sweeps = posterior.trace.sizes["sweep"]
    remedy = "raise tune= and draws=, or go on with init=posterior"
    if sweeps < CONVERGENCE.fewest:
        text = f"the chains have {sweeps} sweeps after tuning, too few to judge them: {remedy}."
    else:
        rhat = posterior.rhat
        share = float((rhat["prediction"] > CONVERGENCE.rhat).mean())
        if share <= CONVERGENCE.share:
            return
        text = (
            f"the chains have not settled: split R-hat is above {CONVERGENCE.rhat} for "
            f"{share:.0%} of the predictions, and {float(rhat['log_likelihood']):.2f} for the "
            f"log-likelihood: {remedy}."
        )
    warnings.warn(text, NotConvergedWarning, stacklevel=stacklevel + 1)
