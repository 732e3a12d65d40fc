"""A posterior in a few lines of text, or as HTML for a notebook."""

from __future__ import annotations

from collections import Counter

import numpy as np

from nmd_lab._html import facts_table, frame
from nmd_lab.model.monotone import Monotone
from nmd_lab.result.column_words import columns_in_words
from nmd_lab.result.flags import STOPPED
from nmd_lab.result.headline import headline

from .diagnostics import LARGEST_RHAT, PosteriorDiagnostics
from .draws import CHAIN, DRAW
from .thumbnails import few_draws, thumbnails

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

WHOSE = {"columns": "in the units of the columns", "rows": "by row"}
"""Whose noise levels there are, in words."""


class PosteriorSummary(PosteriorDiagnostics):
    """The representations of a posterior."""

    def _repr_html_(self) -> str:
        """Return the HTML summary that notebooks show."""
        facts = {name: text for name, text in self._facts.items() if text}
        return frame(
            [f"nmd_lab.Posterior: {self._formula}"],
            self._headline,
            thumbnails=thumbnails(self),
            flags=self._flags,
            details={"Details": facts_table(facts), "Parameters": facts_table(self.parameters)},
        )

    def __repr__(self) -> str:
        """Return a summary of a few lines."""
        facts = "".join(f"\n  {name}: {text}" for name, text in self._facts.items() if text)
        return f"<nmd_lab.Posterior>  {self._formula}{facts}"

    @property
    def _headline(self) -> dict[str, str]:
        """The size of the noise where X is seen, or how likely the model makes an entry there."""
        if self.noise_by == "one" and self.noise != "ordinal":
            sd = float((1 / np.sqrt(self.draws["rho"])).mean())
            return headline(sd, "standard deviation of the noise, nothing is held out", {})
        of_entry = self.trace["log_likelihood"].mean() / self.parameters.get("n_observed", np.nan)
        return headline(float(of_entry), "log-likelihood of an entry, nothing is held out", {})

    @property
    def _flags(self) -> list[str]:
        """A sentence for each thing that should worry."""
        flags = [STOPPED[code]] if (code := self.stop_reason.code) in STOPPED else []
        if np.isnan(float(self.rhat["log_likelihood"])):
            return [*flags, "Too few sweeps to judge the chains."]
        if not self.converged:
            agree = float(self.rhat["log_likelihood"]) < LARGEST_RHAT
            words = f"predictions have {self._settled}" if agree else self._convergence
            flags.append(f"The chains have not settled: {words}.")
        elif (ess := float(self.ess["log_likelihood"])) < FEW_INDEPENDENT:
            flags.append(
                f"The draws are worth only {ess:.0f} independent ones: intervals are rough."
            )
        return flags

    @property
    def _formula(self) -> str:
        """The model in one line."""
        if self.kinds is not None:
            counts = Counter(NOISES[noise] for noise in self._noises)
            return "X ≈ f(W H), columns with " + ", ".join(
                f"{words} ({count})" for words, count in counts.items()
            )
        assert isinstance(self.noise, str)
        loss = f", loss {self.loss.name}" if self.noise == "after" else ""
        return f"X ≈ {self.nonlinearity}(W H), {NOISES[self.noise]}{loss}"

    @property
    def _noises(self) -> tuple[str, ...]:
        """Where the noise of each kind is; "monotone" before an f that is learned."""
        if self.kinds is None:
            assert isinstance(self.noise, str)
            return (self.noise,)
        pairs = zip(self.noise, self.kinds.kinds, strict=True)
        return tuple(
            "monotone" if noise == "before" and isinstance(kind.nonlinearity, Monotone) else noise
            for noise, kind in pairs
        )

    @property
    def _facts(self) -> dict[str, str]:
        """Names and texts of what to know first."""
        sizes = {
            name: ", ".join(
                f"{dim}: {size}"
                for dim, size in self.draws[name].sizes.items()
                if dim not in (CHAIN, DRAW)
            )
            for name in ("W", "H")
        }
        chains = self.draws.sizes[CHAIN]
        dtype = self.draws["W"].dtype
        some = few_draws(self, self.n_draws)
        rank = f"{float(some.effective_rank.mean()):.1f} of {self.rank}"
        noise = 1 / np.sqrt(self.draws["rho"].values)
        size = f"{noise.mean():.3g} ± {noise.std():.1g}"
        if self.noise_by != "one":
            each, whose = noise.mean(axis=(0, 1)), WHOSE[self.noise_by]
            size = f"{each.min():.3g} to {each.max():.3g}, {whose}"
        return {
            "columns": columns_in_words(self.labels, self.kinds),
            "draws": f"{self.n_draws} in {chains} chain{'s' if chains > 1 else ''}",
            **{name: f"({text}) {dtype}" for name, text in sizes.items()},
            "effective rank": rank,
            "noise 1/√ρ": size,
            "predictions": self._settled,
            "log-likelihood": self._convergence,
            "ended": str(self.stop_reason),
        }

    @property
    def _convergence(self) -> str:
        """Split R-hat and effective sample size of the log-likelihood, in words."""
        rhat, ess = (float(table["log_likelihood"]) for table in (self.rhat, self.ess))
        if np.isnan(rhat):
            return "too few sweeps for R-hat"
        return f"split R-hat {rhat:.3f}, effective sample size {ess:.0f}"

    @property
    def _settled(self) -> str:
        """Split R-hat of the predictions of the trace, in words; empty without any."""
        rhat = self.rhat.get("prediction")
        if rhat is None or not rhat.size or bool(rhat.isnull().all()):
            return ""
        return f"split R-hat at most {float(rhat.quantile(0.95)):.3f} for 95 % of {rhat.size}"
