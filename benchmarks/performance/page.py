"""The page docs/performance.md: its tables with a heading and a text each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks import first_call
from benchmarks.common.summaries import with_summary

from .iterations import ratios
from .machine import description, peaks
from .quality import by_time
from .ratings import beside_cmfrec
from .scaling import by_ratings, by_size
from .sparse_zeros import passes
from .threads import speed_up

PATH = Path(__file__).parents[2] / "docs" / "performance.md"


class Part(NamedTuple):
    """A table of the page.

    Attributes
    ----------
    heading, text : str
        Heading, and what the table shows.
    make : callable
        Function of ``quick`` that measures and returns the table.
    """

    heading: str
    text: str
    make: Callable[[bool], str]


TABLES = {
    "first": Part(
        "The first call",
        "Processor seconds of a new process on one thread, for the calls of the README: with "
        "nothing compiled, and in a second process, which finds the code on disk.  Imports are "
        "those of `import nmd_lab`; the dearest is one kernel with all that it calls.",
        first_call.table,
    ),
    "machine": Part(
        "The machine", "The speed of a large matrix product and of a copy, one thread.", peaks
    ),
    "iterations": Part(
        "An iteration of Algorithm 1",
        "Its time over that of its three bare products (WH, X Hᵀ, WᵀX) by BLAS, in turn, one "
        "thread: median and quartiles.  The last column compares the two precisions.",
        ratios,
    ),
    "zeros": Part(
        "Sparse matrices whose absent entries are zeros",
        "`decompose` at rank 16 with ReLU, one thread.  A pass is compared with the products WH, "
        "G Hᵀ and Gᵀ W, tile by tile.",
        passes,
    ),
    "quality": Part(
        "Error by time on sparse nonnegative data",
        "Relative error of ReLU + Frobenius at rank 16 on one thread, from the best factors within "
        "some seconds, start included.  Adam has three step sizes, and all others have their "
        "defaults.  The lowest error of a line is bold.",
        by_time,
    ),
    "ratings": Part(
        "Ratings by alternating least squares",
        "One million generated ratings, 6040 x 3706, ridge 10, offsets of rows and columns, one "
        "thread.  An iteration updates all rows and columns once.  The objective has the same "
        "terms for both; a lower one is better.",
        beside_cmfrec,
    ),
    "size": Part(
        "Size and rank of dense data",
        "A plain iteration of ReLU + Frobenius, float64, one thread.",
        by_size,
    ),
    "large": Part(
        "Up to 100 million ratings",
        "`complete` with alternating least squares at rank 8, generated ratings of 17 700 columns "
        "with 208 in a row, float32, one thread, in a process of its own.  Seconds of five "
        "iterations include the start.  Memory is all that the process has, data included.",
        by_ratings,
    ),
    "threads": Part("Two threads", "Median time of an iteration.", speed_up),
}


def part(name: str, quick: bool) -> str:
    """Return a section of the page, measured now."""
    heading, text, make = TABLES[name]
    return f"## {heading}\n\n{text}\n\n{make(quick)}\n"


def whole(parts: list[str]) -> str:
    """Return the page."""
    head = f"# Performance: seconds and memory\n\nMeasured on: {description()}.\n"
    return with_summary("\n".join([head, *parts]), "performance")
