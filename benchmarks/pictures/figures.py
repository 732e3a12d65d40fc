"""Figures of photographs, as they are given and as three methods restore them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.journals import Journals
from benchmarks.paper.report import pyplot, save

from .cases import problem_of
from .choice import settings_of
from .data import load
from .methods import METHODS, is_ours
from .ours import BEST, LIMITS
from .sizes import Size

Array = np.ndarray

ROWS = (
    ("china", "60 % missing"),
    ("brick", "80 % missing"),
    ("coins", "text"),
    ("coffee", "scratches"),
)
"""Photographs and cases of the figure."""
SHOWN = ("interpolation", "biharmonic", BEST)
WIDTH = "width of 90 % intervals"
"""Title of the picture of the intervals."""
UNCLIPPED = ("radial functions", LIMITS)
BRIGHT = ("china", "flower")
"""Methods and photographs of the figure of clipped pixels."""
DETAIL = 128
"""Side of the central detail that is shown."""


def restored(journals: Journals, size: Size, folder: Path) -> str:
    """Return the figure of missing pixels."""
    rows = [(p, case) for p, case in ROWS if p in size.pictures and case in size.cases]
    if not (rows and set(SHOWN) <= set(size.methods)):
        return ""
    found = {picture: panels(journals, size, picture, case, SHOWN) for picture, case in rows}
    caption = (
        "The central detail of photographs. Missing pixels are red in the first column. The "
        "width of the 90 % intervals is from 0 (black) to 0.5 (white)."
    )
    names = [f"{picture}, {case}" for picture, case in rows]
    return save(draw(names, list(found.values())), folder, "pictures_restored", caption)


def unclipped(journals: Journals, size: Size, folder: Path) -> str:
    """Return the figure of clipped pixels."""
    shown = [name for name in UNCLIPPED if name in size.methods]
    rows = [picture for picture in BRIGHT if picture in size.pictures]
    if not (rows and shown):
        return ""
    found = [panels(journals, size, picture, "clipped", shown) for picture in rows]
    caption = "The central detail of clipped photographs, from 0 (black) to 1 (white)."
    return save(draw(rows, found), folder, "pictures_clipped", caption)


def panels(
    journals: Journals, size: Size, picture: str, case: str, methods: Iterable[str]
) -> dict[str, Array]:
    """Return a photograph as it is given and restored, from the disk if it was stored."""
    path = journals.folder / f"{picture}-{case.replace(' ', '-')}-{size.side}.npz"
    if path.exists():
        with np.load(path) as stored:
            if {"given", *methods, "photograph"} <= set(stored) and journals.is_stored:
                return dict(stored)
    problem = problem_of(case, load(picture, size.side), 0)
    found = {"given": problem.given}
    for method in methods:
        settings = settings_of(journals, size, method, case) or {}
        settings |= size.options if is_ours(method) else {}
        answer = METHODS[method].fill(problem, 0, **settings)
        found[method] = answer.picture
        if answer.upper is not None:
            found[WIDTH] = np.where(problem.scored, answer.upper - answer.lower, 0)
    found["photograph"] = problem.truth
    np.savez_compressed(path, **found)
    return found


def draw(names: list[str], rows: list[dict[str, Array]]) -> Any:
    """Return a figure with a row of details for each photograph."""
    figure, axes = pyplot().subplots(
        len(rows), len(rows[0]), squeeze=False, layout="constrained",
        figsize=(1.85 * len(rows[0]), 1.9 * len(rows) + 0.3),
    )  # fmt: skip
    grey = pyplot().get_cmap("gray").with_extremes(bad="#c8442d")
    for name, row, line in zip(names, rows, axes, strict=True):
        for (title, picture), ax in zip(row.items(), line, strict=True):
            colors, top = ("magma", 0.5) if title == WIDTH else (grey, 1)
            ax.imshow(detail(picture), cmap=colors, vmin=0, vmax=top)
            ax.set(xticks=[], yticks=[])
            ax.grid(False)
            ax.spines[:].set_visible(False)
        line[0].set_ylabel(name, fontsize=8)
    for title, ax in zip(rows[0], axes[0], strict=True):
        ax.set_title(title, fontsize=9)
    return figure


def detail(picture: Array) -> Array:
    """Return the middle of a picture."""
    rows, columns = (slice(max(n - DETAIL, 0) // 2, (n + DETAIL) // 2) for n in picture.shape)
    return picture[rows, columns]
