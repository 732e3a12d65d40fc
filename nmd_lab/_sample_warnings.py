"""The warnings of `sample`: columns in different units, chains that have not settled."""

from __future__ import annotations

import warnings

from .data.units_apart import sentence_of_units
from .model.losses import Frobenius
from .result.posterior import Posterior
from .solver.sampler.prepare import PreparedSample
from .warnings import NotConvergedWarning, UnitsWarning

RHAT = 1.2  # split R-hat of a prediction from which it has not converged
SHARE = 0.1  # share of such predictions above which there is a warning
FEWEST = 8  # sweeps below which split R-hat says nothing


REMEDY = "raise tune= and draws=, or go on with init=posterior"


def unsettled(posterior: Posterior) -> float:
    """Return the share of predictions that have not settled."""
    return float((posterior.rhat["prediction"] > RHAT).mean())


def sentence_of_chains(posterior: Posterior) -> str:
    """Return a sentence that says that the predictions have not settled; empty if they have."""
    sweeps = posterior.trace.sizes["sweep"]
    if sweeps < FEWEST:
        return f"the chains have {sweeps} sweeps after tuning, too few to judge them: {REMEDY}."
    share = unsettled(posterior)
    if share <= SHARE:
        return ""
    return (
        f"the chains have not settled: split R-hat is above {RHAT} for {share:.0%} of "
        f"the predictions, and {float(posterior.rhat['log_likelihood']):.2f} for the "
        f"log-likelihood: {REMEDY}."
    )


def warn_of_units(prepared: PreparedSample, stacklevel: int) -> None:
    """Warn if the columns are in different units."""
    kind = prepared.model.single
    if kind is None or type(kind.loss) is not Frobenius:
        return
    text = sentence_of_units(
        prepared.observations, "divide the columns by their standard deviations"
    )
    if text:
        warnings.warn(text, UnitsWarning, stacklevel=stacklevel + 1)


def warn_of_chains(posterior: Posterior, stacklevel: int) -> None:
    """Warn if the predictions of the chains have not settled."""
    text = sentence_of_chains(posterior)
    if text:
        warnings.warn(text, NotConvergedWarning, stacklevel=stacklevel + 1)
