"""Figures of photographs, as they are given and as three methods restore them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.journals import Journals
from benchmarks.paper.report import pyplot, save

from .cases import Problem, problem_of
from .data import load
from .methods import METHODS
from .ours import BEST
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
DETAIL = 128
"""Side of the central detail that is shown."""


def restored(journals: Journals, size: Size, folder: Path) -> str:
    """Return the figure; its pictures are stored, too."""
    rows = [
        (picture, case) for picture, case in ROWS if picture in size.pictures and case in size.cases
    ]
    if not (rows and set(SHOWN) <= set(size.methods)):
        return ""
    stored = journals.folder / f"figure-{size.side}.npz"
    if not (journals.is_stored and stored.exists()):
        np.savez_compressed(stored, **panels(rows, size))
    with np.load(stored) as found:
        return draw(rows, dict(found), folder)


def panels(rows: list[tuple[str, str]], size: Size) -> dict[str, Array]:
    """Return the pictures of the figure by photograph and column."""
    found = {}
    for picture, case in rows:
        problem = problem_of(case, load(picture, size.side), 0)
        found[f"{picture}, photograph"], found[f"{picture}, given"] = problem.truth, problem.given
        for method in SHOWN:
            options: dict[str, Any] = size.options if method == BEST else {}
            answer = METHODS[method].fill(problem, 0, **options)
            found[f"{picture}, {method}"] = answer.picture
            if method == BEST:
                found[f"{picture}, interval"] = width_of(problem, answer)
    return found


def width_of(problem: Problem, answer: Any) -> Array:
    """Return the width of the intervals, 0 where a pixel is known."""
    return np.where(problem.scored, answer.upper - answer.lower, 0)


def draw(rows: list[tuple[str, str]], found: dict[str, Array], folder: Path) -> str:
    """Return the Markdown of the figure."""
    columns = ("given", *SHOWN, "interval", "photograph")
    figure, axes = pyplot().subplots(
        len(rows), len(columns), squeeze=False, layout="constrained",
        figsize=(1.85 * len(columns), 1.9 * len(rows) + 0.3),
    )  # fmt: skip
    grey = pyplot().get_cmap("gray").with_extremes(bad="#c8442d")
    for (picture, case), line in zip(rows, axes, strict=True):
        for name, ax in zip(columns, line, strict=True):
            image = detail(found[f"{picture}, {name}"])
            is_width = name == "interval"
            ax.imshow(
                image, cmap="magma" if is_width else grey, vmin=0, vmax=0.5 if is_width else 1
            )
            ax.set(xticks=[], yticks=[])
            ax.grid(False)
            ax.spines[:].set_visible(False)
        line[0].set_ylabel(f"{picture}, {case}", fontsize=8)
    for name, ax in zip(columns, axes[0], strict=True):
        ax.set_title("width of 90 % intervals" if name == "interval" else name, fontsize=9)
    caption = (
        "The central detail of four photographs. Missing pixels are red in the first column. The "
        "width of the 90 % intervals is from 0 (black) to 0.5 (white)."
    )
    return save(figure, folder, "pictures_restored", caption)


def detail(picture: Array) -> Array:
    """Return the middle of a picture."""
    rows, columns = (slice(max(n - DETAIL, 0) // 2, (n + DETAIL) // 2) for n in picture.shape)
    return picture[rows, columns]
