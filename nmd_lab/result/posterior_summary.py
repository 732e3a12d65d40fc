"""A posterior in short: the model and the noise in words, convergence, and reasons to doubt it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab._runtime.html import Summary, facts_table, picture
from nmd_lab.data.labels import COMPONENT

from .convergence import LARGEST_RHAT
from .draws import CHAIN, DRAW
from .mixture import Array, Predictive
from .predictive import mean_of, std_of
from .summary import STOPPED, headline, sizes_in_words
from .summary_parts import columns_in_words, small_picture

FEW_INDEPENDENT = 50
"""Effective sample size below which intervals are rough."""

NOISES = {
    "gaussian": "Gaussian noise",
    "clipped": "Gaussian noise within ends",
    "before": "noise before f",
    "monotone": "a learned monotone f",
    "after": "noise after f",
    "ordinal": "ordinal levels",
}
"""The kinds of noise in words."""


def posterior_lines(posterior: Any) -> list[str]:
    """Return the model of a posterior, and lines of details."""
    facts = posterior_facts(posterior)
    return [_formula(posterior), *(f"{name}: {text}" for name, text in facts.items())]


def posterior_summary(posterior: Any) -> Summary:
    """Return a posterior in short."""
    return Summary(
        _headline(posterior),
        [f"nmd_lab.Posterior: {_formula(posterior)}"],
        thumbnails(posterior),
        _flags(posterior),
        {
            "Details": facts_table(posterior_facts(posterior)),
            "Parameters": facts_table(posterior.parameters),
        },
    )


def _headline(posterior: Any) -> dict[str, str]:
    """Return the size of the noise, or how likely the model makes an observed entry."""
    if posterior._kinds is None and posterior.noise != "ordinal":
        sd = float((1 / np.sqrt(posterior.draws["rho"])).mean())
        return headline(sd, "standard deviation of the noise, nothing is held out", {})
    n_observed = posterior.parameters.get("n_observed", np.nan)
    of_entry = posterior.trace["log_likelihood"].mean() / n_observed
    return headline(float(of_entry), "log-likelihood of an entry, nothing is held out", {})


def _flags(posterior: Any) -> list[str]:
    """Return a sentence for each reason to doubt the posterior."""
    flags = [STOPPED[code]] if (code := posterior.stop_reason.code) in STOPPED else []
    rhat = posterior.rhat
    of_likelihood, ess = (float(each["log_likelihood"]) for each in (rhat, posterior.ess))
    if np.isnan(of_likelihood):
        return [*flags, "Too few sweeps to judge the chains."]
    if not posterior.converged:
        agree = of_likelihood < LARGEST_RHAT
        words = f"predictions have {_settled(rhat)}" if agree else _convergence(of_likelihood, ess)
        flags.append(f"The chains have not settled: {words}.")
    elif ess < FEW_INDEPENDENT:
        flags.append(f"The draws are worth only {ess:.0f} independent ones: intervals are rough.")
    return flags


def _formula(posterior: Any) -> str:
    """Return the model in one line."""
    if posterior._kinds is not None:
        counts = Counter(NOISES[noise] for noise in noises_of(posterior))
        return "X ≈ f(W H), columns with " + ", ".join(
            f"{words} ({count})" for words, count in counts.items()
        )
    assert isinstance(posterior.noise, str)
    loss = f", loss {posterior.loss.name}" if posterior.noise == "after" else ""
    return f"X ≈ {posterior.nonlinearity}(W H), {NOISES[posterior.noise]}{loss}"


def noises_of(posterior: Any) -> tuple[str, ...]:
    """Return the place of the noise of each kind; "monotone" is before an f that is learned."""
    if posterior._kinds is None:
        assert isinstance(posterior.noise, str)
        return (posterior.noise,)
    pairs = zip(posterior.noise, posterior._kinds.kinds, strict=True)
    return tuple(
        "monotone" if noise == "before" and kind.nonlinearity.form == "monotone" else noise
        for noise, kind in pairs
    )


def posterior_facts(posterior: Any) -> dict[str, str]:
    """Return names and texts of the details."""
    sizes = {
        name: sizes_in_words(posterior.draws[name].sizes, (CHAIN, DRAW)) for name in ("W", "H")
    }
    rhat, chains = posterior.rhat, posterior.draws.sizes[CHAIN]
    of_likelihood, ess = (float(each["log_likelihood"]) for each in (rhat, posterior.ess))
    dtype = posterior.draws["W"].dtype
    some = few_draws(posterior, posterior._n_draws)
    rank = f"{float(some.singular_values.effective_rank.mean()):.1f} of {posterior.rank}"
    noise = 1 / np.sqrt(posterior.draws["rho"].values)
    size = f"{noise.mean():.3g} ± {noise.std():.1g}"
    if posterior._kinds is not None:
        each = noise.mean(axis=(0, 1))
        size = f"{each.min():.3g} to {each.max():.3g}, in the units of the columns"
    facts = {
        "columns": columns_in_words(posterior._labels, posterior._kinds),
        "draws": f"{posterior._n_draws} in {chains} chain{'s' if chains > 1 else ''}",
        **{name: f"({text}) {dtype}" for name, text in sizes.items()},
        "effective rank": rank,
        "noise 1/√ρ": size,
        "predictions": _settled(rhat),
        "log-likelihood": _convergence(of_likelihood, ess),
        "ended": str(posterior.stop_reason),
    }
    return {name: text for name, text in facts.items() if text}


def _convergence(rhat: float, ess: float) -> str:
    """Return split R-hat and effective sample size of the log-likelihood, in words."""
    if np.isnan(rhat):
        return "too few sweeps for R-hat"
    return f"split R-hat {rhat:.3f}, effective sample size {ess:.0f}"


def _settled(rhat: xr.Dataset) -> str:
    """Return split R-hat of the predictions of the trace, in words; empty without any."""
    of_probes = rhat.get("prediction")
    if of_probes is None or not of_probes.size or bool(of_probes.isnull().all()):
        return ""
    largest = float(of_probes.quantile(0.95))
    return f"split R-hat at most {largest:.3f} for 95 % of {of_probes.size}"


FEW_DRAWS = 24
"""Draws of which the pictures are made."""

NUMBERS, FEWEST = 1 << 21, 6
"""Numbers of W and H in the draws that a representation reads, and least number of draws."""


def few_draws(posterior: Any, most: int) -> Any:
    """Return a posterior of about so many of the draws, evenly spaced; of fewer large ones."""
    sizes = posterior.draws.sizes
    most = min(most, max(NUMBERS // (sum(posterior._shape) * posterior.rank), FEWEST))
    step = -(-sizes[DRAW] // max(most // sizes[CHAIN], 1))
    draws = posterior.draws.isel({CHAIN: slice(most), DRAW: slice(None, None, step)})
    return replace(posterior, draws=draws)


def thumbnails(posterior: Any) -> list[str]:
    """Return pictures of the mean and the standard deviation of f(WH), from some of the draws."""
    few = few_draws(posterior, FEW_DRAWS)

    def drawn(name: str, summary: Callable[[Predictive, Array], Array]) -> str:
        columns = few.draws["H"].isel({CHAIN: 0, DRAW: 0, COMPONENT: 0}, drop=True)
        each = few._kinds is not None
        return picture(
            small_picture(
                few._shape[0], columns, lambda i, j: few._block(i, j, summary), by_column=each
            ),
            name,
        )

    return [
        drawn("mean", mean_of),
        drawn("standard deviation", lambda p, v: std_of(p, v, noise=False)),
    ]
