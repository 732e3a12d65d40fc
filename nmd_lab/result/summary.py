"""A fit or a posterior in a few lines, or as HTML: its one number, and its flags."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab._runtime.html import curve, facts_table, frame, picture, table
from nmd_lab.data.labels import COMPONENT

from .column_words import columns_in_words
from .convergence import LARGEST_RHAT, PosteriorDiagnostics
from .draws import CHAIN, DRAW
from .selection import TRIAL, VARIABLES, Selections, as_text, best_trials, in_short
from .thumbnails import few_draws, small_picture, thumbnails

DECREASE = 1e-3  # fall of the objective in the last tenth of the run from which it is unfinished
OVERFIT = 0.25  # ratio of the errors where seen and held out below which a fit knows X by heart

STOPPED = {
    "time_limit": "Stopped by the time limit before it was done.",
    "interrupted": "Interrupted before it was done.",
    "not finite": "Stopped at numbers that are not finite.",
}
"""Sentences by the code of a stop reason."""


def unfinished(fit: Selections) -> float:
    """Return by which share the last tenth of the iterations lowered the objective, or 0.

    It is 0 for a small share, and where so many iterations were wanted.
    """
    if fit.parameters.get("tol", 0) == 0 or fit.stop_reason.code != "max_iter":
        return 0.0
    lowest = np.minimum.accumulate(fit.history["objective"].values)
    before, after = lowest[-1 - max(1, lowest.size // 10) :][0], lowest[-1]
    return float((before - after) / abs(before)) if before - after > DECREASE * abs(after) else 0.0


def flags_of(fit: Selections) -> list[str]:
    """Return a sentence for each thing that should worry about a fit."""
    flags = [STOPPED[code]] if (code := fit.stop_reason.code) in STOPPED else []
    if share := unfinished(fit):
        flags.append(f"Not converged: the last tenth of the iterations lowered it by {share:.1%}.")
    trials = fit.selection
    if not trials.sizes[TRIAL]:
        return flags
    about, error = trials.attrs, float(trials["error"].values[trials.attrs["chosen"]])
    alone, seen = about.get("offsets_alone"), about.get("error_where_seen")
    if "stopped" in about.get("reason", ""):
        flags.append("The search was stopped: another choice may be better.")
    if alone is not None and error >= alone:
        flags.append(f"Offsets alone are as good ({as_text(alone, 2)}): the components say little.")
    if seen is not None and seen < OVERFIT * error:
        flags.append(f"Overfits: {as_text(seen, 2)} off where seen, {as_text(error, 2)} held out.")
    notes = re.split(r"(?<=\.) (?=[A-Z])", about.get("note", ""))
    return flags + [note for note in notes if note]


WORSE = 1.02
"""Ratio to the error of a rival from which a model is said to be worse."""


def headline(error: float, where: str, rivals: Mapping[str, float]) -> dict[str, Any]:
    """Return an error in the unit of the data, where it was measured, and those of rivals.

    >>> headline(0.15, "off where hidden", {"linear": 0.16})["rivals"]
    '· linear 0.16'
    """
    return {
        "value": _two_digits(error),
        "text": where,
        "rivals": " ".join(f"· {name} {_two_digits(each)}" for name, each in rivals.items()),
        "worse": any(error > WORSE * each for each in rivals.values()),
    }


def _two_digits(error: float) -> str:
    """Return an error with two digits, from 1 on behind the point."""
    return as_text(error, 2 + (error >= 1))


def headline_of(fit: Selections, rivals: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Return the held-out error that a fit knows of; if there is none, that where it has seen X."""
    trials, off = fit.selection, f"{fit.labels.attrs.get('units', '')} off at".strip()
    if (validation := validation_error(fit)) is not None:
        return headline(validation, f"{off} held-out entries", rivals or {})
    if not trials.sizes[TRIAL]:
        where = "relative error where seen, nothing is held out"
        return headline(fit._returned("relative_error"), where, {})
    error = float(trials["error"].values[trials.attrs["chosen"]])
    where = f"{off} {trials.attrs['held_out_entries']} held-out entries"
    measure = str(trials.attrs.get("measure", ""))
    rooted = measure.startswith("root mean squared")
    alone = trials.attrs.get("offsets_alone")
    beside = {} if alone is None else {"offsets alone": alone}
    return headline(error, where if rooted else f"{measure}, held out", beside)


