"""The page docs/selection.md: the section of each table."""

from __future__ import annotations

from pathlib import Path

from benchmarks.common.summaries import with_summary

from . import compared, multiples, never_worse, recovery
from .store import Store

TABLES = {
    "compared": compared,
    "never_worse": never_worse,
    "multiples": multiples,
    "recovery": recovery,
}
"""The modules of the tables, in the order of the page."""

INTRODUCTION = """\
# Automatic choice of rank and ridge, compared with the best settings in hindsight

`nmd.complete(X)` chooses rank, ridges, offsets and nonlinearity by held-out entries ([the
search](choosing.md)).  Neither the fit nor the choice sees the test entries."""


def sections(
    store: Store, tables: list[str], figures: Path, quick: bool, names: tuple[str, ...] = ()
) -> list[str]:
    """Do what is missing, and return the sections of some tables."""
    parts = []
    for word in tables:
        module = TABLES[word]
        records = module.run(store, quick, names)
        parts.append(f"## {module.TITLE}\n\n{module.section(records, figures)}")
    return parts


def join(parts: list[str], quick: bool) -> str:
    """Return the page."""
    note = ["**These are small versions, to see that they run.**"] if quick else []
    text = "\n\n".join([INTRODUCTION, *note, *parts]) + "\n"
    return text if quick else with_summary(text, "selection")
