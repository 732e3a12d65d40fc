"""How the options of a fit were chosen: the trials, and the choice in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import many

SELECTION = "selection"
"""Name of the trials and the choice among the parameters of a fit."""

TRIAL = "trial"

TIED = "tied"
"""Whether the error of a trial differs from the lowest one by no more than its spread."""

TEXTS = ("nonlinearity", "loss", "offsets")
VARIABLES = ("nonlinearity", "loss", "rank", "alpha", "offsets", "offset_alpha", "error", "spread",
             "n_iter", "seconds")  # fmt: skip
"""Variables of the table of trials."""

SETTINGS = ("refine", "homotopy", "polish", "limit_noise")
"""Settings of the algorithm that a choice may decide."""


def chosen_arguments(fit: Any) -> dict[str, Any]:
    """Return the arguments that repeat a fit without a choice; see `Decomposition.chosen`."""
    from nmd_lab.request.settings import ADMM

    names, usual = ["rank", "alpha", "offsets", "offset_alpha"], vars(ADMM())
    if fit.parameters["init"] == "path":
        names += ["init", "max_iter", "tol"]
    found = {name: fit.parameters[name] for name in names}
    if not fit._model.is_mixed:
        found |= {"nonlinearity": fit.nonlinearity, "loss": fit.loss}
    elif all(k.nonlinearity.linear and k.loss.squares for k in fit._model.column_models):
        found["loss"] = {}  # each column of numbers in units of its own
    settings = {name: fit.parameters.get(name, usual[name]) for name in SETTINGS}
    if any(settings[name] != usual[name] for name in SETTINGS):
        found["solver"] = ADMM(**settings)
    return found


def choice_in_words(table: xr.Dataset) -> dict[str, str]:
    """Return the options that were chosen and the held-out error, as text; {} if none were."""
    if not table.sizes[TRIAL]:
        return {}
    tried = f"of {many(table.sizes[TRIAL], 'trial')} in {np.nansum(table['seconds'].values):.2g} s"
    error = f"{float(table['error'][table.attrs['chosen']]):.4g}, {excess_text(table)}"
    error += f", at {many(table.attrs['held_out_entries'], 'entry')}"
    if "offsets_alone" in table.attrs:
        error += f"; offsets alone {as_text(table.attrs['offsets_alone'])}"
    words = {"chosen": f"{', '.join(_chosen(table, 4))}; {tried}", "held-out error": error}
    return words | ({"note": note} if (note := table.attrs.get("note")) else {})


def _chosen(table: xr.Dataset, digits: int) -> list[str]:
    """Return each option that was chosen, with its value."""
    chosen, names = table.isel({TRIAL: table.attrs["chosen"]}), table.attrs["options"].split(", ")
    if "offsets" in chosen and chosen["offsets"].item() in ("none", "global"):
        names = [name for name in names if name != "offset_alpha"]  # it has no effect
    return [
        text if name == "nonlinearity" else f"{name} {text}"  # such as "MinMax(0, 16)"
        for name in names
        if name in chosen and (text := as_text(chosen[name].values, digits))
    ]


def trials_of(parameters: Mapping[str, Any]) -> xr.Dataset:
    """Return the trials among the parameters of a fit as a table; see `Decomposition.selection`."""
    selection = parameters.get(SELECTION) or {"trials": []}
    rows = selection["trials"]
    names = dict.fromkeys([*VARIABLES, *(name for row in rows for name in row)])
    table = xr.Dataset(
        {name: (TRIAL, _column(name, [row.get(name) for row in rows])) for name in names},
        coords={TRIAL: np.arange(len(rows))},
    )
    if not rows:
        return table
    if selection["chosen"] not in range(len(rows)):
        raise ValueError(f"chosen={selection['chosen']!r} is no trial: there are {len(rows)}.")
    table = table.assign_attrs(_attributes(selection), chosen=int(selection["chosen"]))
    table[TIED] = (TRIAL, _is_tied(table))
    return table.assign_attrs(sentence=sentence_of(table))


def _is_tied(table: xr.Dataset) -> NDArray[np.bool_]:
    """Return whether the error of each trial exceeds the lowest by at most its spread.

    Root mean squares are compared by their squares, whose difference the spread is exact for.
    """
    errors, spreads = table["error"].values, table["spread"].values
    lowest = np.min(errors, initial=np.inf, where=np.isfinite(errors) & np.isfinite(spreads))
    excess = errors - lowest
    if table.attrs["measure"] == "root mean squared error" and lowest > 0:
        excess = excess * (errors + lowest) / (2 * lowest)
    return np.asarray(excess <= spreads, dtype=bool)


def sentence_of(table: xr.Dataset) -> str:
    """Return what was chosen, by what, and which ranks (or ridges) are as good, in a sentence."""
    chosen, names = table.isel({TRIAL: table.attrs["chosen"]}), table.attrs["options"].split(", ")
    about = [
        f"{text} {as_text(chosen[name].values, 3)}"
        for name, text in (("rank", "rank"), ("alpha", "ridge alpha"))
        if name in names
    ] or _chosen(table, 3)
    tried, error = table.sizes[TRIAL], as_text(chosen["error"].values)
    at = many(table.attrs["held_out_entries"], "held-out entry")
    were = "was" if len(about) < 2 else "were"
    return (
        f"Of {many(tried, 'trial')}, {' and '.join(about)} {were} chosen, with a "
        f"{table.attrs['measure']} of {error} at {at}{_ties(table, names)}."
    )


def _ties(table: xr.Dataset, names: list[str]) -> str:
    """Return which other values of the first option chosen are as good, as far as one can tell."""
    name = next((each for each in ("rank", "alpha") if each in names), None)
    if name is None:
        return ""
    values = table[name].values
    tied = np.unique(values[table[TIED].values & (values != values[table.attrs["chosen"]])])
    if not tied.size:
        return f"; no other {name} that was tried is as good"
    texts = [as_text(each, 3) for each in tied]
    if len(texts) == 1:
        return f"; {name} {texts[0]} is as good, as far as these entries can tell"
    listed = ", ".join(texts[:-1]) + f" and {texts[-1]}"
    if len(texts) > 6:
        listed = f"{texts[0]} to {texts[-1]}"
    return f"; {name}s {listed} are as good, as far as these entries can tell"


def as_text(value: Any, digits: int = 4) -> str:
    """Return an option or a number of a trial as short text; "" for NaN."""
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, float):
        return str(value)
    return "" if np.isnan(value) else f"{value:.{digits}g}"


def excess_text(table: xr.Dataset) -> str:
    """Return by how much the error of the chosen trial exceeds the lowest, as text."""
    errors, chosen = table["error"].values, table.isel({TRIAL: table.attrs["chosen"]})
    error, spread = float(chosen["error"]), float(chosen["spread"])
    excess = error - np.min(errors, initial=np.inf, where=np.isfinite(errors))
    if bool(chosen[TIED]) or not excess > 0:
        return "the lowest or as good"
    return f"{excess:.2g} ± {spread:.2g} above the lowest"


def _column(name: str, values: list[Any]) -> NDArray[Any]:
    """Return the values of a variable; what a trial does not have is "" or NaN."""
    is_text = name not in VARIABLES and any(isinstance(value, str) for value in values)
    if name in TEXTS or is_text:
        return np.array(["" if value is None else str(value) for value in values], dtype=str)
    numbers = np.array([np.nan if value is None else value for value in values], dtype=float)
    is_whole = name in ("rank", "n_iter") and bool(np.all(np.isfinite(numbers)))
    return numbers.astype(np.int64) if is_whole else numbers


def _attributes(selection: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a choice as numbers and text, which a NetCDF file can hold."""
    attributes: dict[str, Any] = {}
    for name, value in selection.items():
        if isinstance(value, dict):
            attributes |= {f"{name}_{key}": item for key, item in value.items()}
        elif name != "trials":
            attributes[name] = ", ".join(value) if isinstance(value, list) else value
    return attributes
