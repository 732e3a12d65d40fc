"""docs/performance.md: its tables are those of the benchmark, and the benchmark runs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.performance import page  # noqa: E402
from benchmarks.performance.sparse_sets import SETS, documents  # noqa: E402
from benchmarks.performance.sparse_zeros import bare_products  # noqa: E402
from benchmarks.performance.timing import Ratio, in_turn, ratio, table  # noqa: E402


def test_the_page_has_every_table() -> None:
    text = page.PATH.read_text(encoding="utf-8")
    for part in page.TABLES.values():
        assert f"## {part.heading}\n\n{part.text}\n\n|" in text


def test_ratios_are_taken_round_by_round() -> None:
    times = np.array([[1.0, 2.0], [10.0, 30.0], [2.0, 4.0]])
    assert ratio(times, 1) == Ratio(2.0, 2.0, 2.5)
    calls: list[int] = []
    assert in_turn([lambda: calls.append(1), lambda: calls.append(2)], 2, 1).shape == (2, 2)
    assert calls == [1, 2] * 3


def test_a_table_is_markdown() -> None:
    assert table(("a", "b"), [(1, "x")]) == "| a | b |\n| --- | --- |\n| 1 | x |"


@pytest.mark.parametrize("name", SETS)
def test_sets_are_sparse_and_nonnegative(name: str) -> None:
    X = SETS[name]()
    assert X.shape == tuple(int(n) for n in name.split(", ")[1].split(" x "))
    assert 0 < X.nnz < 0.3 * np.prod(X.shape)
    assert X.data.min() > 0


def test_documents_repeat_and_have_about_so_many_words() -> None:
    X = documents(200, 300, 50.0)
    np.testing.assert_array_equal(X.toarray(), documents(200, 300, 50.0).toarray())
    assert X.sum() == 200 * 50


def test_quick_tables() -> None:
    assert page.part("machine", True).startswith("## The machine")
    bare_products(np.ones((300, 2)), np.ones((2, 40)))
