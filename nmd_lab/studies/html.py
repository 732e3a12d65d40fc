"""A study as HTML: the best model, whether others differ from it, and fits that should worry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from nmd_lab._runtime.html import Interval, frame, intervals
from nmd_lab.result.selection import as_text
from nmd_lab.result.summary import headline
from nmd_lab.warnings import NotConvergedWarning

from .summary import IGNORED, choices, rank_test, ranked, trials

MOST = 8
"""Largest number of models that are drawn."""

CONFIDENCE = 0.95
"""Confidence of their intervals."""


def study_html(text: str, results: xr.Dataset | None) -> str:
    """Return the results of a study as HTML, with the text that says what it varies."""
    line = " · ".join(each.strip() for each in text.split("\n"))
    if results is None:
        return frame([line], {"text": "no results yet: call run()"})
    flags = _flags(results)
    try:
        ranking = rank_test(results, None, CONFIDENCE, {})
    except ValueError as error:
        return frame([line], {"text": str(error)}, flags=flags)
    rows = [
        Interval(_label(results, model), *numbers)
        for model, *numbers in ranking[["difference", "low", "high"]].itertuples()
    ]
    name = ranking.attrs["metric"]
    means = dict(zip((row.label for row in rows), ranking["mean"], strict=True))
    (best, lowest), *others = means.items()
    spread = as_text(ranked(results, name).iloc[0].groupby("seed").mean().std(), 2)
    over = ", ".join([*trials(results), "seed"])
    measure = f"{results[name].attrs.get('long_name', 'error')} (mean over {over}): {best}"
    drawn = intervals(rows[:MOST], f"difference to the best, {CONFIDENCE:.0%} intervals")
    return frame(
        [_comparison(rows), line],
        headline(lowest, f"± {spread} {measure}" if spread else measure, dict(others[:1])),
        thumbnails=[drawn] if others else [],
        flags=flags,
    )


def _label(results: xr.Dataset, model: Any) -> str:
    """Return the labels of a model on one line; words need no name."""
    labels = [pair for pair in zip(choices(results), model, strict=False) if pair[1] != IGNORED]
    texts = [label if isinstance(label, str) else f"{dim} {label}" for dim, label in labels]
    return ", ".join(texts) if choices(results) else "one model"


def _comparison(rows: list[Interval]) -> str:
    """Return whether the second best model differs from the best, in a sentence."""
    if len(rows) < 2:
        return ""
    label, difference, low, high = rows[1]
    if np.isnan(low):
        return f"The second is {label}: one seed cannot tell whether it differs."
    verdict = "differs from the best" if low > 0 else "cannot be told from the best"
    between = f"{as_text(low, 2)} to {as_text(high, 2)}, paired by seed"
    return f"The second, {label}, {verdict}: {as_text(difference, 2)} more ({between})."


def _flags(results: xr.Dataset) -> list[str]:
    """Return a sentence for each kind of fits that have no score, or have not converged."""
    names = ["fit", "status", "warnings"]
    fits = pd.DataFrame({name: results[name].values.ravel() for name in names})
    fits = fits.drop_duplicates("fit")
    counts = {
        word: int((fits["status"] == word).sum()) for word in ("failed", "timed out", "left out")
    }
    name = NotConvergedWarning.__name__
    counts["not converged"] = int(fits["warnings"].str.contains(name).sum())
    return [f"{count} of {len(fits)} fits: {word}." for word, count in counts.items() if count]
