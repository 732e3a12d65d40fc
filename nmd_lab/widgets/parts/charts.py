"""Charts of points that ``front/dots.mjs`` draws: trials of a choice, intervals of a posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.selection import TRIAL, as_text
from nmd_lab.widgets.live.sample import Findings

Chart = dict[str, Any]
Numbers = Sequence[float] | NDArray[Any]


def chart(title: str, x: str, y: str, panels: Sequence[dict[str, Any]], **other: Any) -> Chart:
    """Return a chart of panels side by side."""
    plain = {"color": "", "joined": False, "log": False, "ticks": None, "diagonal": False}
    return plain | other | {"title": title, "x": x, "y": y, "panels": list(panels)}


def series(
    label: str,
    x: Numbers,
    y: Numbers,
    names: Sequence[str],
    spread: tuple[Numbers, Numbers] | None = None,
    ids: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return the points of one colour."""
    low, high = (None, None) if spread is None else map(_plain, spread)
    return {
        "label": label,
        "x": _plain(x),
        "y": _plain(y),
        "low": low,
        "high": high,
        "ids": None if ids is None else list(ids),
        "names": list(names),
    }


def _plain(numbers: Numbers) -> list[float]:
    return [float(number) for number in numbers]


def trials_charts(fit: Decomposition | None) -> dict[str, Chart]:
    """Return the held-out errors of the trials of a choice, by rank and by alpha; none without."""
    trials = None if fit is None else fit.selection
    if trials is None or not trials.sizes[TRIAL]:
        return {}
    finite = trials.isel({TRIAL: np.flatnonzero(np.isfinite(trials["error"].values))})
    if not finite.sizes[TRIAL]:
        return {}
    measure = f"held-out {finite.attrs.get('measure', 'error')}"
    found = {}
    if np.unique(finite["rank"].values).size > 1:
        found["ranks"] = _by_rank(finite, measure)
    if np.unique(finite["alpha"].values).size > 1:
        found["alphas"] = _by_alpha(finite, measure)
    return found


def _by_rank(trials: Any, measure: str) -> Chart:
    """Return the lowest error of each rank, with its spread, for each nonlinearity and loss."""
    lines = []
    for model in _models(trials):
        ordered = model.isel({TRIAL: np.argsort(model["error"].values, kind="stable")})
        best = ordered.isel({TRIAL: np.unique(ordered["rank"].values, return_index=True)[1]})
        errors, spread = best["error"].values, np.nan_to_num(best["spread"].values)
        names = [_trial_name(best.isel({TRIAL: k})) for k in range(errors.size)]
        ends = errors - spread, errors + spread
        lines.append(series(_model_name(best), best["rank"].values, errors, names, ends))
    panels = [{"title": "", "series": lines}]
    return chart("lowest error of each rank", "rank", measure, panels, joined=True, color="model")


def _by_alpha(trials: Any, measure: str) -> Chart:
    """Return the error of each trial against alpha, on a logarithmic axis, by rank."""
    alphas = trials["alpha"].values
    tried = np.unique(alphas)
    positive = tried[tried > 0]
    zero = np.log10(positive[0]) - 1 if positive.size else 0.0
    place = np.where(alphas > 0, np.log10(np.where(alphas > 0, alphas, 1.0)), zero)
    lines = []
    for rank in np.unique(trials["rank"].values).tolist():
        which = np.flatnonzero(trials["rank"].values == rank)
        which = which[np.argsort(place[which], kind="stable")]
        names = [_trial_name(trials.isel({TRIAL: k})) for k in which]
        lines.append(series(f"rank {rank}", place[which], trials["error"].values[which], names))
    shown = tried[np.unique(np.linspace(0, tried.size - 1, min(6, tried.size)).astype(int))]
    ticks = [[float(np.log10(a)) if a > 0 else float(zero), as_text(a, 2)] for a in shown]
    panels = [{"title": "", "series": lines}]
    return chart("all trials by alpha", "alpha", measure, panels, ticks=ticks, color="rank")


def _models(trials: Any) -> list[Any]:
    """Return the trials of each pair of a nonlinearity and a loss."""
    pairs = zip(trials["nonlinearity"].values, trials["loss"].values, strict=True)
    names = np.array([f"{f}, {loss}" for f, loss in pairs])
    return [trials.isel({TRIAL: np.flatnonzero(names == name)}) for name in dict.fromkeys(names)]


def _model_name(trials: Any) -> str:
    return f"{trials['nonlinearity'].values[0]}, {trials['loss'].values[0]}"


def _trial_name(trial: Any) -> str:
    f, rank, alpha = (trial[name].item() for name in ("nonlinearity", "rank", "alpha"))
    return f"{f}, rank {rank}, alpha {as_text(alpha)}"


def intervals_chart(found: Findings) -> Chart:
    """Return predicted against observed values, with the intervals of a posterior.

    Columns of a table, which have units of their own, are shown in their standard deviations.
    """
    rows, columns, x = found.entries.entries()
    names = [f"row {i}, column {j}" for i, j in zip(rows.tolist(), columns.tolist(), strict=True)]
    centre, size, unit = np.zeros(x.shape), np.ones(x.shape), ""
    if found.entries.labels.table is not None:
        counts = np.maximum(np.bincount(columns), 1)
        means = np.bincount(columns, x) / counts
        spreads = np.sqrt(np.bincount(columns, (x - means[columns]) ** 2) / counts)
        centre, size = means[columns], np.where(spreads > 0, spreads, 1)[columns]
        unit = ", in deviations of the column"
    x, mean, low, high = ((each - centre) / size for each in (x, found.mean, found.low, found.high))
    panels = [{"title": "", "series": [series("", x, mean, names, (low, high))]}]
    return chart(found.summary, f"observed{unit}", "predicted", panels, diagonal=True)
