"""A fit or a posterior in short, as text or as HTML: its one number, and diagnostics."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import evenly, many
from nmd_lab._runtime.html import Summary, curve, facts_table, picture, table
from nmd_lab.data.labels import COMPONENT, Labels, Picture, picture_of
from nmd_lab.data.typed_table import plain_label
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearity import Nonlinearity

from .convergence import MAX_RHAT, effective_rank, singular_values
from .draws import CHAIN, DRAW, Draws
from .entries import Entries, entries_at
from .predict import means, stds
from .selection import SELECTION, TRIAL, VARIABLES, as_text, choice_in_words

STOPPED = {
    "time_limit": "Stopped by the time limit before it was done.",
    "interrupted": "Interrupted before it was done.",
    "not finite": "Stopped at numbers that are not finite.",
}
"""Sentences by the code of a stop reason."""


def headline(error: float, where: str, rivals: Mapping[str, float]) -> dict[str, Any]:
    """Return an error in the unit of the data, where it was measured, and those of rivals.

    >>> headline(0.15, "RMSE at held-out entries", {"linear": 0.16})["rivals"]
    '· linear 0.16'
    """
    return {
        "value": two_digits(error),
        "text": where,
        "rivals": " ".join(f"· {name} {two_digits(each)}" for name, each in rivals.items()),
    }


def two_digits(error: float) -> str:
    """Return an error with two digits, from 1 on behind the point.

    >>> two_digits(0.2), two_digits(1.234), two_digits(45.0), two_digits(float("nan"))
    ('0.20', '1.23', '45.0', '–')
    """
    return "–" if math.isnan(error) else f"{error:#.{2 + (error >= 1)}g}".rstrip(".")


def sizes_in_words(sizes: Mapping[Any, int], besides: tuple[str, ...] = ()) -> str:
    """Return dimensions and their sizes, as text."""
    return ", ".join(f"{dim}: {size}" for dim, size in sizes.items() if dim not in besides)


ONE = {
    "number": "numeric",
    "date": "date",
    "values": "numeric",
    "ordered": "ordinal",
    "boolean": "binary",
    "categories": "categorical",
}
"""Kinds of a column in words."""

OF_LOSS = {"": "number", "two": "boolean", "ordered": "ordered"}
"""Kinds of a column by the classes of its loss."""


class ColumnWords(NamedTuple):
    """What a column of a table was taken for.

    Attributes
    ----------
    name : object
        Label.
    kind : str
        Kind, by its word in `ONE`.
    ends : str
        Ends of its predictions, such as "from 0"; empty without any.
    first : int
        Position of its first column of the matrix.
    """

    name: Any
    kind: str
    ends: str
    first: int


def kinds_of_columns(labels: Labels, model: Model) -> list[ColumnWords]:
    """Return what each column of a table was taken for."""
    kinds, table = model.of_columns, labels.table
    if table is not None:
        places = zip(table.columns, table.first_columns.tolist(), strict=True)
        named = [(column.name, column.kind, j) for column, j in places]
    else:
        names = labels.flat(labels.columns).tolist()
        words: list[Any] = [OF_LOSS[kind.loss.classes] for kind in kinds] or ["number"] * len(names)
        named = list(zip(names, words, range(len(names)), strict=True))
    return [
        ColumnWords(name, word, _ends(kinds[j].nonlinearity) if kinds else "", j)
        for name, word, j in named
    ]


def columns_in_words(labels: Labels, model: Model) -> str:
    """Return the columns of each kind in one line; empty if all entries are of one kind.

    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).frame.astype({"target": "category"})
    >>> fit = nmd.complete(wine[["ash", "hue", "target"]], 1, alpha=0.1, random_state=0)
    >>> columns_in_words(fit._labels, fit._model)
    "2 numeric ('ash', 'hue'), 1 categorical ('target')"
    """
    if not model.of_columns:
        return ""
    found: dict[str, list[str]] = {}
    for name, kind, ends, _ in kinds_of_columns(labels, model):
        found.setdefault(ONE[kind], []).append(f"{plain_label(name)!r} {ends}".strip())
    said = []
    for words, names in found.items():
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        said.append(f"{len(names)} {words} ({shown})")
    return ", ".join(said)


def _ends(f: Nonlinearity) -> str:
    """Return the ends of the predictions of a column in words; empty if it has none."""
    pieces = f.pieces() if f.name == "monotone" else None
    if pieces and pieces[0].slope > 0 and f.settings[1][:1] == (0.0,):
        return "above 0"
    if f.name != "minmax":
        return ""
    low, high = f.parameters
    if low == high:
        return f"always {low:g}"
    ends = [f"from {low:g}"] if math.isfinite(low) else []
    return " ".join([*ends, f"to {high:g}"] if math.isfinite(high) else ends)


HEIGHT, WIDTH = 80, 120  # largest size of the picture, in pixels
SMALL, MANY, FEW = 16, (8, 24), (3, 3)  # width of small pictures; how many across, and in all

Array = NDArray[Any]
Positions = NDArray[np.intp]
Block = Callable[[Positions, Positions], Array]
"""Function of rows and columns that returns entries of the model at their crossings."""


def small_picture(m: int, columns: xr.DataArray, block: Block, *, by_column: bool = False) -> Array:
    """Return some rows as pictures, side by side, or else some entries of the matrix.

    `columns` is an array with the labels of the columns, and m the number of rows.  If `by_column`,
    each column has grey levels of its own.
    """
    n, dims = columns.size, columns.dims
    channels = columns.shape[1] if len(dims) == 2 and "channel" in str(dims[1]) else 1  # of colour
    picture = picture_of(columns, None) if channels == 1 else None
    if picture is not None:
        return _of_rows(m, picture, block)
    rows, pixels = evenly(m, 2 * HEIGHT), evenly(n // channels, 2 * WIDTH)
    at = (pixels[:, None] * channels + np.arange(channels)).ravel()
    values = block(rows, at).reshape(rows.size, pixels.size, channels).mean(axis=2)
    if by_column:
        low = values.min(axis=0)
        values = (values - low) / np.maximum(values.max(axis=0) - low, np.finfo(float).tiny)
    return _means(values, -(-rows.size // HEIGHT), -(-pixels.size // WIDTH))


def _of_rows(m: int, picture: Picture, block: Block) -> Array:
    """Return some rows as pictures, side by side, with gaps of NaN."""
    across, most = MANY if picture.shape[1] <= SMALL else FEW
    rows = evenly(m, most)
    across = min(across, rows.size)
    tiles = np.stack([picture(row) for row in block(rows, np.arange(picture.positions.size))])
    canvas = mosaic(tiles[..., None], across)[:-1, :-1, 0]
    step = math.ceil(max(canvas.shape[0] / HEIGHT, canvas.shape[1] / WIDTH))
    return _means(canvas, step, step)


def mosaic(tiles: Array, across: int) -> Array:
    """Return pictures (count, height, width, channels) as one, with NaN behind each."""
    gaps = (0, -len(tiles) % across), (0, 1), (0, 1), (0, 0)
    lines = np.pad(tiles, gaps, constant_values=np.nan)
    lines = lines.reshape(-1, across, *lines.shape[1:]).swapaxes(1, 2)
    return lines.reshape(-1, across * lines.shape[3], lines.shape[4])


def _means(values: Array, down: int, across: int) -> Array:
    """Return means of blocks, without those at the end that are not whole."""
    blocks = xr.DataArray(values, dims=("y", "x")).coarsen(y=down, x=across, boundary="trim")
    return np.asarray(blocks.mean())


def unfinished(fit: Any) -> float:
    """Return by which fraction the last tenth of the iterations lowered the objective, or 0.

    It is 0 for a small fraction, and where so many iterations were wanted.
    """
    if fit.parameters.get("tol", 0) == 0 or fit.stop_reason.code != "max_iter":
        return 0.0
    lowest = np.minimum.accumulate(fit.history["objective"].values)
    before, after = lowest[-1 - max(1, lowest.size // 10) :][0], lowest[-1]
    return float((before - after) / abs(before)) if before - after > 1e-3 * abs(after) else 0.0


def flags_of(fit: Any) -> list[str]:
    """Return a sentence for each diagnostic of a fit that is not as it should be."""
    flags = [STOPPED[code]] if (code := fit.stop_reason.code) in STOPPED else []
    if share := unfinished(fit):
        flags.append(f"Not converged: the last tenth of the iterations lowered it by {share:.1%}.")
    trials = fit.selection
    if not trials.sizes[TRIAL]:
        return flags
    about, error = trials.attrs, float(trials["error"].values[trials.attrs["chosen"]])
    alone, seen = about.get("offsets_alone"), about.get("error_where_seen")
    if "stopped" in about["reason"]:
        flags.append("The search was stopped: another choice may be better.")
    if alone is not None and error >= alone:
        flags.append(f"Offsets alone are as good ({as_text(alone, 2)}): the components add little.")
    if seen is not None and seen < 0.25 * error:
        flags.append(f"Overfits: {as_text(seen, 2)} off where seen, {as_text(error, 2)} held out.")
    notes = re.split(r"(?<=\.) (?=[A-Z])", about.get("note", ""))
    return flags + [note for note in notes if note]


def headline_of(fit: Any) -> dict[str, Any]:
    """Return the held-out error of a fit; if there is none, its error where it has seen X."""
    trials, rmse = fit.selection, f"{fit._labels.attrs.get('units', '')} RMSE at".strip()
    if (validation := validation_error(fit)) is not None:
        return headline(validation, f"{rmse} held-out entries", {})
    if not trials.sizes[TRIAL]:
        where = "relative error where seen, nothing is held out"
        return headline(fit._returned("relative_error"), where, {})
    error = float(trials["error"].values[trials.attrs["chosen"]])
    where = f"{rmse} {many(trials.attrs['held_out_entries'], 'held-out entry')}"
    measure, alone = trials.attrs["measure"], trials.attrs.get("offsets_alone")
    rooted = measure.startswith("root mean squared")
    rivals = {} if alone is None else {"offsets alone": alone}
    return headline(error, where if rooted else f"{measure}, held out", rivals)


def validation_error(fit: Any) -> float | None:
    """Return the error of a fit at the entries that stopped it early; None without any."""
    return fit._returned("validation_rmse") if "validation_rmse" in fit.history else None


def formula_of(fit: Any) -> str:
    """Return the model of a fit, in words."""
    rank = many(fit.rank, "component")
    return f"X ≈ {fit.nonlinearity}(W H), loss {fit.loss.name}, {rank}"


def summary_of(fit: Any) -> Summary:
    """Return a fit in short."""
    trials = fit.selection
    count = trials.sizes[TRIAL]
    short = {SELECTION: f"{many(count, 'trial')} (fit.selection)"} if count else {}
    columns, by_column = fit.H.isel({COMPONENT: 0}, drop=True), fit._model.is_mixed
    model = small_picture(fit._shape[0], columns, fit._fitted.block, by_column=by_column)
    return Summary(
        headline_of(fit),
        [f"nmd_lab.Decomposition: {formula_of(fit)}", trials.attrs.get("sentence", "")],
        [picture(model, "model"), _errors_by_rank(trials) if count else ""],
        flags_of(fit),
        {
            "Details": facts_table(fit_facts(fit)),
            f"Trials: the best of {count}": _best_trials(trials) if count else "",
            "Parameters": facts_table(fit.parameters | short),
        },
    )


def fit_facts(fit: Any) -> dict[str, str]:
    """Return names and texts of the details of a fit."""
    factors = {"W": fit.W, "H": fit.H}
    sizes = {k: f"({sizes_in_words(each.sizes)}) {each.dtype}" for k, each in factors.items()}
    choice, seconds = choice_in_words(fit.selection), float(fit.history["seconds"][-1])
    facts = {
        "relative error": f"{fit.relative_error:.4g} ({fit.loss.name})",
        "observed": _observed(fit),
        "iterations": f"{fit._n_iter} in {seconds:.2g} s{' after the choice' if choice else ''}",
        "ended": str(fit.stop_reason),
        "columns": columns_in_words(fit._labels, fit._model),
    }
    return sizes | {name: text for name, text in facts.items() if text} | choice


def _observed(fit: Any) -> str:
    """Return how many entries of X a fit observed, and of how many, as text."""
    m, n = fit._shape
    appended = int(fit.parameters.get("appended_rows", 0))
    total = (m - appended) * n
    text = f"{fit.parameters.get('n_observed', total)} of {many(total, 'entry')}"
    return f"{text}, {many(appended, 'appended row')}" if appended else text


def _errors_by_rank(trials: xr.Dataset) -> str:
    """Return the lowest held-out error of each rank as a small curve; "" for one rank."""
    tried = trials.to_dataframe()
    chosen = tried.iloc[trials.attrs["chosen"]]
    comparable = (tried["loss"] == chosen["loss"]) & np.isfinite(tried["error"])
    lowest = tried[comparable].groupby("rank")["error"].min()
    ranks, rank = lowest.index.to_numpy(), int(chosen["rank"])
    if ranks.size < 2:
        return ""
    ends = f"{lowest.max():.3g} → {lowest.min():.3g}"
    caption = f"held-out error {ends}, rank {ranks[0]} to {ranks[-1]}, ring at {rank}"
    return curve(np.log(ranks), lowest.to_numpy(), math.log(rank), caption)


def _best_trials(trials: xr.Dataset) -> str:
    """Return the best trials as a table, and the reason of the choice."""
    always = ("rank", "alpha", "error", "spread")  # others only if they differ
    names = [name for name in VARIABLES if name in always or len(np.unique(trials[name])) > 1]
    chosen, best = trials.attrs["chosen"], np.argsort(trials["error"].values, kind="stable")
    rows = []  # the chosen one is there, too; NaN comes last
    for position in dict.fromkeys([*best[:8].tolist(), chosen]):
        row = trials.isel({TRIAL: position})
        digits = {"spread": 2, "seconds": 2}
        texts = [as_text(row[name].values, digits.get(name, 4)) for name in names]
        rows.append([*texts, "chosen" if position == chosen else ""])
    return table([*names, ""], rows) + facts_table(_notes(trials.attrs))


def _notes(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what the numbers of the trials are, and the reason of the choice."""
    parts = "" if about["held_out_parts"] == 1 else f" in {about['held_out_parts']} parts"
    entries = f"{about['held_out_entries']} held-out entries{parts} ({about['held_out_drawn']})"
    return {
        "error": f"{about['measure']} of {entries}",
        "spread": "standard error of the difference to the lowest error",
        "chosen": about["reason"],
    }


