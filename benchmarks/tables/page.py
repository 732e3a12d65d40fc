"""The page docs/tables.md: the section of each part."""

from __future__ import annotations

from pathlib import Path

from benchmarks.paper.report import prose

from . import autoregressive, compared, coverage, ranks, regression
from .journals import Journals
from .sizes import FULL, Size

PARTS = {
    "compared": compared,
    "coverage": coverage,
    "ranks": ranks,
    "regression": regression,
    "autoregressive": autoregressive,
}
"""The modules of the parts, in the order of the page."""

INTRODUCTION = """\
# Tables: filled, with intervals that hold, and pooled

`nmd.sample(frame)` fills a table of numbers, levels, yes or no and classes, and has
intervals and probabilities ([the model](sampling.md#tables)). This page is written by `make
tables`; nothing in it is
edited by hand. Each part says its protocol, which was fixed before its first run. Generated tables
are called generated; all others are real."""


def page(journals: Journals, parts: list[str], size: Size, figures: Path) -> str:
    """Do what is missing, and return the page."""
    sections = [prose(INTRODUCTION.split("\n\n", 1)[1])]
    if size != FULL:
        sections.append("**These are small versions, to see that they run.**")
    for name in parts:
        module = PARTS[name]
        more = {"figures": figures} if name == "coverage" else {}
        sections.append(f"## {module.TITLE}\n\n{module.section(journals, size, **more)}")
    return "\n\n".join([INTRODUCTION.split("\n\n", 1)[0], *sections]) + "\n"
