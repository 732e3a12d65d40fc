"""The page docs/tables.md: the section of each part."""

from __future__ import annotations

from pathlib import Path

from benchmarks.common.journals import Journals
from benchmarks.common.summaries import with_summary
from benchmarks.paper.report import prose

from . import autoregressive, compared, coverage, ranks, regression, suites
from .sizes import FULL, Size

PARTS = {
    "compared": compared,
    "coverage": coverage,
    "suites": suites,
    "ranks": ranks,
    "regression": regression,
    "autoregressive": autoregressive,
}
"""The modules of the parts, in the order of the page."""

WITH_FIGURES = ("compared", "coverage")

INTRODUCTION = """\
# Impute tables: errors, coverage of intervals, pooled regressions

`nmd.sample(frame)` imputes a table of numeric, ordinal, binary and categorical columns, with
intervals and probabilities ([the model](sampling.md#tables)). Each part begins with its protocol,
which was fixed before its first run. Generated tables are called generated, and all others
are real."""


def page(journals: Journals, parts: list[str], size: Size, figures: Path) -> str:
    """Do what is missing, and return the page."""
    sections = [prose(INTRODUCTION.split("\n\n", 1)[1])]
    if size != FULL:
        sections.append("**These are small versions, to see that they run.**")
    for name in parts:
        module = PARTS[name]
        more = {"figures": figures} if name in WITH_FIGURES else {}
        sections.append(f"## {module.TITLE}\n\n{module.section(journals, size, **more)}")
    text = "\n\n".join([INTRODUCTION.split("\n\n", 1)[0], *sections]) + "\n"
    return with_summary(text, "tables") if size == FULL else text