NOISES = {
    "gaussian": "Gaussian noise",
    "clipped": "Gaussian noise within ends",
    "before": "noise before f",
    "after": "noise after f",
    "ordinal": "ordinal data",
}
"""The kinds of noise in words."""


def posterior_summary(posterior: Any) -> Summary:
    """Return a posterior in short."""
    return Summary(
        _headline_of_posterior(posterior),
        [f"nmd_lab.Posterior: {posterior_formula(posterior)}"],
        thumbnails(posterior),
        _flags_of_posterior(posterior),
        {
            "Details": facts_table(posterior_facts(posterior)),
            "Parameters": facts_table(posterior.parameters),
        },
    )


def _headline_of_posterior(posterior: Any) -> dict[str, str]:
    """Return the size of the noise, or how likely the model makes an observed entry."""
    if not posterior._model.is_mixed and posterior.noise != "ordinal":
        sd = float((1 / np.sqrt(posterior.draws["rho"])).mean())
        return headline(sd, "standard deviation of the noise, nothing is held out", {})
    n_observed = posterior.parameters.get("n_observed", np.nan)
    of_entry = posterior.trace["log_likelihood"].mean() / n_observed
    return headline(float(of_entry), "log-likelihood of an entry, nothing is held out", {})


def _flags_of_posterior(posterior: Any) -> list[str]:
    """Return a sentence for each diagnostic of a posterior that is not as it should be."""
    flags = [STOPPED[code]] if (code := posterior.stop_reason.code) in STOPPED else []
    if np.isnan(posterior._unsettled):
        return [*flags, "Too few draws to judge the chains."]
    ess = float(posterior.ess["prediction"].median())
    if not posterior.converged:
        flags.append(f"The chains have not converged: of the predictions, {_settled(posterior)}.")
    elif ess < 50:
        flags.append(f"The effective sample size is only {ess:.0f}: intervals are rough.")
    return flags


