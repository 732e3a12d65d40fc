"""The table of tried and failed."""

from __future__ import annotations

from fuzz.ledger import Ledger


def test_ledgers_add_up_and_survive_a_file(tmp_path):
    one, two = Ledger(), Ledger()
    for ledger, count in ((one, 3), (two, 5)):
        ledger.passed("part", count)
        assert ledger.failed("part", "kind", "text", f"example {count}")
        assert not ledger.failed("part", "kind", "text", "another")
    two.write(tmp_path / "two.json")
    one.add(Ledger.read(tmp_path / "two.json"))
    assert one.tried["part"] == 8
    (failure,) = one.unknown
    assert (failure.count, failure.example) == (4, "example 3")
    assert "part" in one.table()
    assert "4 x kind" in one.table()
