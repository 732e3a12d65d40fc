"""Tables of all methods: errors of each photograph, and what they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.common.journals import Journals
from benchmarks.paper.report import prose, table
from nmd_lab._records import Record

from .cells import cells_of, collect
from .choice import settings_of
from .methods import METHODS
from .ours import BEST
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


def ratios(errors: Mapping[str, Array], rivals: Iterable[str]) -> Array | None:
    """Return our errors over those of the best rival of each photograph."""
    there = [errors[name] for name in rivals if name in errors]
    return errors[BEST] / np.nanmin(there, axis=0) if BEST in errors and there else None


def compare(found: Found, pictures: Iterable[str], rivals: Iterable[str]) -> str:
    """Return the tables of a case, and our error over that of rivals in a sentence."""
    pictures = list(pictures)
    errors = scores(found, pictures, "rmse")
    return "\n\n".join(
        [grid(errors, pictures), sentence(errors, pictures, rivals), means(found, pictures)]
    )


def grid(errors: Mapping[str, Array], pictures: list[str]) -> str:
    """Return the errors of all methods by photograph, the lowest in bold."""
    values = np.array(list(errors.values())).T.round(4)
    least = np.nanmin(values, axis=1, keepdims=True)
    body = [
        [picture, *(word(v, 4, is_best=v == best) for v in row)]
        for picture, row, best in zip(pictures, values, least[:, 0], strict=True)
    ]
    body.append(["geometric mean", *(word(geometric_mean(v), 4) for v in errors.values())])
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


def sentence(errors: Mapping[str, Array], pictures: list[str], rivals: Iterable[str]) -> str:
    """Return our error over that of the best rival of each photograph, in words."""
    found = ratios(errors, rivals)
    if found is None:
        return ""
    return prose(
        "Error of `{best}` over that of the better one of {rivals} for each photograph: geometric "
        "mean {mean:.3f}, highest {highest:.3f} ({picture}).",
        best=BEST,
        rivals=" and ".join(rivals),
        mean=geometric_mean(found),
        highest=found.max(),
        picture=pictures[int(found.argmax())],
    )


def failures(found: Found) -> list[str]:
    """Return a line for each method that failed."""
    return [
        f"- {method} fails on {picture}: `{record['error'][:90]}`"
        for method, of_method in found.items()
        for picture, records in of_method.items()
        for record in records[:1]
        if "error" in record
    ]


def coverage_of(found: Found, pictures: Iterable[str]) -> Any:
    """Return the coverage of our intervals by photograph."""
    return scores(found, pictures, "coverage").get(BEST)
