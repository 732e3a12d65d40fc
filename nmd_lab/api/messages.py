"""The warnings before and after a fit, and before and after the chains of a posterior."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from nmd_lab._runtime.checks import many
from nmd_lab.data.entries import as_booleans
from nmd_lab.data.inputs import AT_MOST, dense_values
from nmd_lab.data.matching import first_few
from nmd_lab.data.typed_table import plain_label
from nmd_lab.data.units import Facts, units_of_columns
from nmd_lab.model.model import Model
from nmd_lab.problem.columns import measures_distance
from nmd_lab.request.options import FitOptions, Options
from nmd_lab.result.convergence import MAX_RHAT, MAX_UNSETTLED
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.draws import LIMITS
from nmd_lab.result.fill import OF_LIMITS, Bounded, draws_within
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.report import sentence_of_codes
from nmd_lab.result.summary import few_draws, unfinished
from nmd_lab.warnings import (
    NMDWarning,
    NotConvergedWarning,
    OutOfBoundsWarning,
    OverfitWarning,
    UnitsWarning,
    UnobservedWarning,
)

MORE_ITERATIONS = "raise max_iter, or pass tol=0 if so many iterations are what you want."
FEWER = (
    "give a ridge (alpha) or validation=0.1, since so few observed entries for each component let "
    "more iterations make the predictions worse."
)
FROM_OFFSETS = "offsets='both' for predictions from the offsets"
REMEDY_FOR_UNITS = "divide the columns by their standard deviations"

Messages = dict[type[NMDWarning], str]
"""Sentences by category of warning."""

OPTIONS = tuple(FitOptions.__annotations__)
"""Names of the options of a fit."""


def messages_before(facts: Facts, model: Model, outside: str) -> Messages:
    """Return the warnings about a problem before it is solved; see `Decided.outside`."""
    units = ""
    if not model.is_mixed and facts.n_missing:
        other = "or pass loss={}, which takes each column in its own units"
        if apart := units_of_columns(facts, distance=measures_distance(model.loss)):
            units = apart.sentence(f"{REMEDY_FOR_UNITS}, {other}")
    return message_of_data(facts) | {OutOfBoundsWarning: outside, UnitsWarning: units}


def messages_after(
    fit: Decomposition, facts: Facts, options: Options, settings: Collection[str] = OPTIONS
) -> Messages:
    """Return the warnings about a fit to data."""
    has_ridge, stops_early = options.alpha > 0, options.validation.stops_early
    found: Messages = {}
    empty = zip(("row", "column"), (each.size for each in facts.empty), strict=True)
    named = [f"{count} {name}{'s' * (count > 1)}" for name, count in empty if count]
    if options.offsets == "none" and named:
        found[UnobservedWarning] = (
            f"X has no observed entry in {' and '.join(named)}, whose predictions are f(0): drop "
            f"them{', or pass ' + FROM_OFFSETS if 'offsets' in settings else ''}."
        )
    if far := _far_predictions(fit, facts):
        remedies = ["a larger alpha" if has_ridge else "a ridge (alpha)"]
        remedies += ["validation=0.1"] if not stops_early and "validation" in settings else []
        found[OverfitWarning] = f"{far}: give {', '.join(remedies)} or a smaller rank."
    if share := unfinished(fit):
        enough = has_ridge or stops_early or _has_enough(facts, fit.rank)
        found[NotConvergedWarning] = (
            f"max_iter={options.max_iter} ended a fit whose last tenth of iterations still "
            f"lowered the objective by {share:.1%}: {MORE_ITERATIONS if enough else FEWER}"
        )
    return found


MIN_SWEEPS = 8  # sweeps below which split R-hat is meaningless


def message_of_chains(posterior: Posterior) -> Messages:
    """Return a message if the predictions of the chains have not converged."""
    sweeps, remedy = posterior.trace.sizes["sweep"], "raise tune= and draws="
    if sweeps < MIN_SWEEPS:
        text = f"the chains have {many(sweeps, 'sweep')} after tuning, too few to judge them"
        return {NotConvergedWarning: f"{text}: {remedy}."}
    share = posterior._unsettled
    if not share > MAX_UNSETTLED:
        return {}
    text = (
        f"the chains have not converged: {share:.0%} of the predictions move by more than a third "
        f"of their standard deviation between parts of the chains (split R-hat of new "
        f"observations above {MAX_RHAT}): {remedy}."
    )
    return {NotConvergedWarning: text}


def message_of_data(facts: Facts, codes: Sequence[Any] = ()) -> Messages:
    """Return a message on observed values that are equal, identifiers, and numbers that are codes.

    Equal values say nothing about missing ones.
    """
    table, m, texts = facts.labels.table, facts.shape[0], []
    for each in [] if table is None else table.columns:
        # Many categories, with few rows for each, look like an identifier.
        if each.is_class and (count := len(each.categories)) > max(50, m / 5):
            texts.append(
                f"column {each.name!r} has {count} categories in {m} rows, and looks like an "
                "identifier: drop it, or merge rare categories."
            )
    low, high = facts.range
    plain = table is None and not facts.is_limited and not facts.absent_are_zeros
    if plain and low == high and facts.n_missing:
        zeros = ': decompose(csr, rank, "identity", "kl") treats absent entries as zeros'
        remedy = zeros if facts.is_sparse else ""
        equal = f"all observed values are equal to {low:g}, so nothing can be learned from them"
        texts.append(f"{equal}{remedy}.")
    texts += [sentence_of_codes(codes)] if codes else []
    return {NMDWarning: " ".join(texts)}


WORDS_OF_MISSING = ("", "?", "na", "n/a", "nan", "null", "missing", "unknown")
"""Texts, in lower case, that may mean that there is no answer."""

CODES_OF_MISSING = [sign * (10**k - 1) for k in range(6, 1, -1) for sign in (-1, 1)]
"""Numbers such as -99 and 9999 that may mean the same, the largest first."""


def message_of_cells(
    frame: Any, observed: Any, facts: Facts, *, in_order: bool = False
) -> Messages:
    """Return messages on cells of a DataFrame that may be missing, and on rows without any cell.

    None of them is changed.  Rows in an order need no cells.
    """
    table, labels, texts = facts.labels.table, facts.labels, []
    for column in [] if table is None else table.columns:
        words = [w for w in column.categories if isinstance(w, str)]
        words = [w for w in words if w == "None" or w.strip().lower() in WORDS_OF_MISSING]
        texts += [_if_missing(column.name, w, f".replace({{{w!r}: None}})") for w in words]
    for name, x in frame.items():
        for code in _codes_apart(x):
            texts.append(_if_missing(name, code, f".mask(X[{name!r}] == {code})"))
    if observed is not None:
        flags = as_booleans(dense_values("observed", observed, frame, labels))
        missing = dense_values("X", frame.isna(), frame, labels)
        if (cells := np.argwhere(flags & missing)).size:
            i, j = cells[0]
            texts.append(
                f"observed is True where X has no value, first at row {i}, column "
                f"{plain_label(labels.flat(labels.columns)[j])!r}: such cells are missing all the "
                "same, and filled; empty them in the result if they have no answer."
            )
    found: Messages = {NMDWarning: " ".join(texts)}
    pairs = zip((labels.rows, labels.columns), facts.empty, strict=True)
    rows, columns = (first_few(labels.flat(dims)[at].tolist()) for dims, at in pairs)
    both = ("row", "" if in_order else rows), ("column", columns)
    if named := [f"{axis} {names}" for axis, names in both if names]:
        found[UnobservedWarning] = (
            f"X has no observed cell in {' and '.join(named)}, which get means: drop them, or add "
            "columns that are known there, such as the time."
        )
    return found


def _if_missing(name: Any, value: Any, remedy: str) -> str:
    """Return the message on a value that may mean that a cell is missing."""
    at = f"X[{name!r}]"
    return (
        f"column {name!r} has the value {value!r}: if it means missing, give {at} = {at}{remedy}."
    )


def _codes_apart(column: Any) -> list[int]:
    """Return the codes of a column of numbers that are far from all its other values."""
    if getattr(column.dtype, "kind", "O") not in "iuf":
        return []
    x = column.dropna().to_numpy(dtype=np.float64)
    rest = x[~np.isin(x, CODES_OF_MISSING)]
    width = np.ptp(rest) if rest.size >= 10 else 0.0  # of enough other values
    return [
        code
        for code in CODES_OF_MISSING
        if 0 < width < np.abs(rest - code).min() and np.count_nonzero(x == code) >= 3
    ]


def message_of_limits(posterior: Posterior, facts: Facts) -> Messages:
    """Return a message if draws below limits are negative, and no value of such columns is."""
    if (limits := posterior._limits) is None or facts.columns is None:
        return {}
    i, j, codes, values, _ = (limits[name].values for name in LIMITS)
    if (facts.columns.lowest[j] < 0).any():
        return {}
    at = np.flatnonzero((codes == AT_MOST) & (values > 0))
    bounded = Bounded(i[at], j[at], np.full(at.size, -np.inf), values[at])
    negative = (draws_within(few_draws(posterior._draws), bounded) < 0).mean(axis=0)
    shares = np.bincount(j[at], negative) / np.maximum(np.bincount(j[at]), 1)
    if not (wrong := np.flatnonzero(shares > 0.01)).size:  # fewer are harmless
        return {}
    names = first_few(facts.labels.flat(facts.labels.columns)[wrong].tolist())
    text = (
        f"{shares.max():.0%} of the draws below limits are negative, and no value of the columns "
        f"{names} is: if none can be, fit np.log(X), or a DataFrame without nonlinearity=; in any "
        f"case {OF_LIMITS}."
    )
    return {NMDWarning: text}


def joined(*messages: Messages) -> Messages:
    """Return messages of several kinds as one each."""
    kinds = dict.fromkeys(kind for each in messages for kind in each)
    return {kind: " ".join(filter(None, (each.get(kind) for each in messages))) for kind in kinds}


def warn(messages: Messages, stacklevel: int) -> None:
    """Give warnings; an empty text is none."""
    for category, message in messages.items():
        if message:
            warnings.warn(message, category, stacklevel=stacklevel + 1)


def _has_enough(facts: Facts, rank: int) -> bool:
    """Return whether there are enough observed entries to determine the components."""
    if not facts.n_missing:
        return True
    counts = np.concatenate(facts.counts)
    counts = counts[counts > 0]
    short = np.count_nonzero(counts < rank)
    # With fewer entries a number of W and H, or many short lines, a long run fits noise.
    enough = facts.n_observed >= 3.0 * rank * counts.size
    return bool(enough and short <= 0.01 * counts.size)


def _far_predictions(fit: Decomposition, facts: Facts) -> str:
    """Return the range of predictions in words if several are far from the data, "" otherwise."""
    m, n = facts.shape
    if not facts.n_missing:
        return ""
    # So many entries are enough to compare.
    positions = np.random.default_rng(0).choice(m * n, min(20_000, m * n), replace=False)
    rows, columns = np.divmod(positions, n)
    seen = (facts.counts[0] > 0)[rows] & (facts.counts[1] > 0)[columns]
    rows, columns = rows[seen], columns[seen]
    by_column = bool(fit._model.of_columns)
    ends = np.repeat(np.reshape(facts.range, (2, 1)), n, axis=1)
    if by_column and facts.columns is not None:
        ends = np.array([facts.columns.lowest, facts.columns.highest])
    ends = ends[:, columns]
    width = np.diff(ends, axis=0)[0]
    margin = np.where(width > 0, width, np.abs(ends[1]))
    predictions = fit._fitted.at(rows, columns).astype(np.float64)
    far = np.flatnonzero((predictions < ends[0] - margin) | (predictions > ends[1] + margin))
    # A small fraction of the missing entries, or very few of them, shows nothing.
    if far.size < max(0.002 * facts.n_missing / (m * n) * positions.size, 3):
        return ""
    where = ""
    if by_column:  # the one with the most of them
        at = columns == np.bincount(columns[far]).argmax()
        name = facts.labels.flat(facts.labels.columns)[columns[at][0]]
        where, predictions, ends = f" of column {plain_label(name)!r}", predictions[at], ends[:, at]
    return (
        f"predictions of missing entries{where} reach from {predictions.min():.3g} to "
        f"{predictions.max():.3g}, though X lies between {ends.min():.3g} and {ends.max():.3g}"
    )
