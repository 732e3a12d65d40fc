"""docs/cluster.md: its tables are those of the benchmark, and the benchmark runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")

pytest.importorskip("distributed")


def numbers(lines):
    """Return the numbers in the cells of a table after the first column."""
    return [[float(cell) for cell in line.split("|")[2:-1]] for line in lines]


def tables(text):
    """Return the tables of a text, each as a list of lines."""
    parts = (part.strip().splitlines() for part in text.split("\n\n"))
    return [lines for lines in parts if lines and lines[0].startswith("|")]


def test_the_benchmark_writes_the_tables_of_the_page():
    command = [sys.executable, "benchmarks/cluster.py", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, written = tables(done.stdout), tables(PAGE.partition("<!-- tables:")[2])
    assert [table[:2] for table in found] == [table[:2] for table in written]
    assert [len(table) for table in found] == [len(table) for table in written] == [5, 5, 6, 6]
    for line, own in zip(found[3][2:], written[3][2:], strict=True):
        assert line.split("|")[:7] == own.split("|")[:7]  # estimates do not depend on the machine
    assert all(seconds > 0 for row in numbers(found[1][2:]) for seconds in row[:1])


def test_what_travels_does_not_depend_on_the_rows():
    traffic = numbers(tables(PAGE.partition("<!-- tables:")[2])[0][2:])
    for column in zip(*traffic, strict=True):
        assert max(column) < 1.02 * min(column)
