"""docs/scale.md: its table is that of the benchmark, and the benchmark runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/scale.md").read_text(encoding="utf-8")


def test_the_benchmark_writes_the_table_of_the_page(tmp_path):
    command = [sys.executable, "benchmarks/scale.py", "--gib", "0.01", "--entries", "100000"]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    header, rule, *lines = done.stdout.strip().splitlines()
    assert f"{header}\n{rule}\n" in PAGE
    assert [line.split("|")[1].strip() for line in lines] == [
        "dense float32, ReLU",
        "SparseStore, identity",
    ]
    for line in lines:
        reading, inside, streamed = (float(cell) for cell in line.split("|")[5:8])
        assert min(reading, inside, streamed) >= 0
        assert line.split("|")[1].strip() in PAGE
    assert not list(tmp_path.iterdir())


def test_the_page_says_which_script_wrote_the_table():
    _, mark, table = PAGE.partition("<!-- tables: written by benchmarks/scale.py --write -->")
    assert mark
    own, closed, _ = table.partition("<!-- end of the tables -->")
    assert closed
    assert len([line for line in own.splitlines() if line.startswith("|")]) == 4