def validation_error(fit: Selections) -> float | None:
    """Return the error of a fit at the entries that stopped it early; None without any."""
    return fit._returned("validation_rmse") if "validation_rmse" in fit.history else None


BEST = 8  # trials in the table of the best

ALWAYS = ("rank", "alpha", "error", "spread")
"""Columns of the table of trials; others are left out if they are the same in all trials."""

DIGITS = {"spread": 2, "seconds": 2}
"""Numbers of digits in the table of trials, where they are not 4."""


def fit_html(fit: Selections, facts: Mapping[str, Any]) -> str:
    """Return a fit as HTML, with facts for its details."""
    trials = fit.selection
    size = f"{fit.rank} component{'s' if fit.rank != 1 else ''}"
    model = small_picture(
        fit.shape[0],
        fit.H.isel({COMPONENT: 0}, drop=True),
        fit.fitted.block,
        by_column=fit.kinds is not None,
    )
    name = f"nmd_lab.Decomposition: X ≈ {fit.nonlinearity}(W H), {size}"
    return frame(
        [name, trials.attrs.get("sentence", "")],
        headline_of(fit),
        thumbnails=[picture(model, "model"), _errors_by_rank(trials)],
        flags=flags_of(fit),
        details={
            "Details": facts_table(facts),
            f"Trials: the best of {trials.sizes[TRIAL]}": _best_trials(trials),
            "Parameters": facts_table(in_short(fit.parameters)),
        },
    )


def _errors_by_rank(trials: xr.Dataset) -> str:
    """Return the lowest held-out error of each rank as a small curve; "" for one rank."""
    if not trials.sizes[TRIAL]:
        return ""
    chosen = trials.isel({TRIAL: trials.attrs["chosen"]})
    same_loss = trials["loss"].values == chosen["loss"].item()
    comparable = same_loss & np.isfinite(trials["error"].values)
    errors = trials[["rank", "error"]].isel({TRIAL: comparable}).to_dataframe()
    lowest = errors.groupby("rank")["error"].min()
    ranks, rank = lowest.index.to_numpy(), int(chosen["rank"])
    if ranks.size < 2:
        return ""
    ends = f"{lowest.max():.3g} → {lowest.min():.3g}"
    caption = f"held-out error {ends}, rank {ranks[0]} to {ranks[-1]}, ring at {rank}"
    return curve(np.log(ranks), lowest.to_numpy(), math.log(rank), caption)


def _best_trials(trials: xr.Dataset) -> str:
    """Return the best trials as a table, and the reason of the choice; "" without trials."""
    if not trials.sizes[TRIAL]:
        return ""
    names = [name for name in VARIABLES if name in ALWAYS or len(np.unique(trials[name])) > 1]
    best, chosen = best_trials(trials, BEST), trials.attrs["chosen"]
    rows = []
    for position in range(best.sizes[TRIAL]):
        row = best.isel({TRIAL: position})
        texts = [as_text(row[name].values, DIGITS.get(name, 4)) for name in names]
        rows.append([*texts, "chosen" if int(row[TRIAL]) == chosen else ""])
    return table([*names, ""], rows) + facts_table(_notes(trials.attrs))


def _notes(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what the numbers of the trials are, and the reason of the choice."""
    held_out = f"{about.get('held_out_entries', 'the')} held-out entries"
    if (parts := about.get("held_out_parts", 1)) != 1:
        held_out += f" in {parts} parts"
    if drawn := about.get("held_out_drawn"):
        held_out += f" ({drawn})"
    notes = {
        "error": f"{about.get('measure', 'error')} of {held_out}",
        "spread": "standard error of the difference to the lowest error",
    }
    return notes | ({"chosen": about["reason"]} if "reason" in about else {})


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
        if self.kinds is None and self.noise != "ordinal":
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
            "monotone" if noise == "before" and kind.nonlinearity.form == "monotone" else noise
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
        some = few_draws(self, self.fitted.n_draws)
        rank = f"{float(some.effective_rank.mean()):.1f} of {self.rank}"
        noise = 1 / np.sqrt(self.draws["rho"].values)
        size = f"{noise.mean():.3g} ± {noise.std():.1g}"
        if self.kinds is not None:
            each = noise.mean(axis=(0, 1))
            size = f"{each.min():.3g} to {each.max():.3g}, in the units of the columns"
        return {
            "columns": columns_in_words(self.labels, self.kinds),
            "draws": f"{self.fitted.n_draws} in {chains} chain{'s' if chains > 1 else ''}",
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
