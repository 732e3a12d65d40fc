"""The page docs/pictures.md: a section for each kind of case."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.common.journals import Journals
from benchmarks.common.summaries import with_summary
from benchmarks.paper.report import prose, table

from . import choice, figures, protocol
from .cases import CLIPPING, COUNTED, MISSING, NOISY
from .compared import compare, coverage_of, failures, geometric_mean, ratios, records_of, scores
from .sizes import FULL, Size

INTRODUCTION = """\
# Photographs: missing, noisy, counted and clipped pixels

`nmd.inpaint(picture)` fills missing pixels and removes noise, with an interval for each pixel. The
rows of its matrix are overlapping patches of the picture. This page compares it with other methods
on six photographs."""

SECTIONS = {
    "Missing pixels": (tuple(MISSING), ("interpolation", "biharmonic")),
    "Noise": (tuple(NOISY), ("TV", "NLM")),
    "Photon counts": (tuple(COUNTED), ("TV", "NLM")),
    "Clipped exposures": (tuple(CLIPPING), ("constant", "radial functions")),
}
"""Cases of each section, and the methods of the ratio."""

CHECKED = ("60 % missing", "80 % missing")
"""Cases that the other photographs show, too."""


def page(journals: Journals, size: Size, folder: Path) -> str:
    """Do what is missing, and return the page."""
    title, introduction = INTRODUCTION.split("\n\n", 1)
    sections = [prose(introduction)]
    if size != FULL:
        sections.append("**This is a small version, to test that it runs.**")
    sections += [figures.restored(journals, size, folder), *protocol.section()]
    glance, parts = [], []
    for head, (cases, rivals) in SECTIONS.items():
        cases = tuple(case for case in cases if case in size.cases)
        if cases:
            parts.append(f"## {head}")
        for case in cases:
            found = records_of(journals, size, case, size.pictures, size.seeds)
            if found:
                parts += [f"### {case[0].upper()}{case[1:]}", compare(found, size.pictures, rivals)]
                parts += failures(found)
                glance += row(case, found, size.pictures, rivals)
    if glance:
        head = ["case", "compared with", "geometric mean", "lowest", "highest", "coverage"]
        sections += ["## Ratios of errors", prose(protocol.RATIOS), table(head, glance)]
    sections += [*parts, *others(journals, size)]
    sections += [f"## {choice.TITLE}", choice.section(journals, size)]
    text = "\n\n".join([title, *(section for section in sections if section)]) + "\n"
    return with_summary(text, "pictures") if size == FULL else text


def row(case: str, found, pictures, rivals) -> list[list[str]]:
    """Return our errors over those of the better rival, and our coverage, if there are some."""
    ratio = ratios(scores(found, pictures, "rmse"), rivals)
    if ratio is None:
        return []
    cover = coverage_of(found, pictures)
    ends = "–" if np.isnan(cover).any() else f"{cover.min():.3f} to {cover.max():.3f}"
    numbers = (geometric_mean(ratio), ratio.min(), ratio.max())
    return [[case, " or ".join(rivals), *(f"{number:.3f}" for number in numbers), ends]]


def others(journals: Journals, size: Size) -> list[str]:
    """Return the tables of the photographs on which settings were chosen, with one seed."""
    names = [name for name in size.methods if name in protocol.CHECKED_METHODS]
    size = size._replace(methods=tuple(names))
    parts = []
    for case in [case for case in CHECKED if case in size.cases]:
        found = records_of(journals, size, case, size.others, 1)
        if found:
            rivals = SECTIONS["Missing pixels"][1]
            parts += [f"### {case}, other photographs", compare(found, size.others, rivals)]
    return ["## Other photographs", prose(protocol.OTHERS), *parts] if parts else []