def posterior_formula(posterior: Any) -> str:
    """Return the model in one line."""
    if posterior._model.is_mixed:
        learned = noises_of(posterior).count("monotone")
        return f"X ≈ f(W H), a model for each column, {learned} with a learned f"
    loss = f", loss {posterior.loss.name}" if posterior.noise == "after" else ""
    return f"X ≈ {posterior.nonlinearity}(W H), {NOISES[posterior.noise]}{loss}"


def noises_of(posterior: Any) -> tuple[str, ...]:
    """Return the place of the noise of each kind, or "monotone" where f is learned."""
    if not posterior._model.is_mixed:
        return tuple(posterior._noises)
    pairs = zip(posterior.noise, posterior._model.column_models, strict=True)
    return tuple(
        "monotone" if noise != "after" and kind.nonlinearity.form == "monotone" else noise
        for noise, kind in pairs
    )


def posterior_facts(posterior: Any) -> dict[str, str]:
    """Return names and texts of the details."""
    sizes = {
        name: sizes_in_words(posterior.draws[name].sizes, (CHAIN, DRAW)) for name in ("W", "H")
    }
    rhat, chains = posterior.rhat, posterior.draws.sizes[CHAIN]
    of_likelihood, ess = (float(each["log_likelihood"]) for each in (rhat, posterior.ess))
    measured = f"split R-hat {of_likelihood:.3f}, effective sample size {ess:.0f}"
    draws = posterior._draws
    some = effective_rank(singular_values(few_draws(draws, len(draws))))
    rank = f"{some.mean():.1f} of {posterior.rank}"
    noise = 1 / np.sqrt(posterior.draws["rho"].values)
    size = f"{noise.mean():.3g} ± {noise.std():.1g}"
    if posterior._model.is_mixed:
        each = noise.mean(axis=(0, 1))
        size = f"{each.min():.3g} to {each.max():.3g}, in the units of the columns"
    facts = {
        "columns": columns_in_words(posterior._labels, posterior._model),
        "draws": f"{len(draws)} in {many(chains, 'chain')}",
        **{name: f"({text}) {posterior.draws[name].dtype}" for name, text in sizes.items()},
        "effective rank": rank,
        "noise 1/√ρ": size,
        "predictions": _settled(posterior),
        "log-likelihood": "too few sweeps for R-hat" if np.isnan(of_likelihood) else measured,
        "ended": str(posterior.stop_reason),
    }
    return {name: text for name, text in facts.items() if text}


