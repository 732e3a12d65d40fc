"""Tables of all methods: errors of each photograph, and what they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from benchmarks.common.journals import Journals
from benchmarks.paper.report import table
from nmd_lab.studies.cell import Record

from .cells import cells_of, collect
from .choice import settings_of
from .methods import METHODS
from .sizes import Size

Array = np.ndarray
Found = Mapping[str, Mapping[str, list[Record]]]
"""Records by method and photograph."""

SCORES = {
    "psnr": ("PSNR", 2),
    "ssim": ("SSIM", 3),
    "coverage": ("coverage of 90 % intervals", 3),
    "seconds": ("seconds", 1),
}
"""Heads of scores whose means over the photographs are shown, with their digits."""


def records_of(
    journals: Journals, size: Size, case: str, pictures: Iterable[str], seeds: int
) -> Found:
    """Return the records of all methods of a case, and do what is missing."""
    found: dict[str, dict[str, list[Record]]] = {}
    for method in size.methods:
        if case not in METHODS[method].cases:
            continue
        settings = settings_of(journals, size, method, case)
        if settings is None:
            continue
        cells = cells_of(size, pictures, method, case, settings, range(seeds))
        for record in collect(journals, method, cells):
            found.setdefault(method, {}).setdefault(record["picture"], []).append(record)
    return found


def mean(records: Iterable[Record], score: str) -> float:
    """Return the mean of a score over the seeds; NaN where one has none."""
    values = [record.get(score, np.nan) for record in records]
    return float(np.mean(values)) if values else np.nan


def scores(found: Found, pictures: Iterable[str], score: str) -> dict[str, Array]:
    """Return the means over the seeds of each method, by photograph."""
    return {
        method: np.array([mean(records.get(picture, ()), score) for picture in pictures])
        for method, records in found.items()
    }


def geometric_mean(values: Array) -> float:
    """Return the geometric mean of positive numbers."""
    return float(np.exp(np.mean(np.log(values))))


def ratios(errors: Mapping[str, Array], ours: str, rivals: Iterable[str]) -> Array | None:
    """Return our errors over those of the best rival of each photograph; None if one is missing."""
    there = [errors[name] for name in rivals if name in errors]
    if ours not in errors or not there:
        return None
    found = errors[ours] / np.min(there, axis=0)
    return None if np.isnan(found).any() else found


def compare(found: Found, pictures: Iterable[str]) -> str:
    """Return the tables of a case."""
    pictures = list(pictures)
    errors = scores(found, pictures, "rmse")
    return "\n\n".join([grid(errors, pictures), means(found, pictures)])


def grid(errors: Mapping[str, Array], pictures: list[str]) -> str:
    """Return the errors of all methods by photograph, the lowest in bold."""
    values = np.array(list(errors.values())).T
    values = np.vstack([values, np.exp(np.log(values).mean(axis=0))]).round(4)
    body = [
        [name, *(word(v, 4, is_best=v == np.nanmin(row)) for v in row)]
        for name, row in zip([*pictures, "geometric mean"], values, strict=True)
    ]
    return table(["RMSE", *errors], body)


def means(found: Found, pictures: list[str]) -> str:
    """Return the means of the other scores over photographs and seeds."""
    body = []
    for score, (head, digits) in SCORES.items():
        values = scores(found, pictures, score).values()
        body.append([head, *(word(float(np.mean(v)), digits) for v in values)])
    return table(["mean", *found], [row for row in body if set(row[1:]) != {"–"}])


def word(value: float, digits: int, *, is_best: bool = False) -> str:
    """Return a number, a dash for NaN."""
    text = "–" if np.isnan(value) else f"{value:.{digits}f}"
    return f"**{text}**" if is_best else text


def unfinished(found: Found, seeds: int) -> list[str]:
    """Return a sentence for the methods that have fewer seeds, as with --stored."""
    fewest = {method: min(map(len, records.values())) for method, records in found.items()}
    missing = [f"{method} {number}" for method, number in fewest.items() if number < seeds]
    return [f"**Not all of the {seeds} seeds are done: {', '.join(missing)}.**"] if missing else []


def failures(found: Found) -> list[str]:
    """Return a line for each method that failed."""
    return [
        f"- {method} fails on {picture}: `{record['error'][:90]}`"
        for method, of_method in found.items()
        for picture, records in of_method.items()
        for record in records[:1]
        if "error" in record
    ]


def coverage_of(found: Found, ours: str, pictures: Iterable[str]) -> Array:
    """Return the coverage of our intervals by photograph."""
    return scores(found, pictures, "coverage").get(ours, np.array([np.nan]))
