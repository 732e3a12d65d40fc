"""The page docs/pictures.md: a section for each kind of case."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchmarks.common.journals import Journals
from benchmarks.common.summaries import with_summary
from benchmarks.paper.report import prose, table

from . import choice, figures, protocol
from .cases import CLIPPING, COUNTED, MISSING, NOISY
from .compared import (
    Found,
    compare,
    coverage_of,
    failures,
    geometric_mean,
    ratios,
    records_of,
    scores,
    unfinished,
)
from .ours import BEST, LIMITS
from .sizes import FULL, Size

INTRODUCTION = """\
# Photographs: missing, noisy, counted and clipped pixels

`nmd.inpaint(picture)` fills missing pixels and removes noise, with an interval for each pixel. The
rows of its matrix are overlapping patches of the image. This page compares it with other methods
on six photographs."""

HOLES, NOISE, BY_BM3D = ("interpolation", "biharmonic"), ("TV", "NLM"), ("BM3D",)
SECTIONS = {
    "Missing pixels": (tuple(MISSING), BEST, (HOLES,)),
    "Noise": (tuple(NOISY), BEST, (NOISE, BY_BM3D)),
    "Photon counts": (tuple(COUNTED), BEST, (NOISE, BY_BM3D)),
    "Clipped exposures": (tuple(CLIPPING), LIMITS, (("constant", "radial functions"),)),
}
"""Cases of each section, and the methods of the ratios."""

HEAD = ("case", "method", "compared with", "geometric mean", "lowest", "highest", "coverage")

CHECKED = ("60 % missing", "80 % missing")
"""Cases that the other photographs show, too."""


def page(journals: Journals, size: Size, folder: Path) -> str:
    """Do what is missing, and return the page."""
    title, introduction = INTRODUCTION.split("\n\n", 1)
    sections = [prose(introduction)]
    if size != FULL:
        sections.append("**This is a small version, to test that it runs.**")
    sections += [figures.restored(journals, size, folder), *protocol.section()]
    rows, parts = [], []
    for head, (cases, ours, rivals) in SECTIONS.items():
        there = [case for case in cases if case in size.cases]
        parts += [f"## {head}"] if there else []
        for case in there:
            seeds = 1 if case in CLIPPING else size.seeds
            found = records_of(journals, size, case, size.pictures, seeds)
            if found:
                parts += [f"### {case[0].upper()}{case[1:]}", *unfinished(found, seeds)]
                parts += [compare(found, size.pictures)]
                parts += failures(found)
                rows += [row(case, found, size.pictures, ours, each) for each in rivals]
        if head == "Clipped exposures" and there:
            parts.append(figures.unclipped(journals, size, folder))
    if rows:
        rows = [each for each in rows if each]
        sections += ["## Ratios of errors", prose(protocol.RATIOS), table(HEAD, rows)]
    sections += [*parts, *others(journals, size)]
    sections += [f"## {choice.TITLE}", choice.section(journals, size)]
    text = "\n\n".join([title, *(section for section in sections if section)]) + "\n"
    return with_summary(text, "pictures") if size == FULL else text


def row(
    case: str, found: Found, pictures: Iterable[str], ours: str, rivals: Iterable[str]
) -> list[str]:
    """Return our errors over those of the best rival, and our coverage; nothing if one lacks."""
    pictures = list(pictures)
    ratio = ratios(scores(found, pictures, "rmse"), ours, rivals)
    if ratio is None:
        return []
    cover = coverage_of(found, ours, pictures)
    ends = "–" if np.isnan(cover).any() else f"{cover.min():.3f} to {cover.max():.3f}"
    numbers = (geometric_mean(ratio), ratio.min(), ratio.max())
    return [case, ours, " or ".join(rivals), *(f"{number:.3f}" for number in numbers), ends]


def others(journals: Journals, size: Size) -> list[str]:
    """Return the tables of the photographs on which settings were chosen, with one seed."""
    names = [name for name in size.methods if name in protocol.CHECKED_METHODS]
    size = size._replace(methods=tuple(names))
    parts, rows = [], []
    for case in [case for case in CHECKED if case in size.cases]:
        found = records_of(journals, size, case, size.others, 1)
        if found:
            parts += [f"### {case}, other photographs", compare(found, size.others)]
            rows.append(row(case, found, size.others, BEST, HOLES))
    if not parts:
        return []
    ratio = table(HEAD, [each for each in rows if each])
    return ["## Other photographs", prose(protocol.OTHERS), ratio, *parts]