def _settled(posterior: Any) -> str:
    """Return the fraction of the predictions that have not converged, empty for short chains."""
    share = posterior._unsettled
    return "" if np.isnan(share) else f"{share:.0%} have an R-hat above {MAX_RHAT}"


def few_draws(draws: Draws, most: int = 24) -> Draws:
    """Return about so many of the draws, evenly spaced; fewer large ones."""
    # They have at most 2 million numbers of W and H together, unless six draws have more.
    return draws.evenly(min(most, max((1 << 21) // (sum(draws.shape) * draws.rank), 6)))


def thumbnails(posterior: Any) -> list[str]:
    """Return pictures of the mean and the standard deviation of f(WH), from some of the draws."""
    few = few_draws(posterior._draws)
    columns = posterior.draws["H"].isel({CHAIN: 0, DRAW: 0, COMPONENT: 0}, drop=True)
    m, by_column = few.shape[0], few.model.is_mixed

    def shown(statistic: Callable[[Draws, Entries], Array], name: str) -> str:
        def block(i: Positions, j: Positions) -> Array:
            return statistic(few, entries_at(i[:, None], j)).reshape(i.size, j.size)

        return picture(small_picture(m, columns, block, by_column=by_column), name)

    return [shown(means, "mean"), shown(partial(stds, noise=False), "standard deviation")]
