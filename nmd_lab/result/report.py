"""A report as a page of Markdown or HTML, and how sure the predictions of cells are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from nmd_lab._runtime.checks import many
from nmd_lab._runtime.machine import check_target, write_atomically
from nmd_lab._version import __version__
from nmd_lab.data.cell_numbers import date_texts
from nmd_lab.data.labels import Labels, is_frame
from nmd_lab.data.matching import MatchedData, first_few
from nmd_lab.data.units import facts_of, names_of_codes

from .draws import CHAIN, GROUP, Draws, Positions
from .entries import entries_at, entries_of
from .fill import OF_LIMITS, filled, intervals_at, skips_of
from .fold_in import rows_of, unknown_row
from .predict import OWNER, mean_shares, means, stds, tails_of
from .predictive import Array
from .selection import as_text
from .summary import (
    ONE,
    ColumnWords,
    columns_in_words,
    kinds_of_columns,
    noises_of,
    posterior_facts,
)

HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>Imputation</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1.5em; }
h3 { margin: 1.6em 0 0.4em; }
table { display: block; overflow-x: auto; border-collapse: collapse; }
td, th { text-align: left; vertical-align: top; padding: 0.15em 1.2em 0.15em 0; }
td { font-variant-numeric: tabular-nums; border-top: 1px solid #8884; }
</style>
"""
"""What comes before the content of a file of HTML."""


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorReport:
    """What was missing in a table, what it was filled with, and how far to trust this.

    ``str(report)`` is Markdown, and a notebook shows HTML.

    Attributes
    ----------
    summary : str
        Size of the table, and how much of it was missing.
    columns : pandas.DataFrame
        One line for each column, and one for all: kind, observed and missing cells, those with
        limits alone, what the last two are filled by, and the mean uncertainty of missing ones, as
        in `Posterior.reliability`.
    most_uncertain, most_certain : pandas.DataFrame
        Some filled cells, with intervals or probabilities.
    held_out : pandas.DataFrame or None
        One line for each column with held-out cells: means of what was observed and predicted,
        error as in `Posterior.reliability`, and the fraction that the intervals cover.
    convergence : str
        Whether the chains have converged.
    assumptions : tuple of str
        What the model takes for granted.
    methods : str
        A sentence for a paper.
    """

    summary: str
    columns: pd.DataFrame
    most_uncertain: pd.DataFrame
    most_certain: pd.DataFrame
    held_out: pd.DataFrame | None
    convergence: str
    assumptions: tuple[str, ...]
    methods: str

    def __repr__(self) -> str:
        """Return the report as Markdown."""
        blocks = [f"## {title}\n\n{_as_markdown(content)}" for title, content in self._sections]
        return "\n\n".join(["# Imputation", *blocks]) + "\n"

    def _repr_html_(self) -> str:
        """Return the report as HTML, which notebooks show."""
        blocks = [f"<h3>{escape(title)}</h3>\n{_as_html(each)}" for title, each in self._sections]
        return "\n".join(["<h2>Imputation</h2>", *blocks])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as .html or .md; an older file is kept if this fails.

        Raises
        ------
        ValueError
            If the file has another ending.
        """
        ending = check_report(path).lower()
        page = str(self) if ending == ".md" else f"{HEAD}{self._repr_html_()}\n"
        write_atomically(path, lambda file: file.write(page.encode()))

    @property
    def _sections(self) -> list[tuple[str, Any]]:
        """Titles, and texts, lists or tables."""
        sections = [
            ("Data", f"{self.summary} {UNCERTAINTY}"),
            ("Columns", self.columns),
            ("Most uncertain cells", self.most_uncertain),
            ("Most certain cells", self.most_certain),
            ("Held-out cells", self.held_out),
            ("Convergence", self.convergence),
            ("Assumptions", self.assumptions),
            ("For a methods section", self.methods),
        ]
        return [(title, content) for title, content in sections if content is not None]


def check_report(path: str | os.PathLike[str], name: str = "path") -> str:
    """Return the ending of a file for a report, if it can be written."""
    ending = check_target(path, name).suffix
    if ending.lower() not in (".html", ".md"):
        raise ValueError(f"{name}={str(path)!r} has an unknown ending: give .html or .md.")
    return ending


def _as_markdown(content: Any) -> str:
    """Return a text, a list or a table as Markdown."""
    if isinstance(content, str):
        return content
    if isinstance(content, tuple):
        return "\n".join(f"- {line}" for line in content)
    names: list[Any] = list(content.columns)
    lines = [names, ["---"] * len(names), *content.itertuples(index=False)]
    cells = ([as_text(value).replace("|", "\\|") for value in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _as_html(content: Any) -> str:
    """Return a text, a list or a table as HTML."""
    if isinstance(content, str):
        return f"<p>{escape(content)}</p>"
    if isinstance(content, tuple):
        return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in content)}</ul>"
    return str(content.map(as_text).to_html(index=False, border=0))


UNCERTAINTY = "“Uncertainty” is 0 for a certain cell, and 1 if the column alone predicts it."

POINTS = {"ordered": "median", "boolean": "most probable", "categories": "most probable"}
"""Statistic that fills the missing cells of each kind of column; the others have means."""

ONCE = "numbers by means, ordinal cells by medians, others by the most probable category"
"""How each cell is filled once."""

ASSUMED = {
    "gaussian": "The noise of a number is normal, and equally large in all rows.",
    "clipped": "Where a tenth of a column or more is its smallest or largest value, no prediction "
    "is beyond that.",
    "before": "A value at a limit means only that the number behind it is beyond the limit.",
    "monotone": "Some numbers are a rising function of normal ones, which have the noise, and no "
    "prediction is far beyond the values of its column.",
    "after": "Numbers have the noise of their loss around f of the number behind them.",
    "ordinal": "A level or a class means that a normal number lies between two cut points.",
}
"""What each kind of noise takes for granted."""


def sentence_of_codes(names: Sequence[Any]) -> str:
    """Return what becomes of columns that are 0 and 1, and the remedy."""
    return (
        f"0 and 1 are numbers in {first_few(names)}: X.astype(dict.fromkeys({names[:5]!r}, "
        "'boolean')) gives probabilities."
    )


def make_report(
    posterior: Any, X: Any, held_out: Any, level: float, n: int | None
) -> PosteriorReport:
    """Return the report on X; see `Posterior.report`."""
    tails_of(level)
    labels, draws, data = rows_of(posterior, X)
    columns = [c for c in kinds_of_columns(labels, posterior._model) if c.first in data.columns]
    i, j = np.nonzero(np.isnan(data.observations.to_array()))
    cells = cells_at(draws, data.rows[i], data.columns[j])
    cells = cells.sort_values("uncertainty", kind="stable", ignore_index=True)
    missing, of_all = len(cells), data.rows.size * len(columns)
    share = f"{missing} of {many(of_all, 'cell')} ({100 * missing / max(of_all, 1):.1f} %)"
    size = f"{many(data.rows.size, 'row')} and {many(len(columns), 'column')}"
    limits, n = data.observations.limits, n or posterior.parameters.get("copies")
    limited, by, of_limits = pd.Series(0, data.columns), "draws" if n else "", ""
    if limits is not None:
        limited += np.count_nonzero(limits.codes.reshape(data.rows.size, -1), axis=0)
        of_limits = f" {limited.sum()} more have limits, within which they are filled."
    # The most and the least certain cells
    extremes = (cells[::-1].head(5), cells.head(5))
    values = filled(draws, X, data) if is_frame(X) else None
    last, first = (_shown(labels, draws, some, values, data, level) for some in extremes)
    drawn = f"{many(n or 0, 'time')} by draws from the posterior predictive distribution"
    facts = posterior_facts(posterior)
    codes = names_of_codes(facts_of(data.observations, by_column=True))
    skips = skips_of(X) if is_frame(X) else {}
    return PosteriorReport(
        f"{size}; {share} {'is' if missing == 1 else 'are'} missing.{of_limits}",
        _by_column(with_labels(labels, cells), columns, data.rows.size, limited, by),
        last,
        first,
        None if held_out is None else _check(labels, draws, held_out, columns, level),
        _chains_in_words(facts, posterior.draws.sizes[CHAIN]),
        (
            *_assumptions(posterior),
            *([sentence_of_codes(codes)] if codes else []),
            *([f"Cells that seem empty on purpose stay so with fill={skips!r}."] if skips else []),
            *([f"{OF_LIMITS.capitalize()}."] if limited.any() else []),
        ),
        f"Missing values, {share}, were imputed by Bayesian factor analysis of mixed data "
        f"(nmd_lab {__version__}; at most {many(posterior.rank, 'factor')}; "
        f"draws: {facts['draws']}), {drawn if n else ONCE}, "
        "assuming that values are missing at random.",
    )


def _chains_in_words(facts: dict[str, str], chains: int) -> str:
    """Return the convergence of the chains in words."""
    names = ("draws", "effective rank", "predictions", "log-likelihood", "ended")
    listed = "; ".join(f"{name}: {facts[name]}" for name in names if name in facts)
    alone = " One chain cannot disagree with another: use chains=2."
    return f"{listed}.{alone if chains == 1 else ''}"


def _assumptions(posterior: Any) -> tuple[str, ...]:
    """Return the assumptions of the model."""
    noises = set(noises_of(posterior))
    groups = posterior.draws.sizes.get(GROUP, 1)
    alike = "normal and alike in all rows (relations that are curved are missed)"
    if groups > 1:
        alike = f"normal and alike in each of at most {groups} groups of rows"
    ensemble: list[str] = []
    if "member" in posterior.draws:
        fractions = np.bincount(posterior.draws["member"].values.ravel()) / len(posterior._draws)
        listed = ", ".join(f"{each:.0%}" for each in fractions)
        ensemble = [f"An ensemble of {many(fractions.size, 'model')} made the draws: {listed}."]
    asked = posterior.parameters
    if asked.get("order") is not None:
        ensemble += [f"Rows are in the order of {asked['order']!r}: each depends on those near it."]
    if "spread" in posterior.draws:
        ensemble += [_calibrated(posterior)] * ("covered" in asked)
    if (joint := posterior._joint) is not None:
        of_rows = many(int(joint.sizes["joint_group"]), "group")
        ensemble += [
            "Completed copies are drawn from a joint distribution of all columns with full "
            f"covariances ({of_rows} of rows), so that weak associations are not shrunk."
        ]
    elif ensemble:
        ensemble += ["Completed copies are its draws, which shrink weak associations."]
    taken = columns_in_words(posterior._labels, posterior._model)
    return (
        *([f"The table was read as {taken}."] if taken else []),
        "Whether a cell is missing may depend on what is observed, not on what is missing.",
        f"A row has at most {many(posterior.rank, 'latent factor')}, {alike}, and the number "
        "behind each cell is linear in these.",
        *ensemble,
        *(text for noise, text in ASSUMED.items() if noise in noises),
    )


def _calibrated(posterior: Any) -> str:
    """Return what hidden cells say of the intervals."""
    asked, spread = posterior.parameters, float(posterior.draws["spread"].mean())
    return (
        f"90 % intervals covered {asked['covered']:.0%} of {many(asked['hidden'], 'number')} "
        f"hidden {asked['hidden_cells']}, when they were made {spread:.2f} times as wide."
    )


def _by_column(
    cells: pd.DataFrame, columns: list[ColumnWords], m: int, limited: pd.Series, by: str
) -> pd.DataFrame:
    """Return the number of missing cells in each column and in all, and their mean uncertainty.

    They are filled by `by`, or by the best guess of the kind of the column.
    """
    lines: list[tuple[Any, ...]] = []
    for name, kind, ends, first in columns:
        of_column = cells[[label == name for label in cells["column"]]]
        words, point = f"{ONE[kind]} {ends}".strip(), by or POINTS.get(kind, "mean")
        missing, limits = len(of_column), int(limited[first])
        point = point if missing + limits else ""
        uncertainty = float(of_column["uncertainty"].mean())
        lines.append((name, words, m - missing - limits, missing, limits, point, uncertainty))
    names = ["column", "kind", "observed", "missing", "limits", "filled by", "uncertainty"]
    totals = [sum(line[k] for line in lines) for k in (2, 3, 4)]
    lines.append(("all", "", *totals, "", float(cells["uncertainty"].mean())))
    table = pd.DataFrame(lines, columns=names)
    return table if limited.any() else table.drop(columns="limits")


def _shown(
    labels: Labels, draws: Draws, cells: pd.DataFrame, filled: Any, data: MatchedData, level: float
) -> pd.DataFrame:
    """Return cells with labels, what they are filled with, and their uncertainty."""
    labelled, texts, table = with_labels(labels, cells), [], labels.table
    ends, values = intervals_at(draws, _entries(cells), level), list(labelled["predicted"])
    if filled is not None:
        of_frame = data.observations.labels.table
        source = np.arange(data.columns.size) if of_frame is None else of_frame.source
        rows = pd.Index(data.rows).get_indexer(pd.Index(cells["row"]))
        places = source[pd.Index(data.columns).get_indexer(pd.Index(cells["column"]))]
        values = [filled.iloc[place] for place in zip(rows, places, strict=True)]
    for k, (low, high) in enumerate(ends):
        cell: Any = cells.iloc[k]
        column = None if table is None else table.of_matrix[cell.column]
        if cell.kind == "class":
            texts.append(f"probability {cell.probability:.2g}")
        elif column is not None and column.kind == "ordered":
            at = column.nearest(np.array([[low], [high]])).astype(int)
            texts.append(" to ".join(str(column.categories[each]) for each in at))
        elif column is not None and column.kind == "date":
            like = filled.iloc[:, places[k]]
            texts.append(" to ".join(date_texts(np.array([low, high]), like)))
        else:
            texts.append(f"{low:.4g} to {high:.4g}")
    shown = {"row": labelled["row"], "column": labelled["column"], "filled with": values}
    shown |= {f"{100 * level:g} % interval, or probability": texts}
    return pd.DataFrame(shown | {"uncertainty": cells["uncertainty"]})


def _check(
    labels: Labels, draws: Draws, held_out: Any, columns: list[ColumnWords], level: float
) -> pd.DataFrame:
    """Return observed against predicted for held-out cells by column, and coverage there."""
    cells = held_out_cells(labels, draws, held_out)
    cells["low"], cells["high"] = intervals_at(draws, _entries(cells), level).T
    names = with_labels(labels, cells)["column"]
    lines = []
    for name in (c.name for c in columns if c.name in set(names)):
        some = cells[[label == name for label in names]]
        line = {"column": name, "cells": len(some)}
        if some["kind"].iloc[0] == "number":
            x, predicted = (some[key].to_numpy(np.float64) for key in ("observed", "predicted"))
            line |= {"observed": x.mean(), "predicted": predicted.mean()}
            line["RMSE / spread"] = float(np.sqrt(np.mean(some["wrong"] ** 2)))
            held = (some["low"] <= x) & (x <= some["high"])
            line[f"in {100 * level:g} % interval"] = float(held.mean())
        else:
            line["share wrong"] = float(some["wrong"].mean())
        lines.append(line)
    return pd.DataFrame(lines)


def _entries(cells: pd.DataFrame) -> Any:
    """Return the entries of cells; a category is at its first indicator."""
    return entries_at(cells["row"].to_numpy(np.intp), cells["column"].to_numpy(np.intp))


def held_out_cells(labels: Labels, draws: Draws, X: Any) -> pd.DataFrame:
    """Return the observed cells of test data, as `cells_at` does."""
    entries = entries_of(labels, X, None, None, OWNER)
    return cells_at(draws, entries.i, entries.j, entries.values)


def cells_at(draws: Draws, i: Positions, j: Positions, values: Array | None = None) -> pd.DataFrame:
    """Return the cells of the table at entries of the matrix, with what is observed if given.

    Columns `row` and `column` are positions in the matrix, of the first indicator for a category.
    The error of numbers and levels is in units of the spread of the column in an unknown row; a
    wrong class is an error of one.
    """
    unknown, blocks = unknown_row(draws), [] if draws.table is None else list(draws.table.blocks())
    classes = [(c, at) for c, at in blocks if c.kind in ("boolean", "categories")]
    of_classes = np.concatenate([np.empty(0, np.intp), *(at for _, at in classes)])
    at = np.flatnonzero(~np.isin(j, of_classes))
    numbers = entries_at(i[at], j[at])
    predicted = means(draws, numbers)
    spread = stds(unknown, entries_at(0, np.arange(draws.shape[1])))[numbers.j]
    found = {"kind": "number", "predicted": predicted.astype(object)}
    found["uncertainty"] = _ratio(stds(draws, numbers), spread)
    if values is not None:
        found["observed"] = values[at].astype(object)
        found["wrong"] = _ratio(values[at] - predicted, spread)
    groups = [pd.DataFrame({"row": numbers.i, "column": numbers.j} | found)]
    for column, positions in classes:
        at = np.flatnonzero(j == positions[0])
        p, names = mean_shares(draws, i[at], positions), np.array([*column.classes, None], object)
        best, known = p.argmax(axis=1), mean_shares(unknown, np.zeros(1, np.intp), positions).max()
        found = {"kind": "class", "predicted": names[best], "probability": p.max(axis=1)}
        found["uncertainty"] = _ratio(1 - p.max(axis=1), np.full(best.size, 1 - known))
        if values is not None:  # those of a cell follow one another
            codes = column.nearest(values[at[:, None] + np.arange(positions.size)])
            found["observed"] = names[codes.astype(np.intp)]
            found["wrong"] = (best != codes).astype(np.float64)
        groups.append(pd.DataFrame({"row": i[at], "column": j[at]} | found))
    return pd.concat([group for group in groups if len(group)] or groups[:1], ignore_index=True)


def _ratio(numbers: Array, of: Array) -> Array:
    """Return a quotient, 0 where nothing is uncertain."""
    return np.divide(numbers, of, out=np.zeros(numbers.shape), where=of > 1e-12)


def with_labels(labels: Labels, cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with labels of rows and columns in the place of their positions."""
    names = labels.flat(labels.columns).astype(object)
    if labels.table is not None:
        each = (column.name for column in labels.table.of_matrix)
        names = np.fromiter(each, dtype=object, count=names.size)
    order = ["row", "column", "kind", "observed", "predicted", "uncertainty", "wrong"]
    cells = cells.assign(row=labels.flat(labels.rows)[cells["row"]], column=names[cells["column"]])
    return cells.filter([*order, "share", "error"])


def reliability(posterior: Any, X: Any) -> pd.DataFrame:
    """Return held-out cells with the error of those up to each; see `Posterior.reliability`."""
    cells = held_out_cells(posterior._labels, posterior._draws, X)
    cells = cells.sort_values("uncertainty", kind="stable", ignore_index=True)
    by_kind = cells.assign(one=1.0, square=cells["wrong"] ** 2).groupby("kind")
    count = by_kind["one"].cumsum()
    error = (by_kind["square"].cumsum() / count) ** np.where(cells["kind"] == "number", 0.5, 1)
    share = count / by_kind["one"].transform("sum")
    return with_labels(posterior._labels, cells.assign(share=share, error=error))
