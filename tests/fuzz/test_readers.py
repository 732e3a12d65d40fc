"""A fixed sample of the part `readers`."""

from __future__ import annotations

import os

import pytest
from some import some

from fuzz import readers
from fuzz.ledger import Ledger
from fuzz.specimens import KINDS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.parametrize("kind", some(list(KINDS), 6))
def test_damaged_files_are_read_or_refused(kind, tmp_path):
    ledger = Ledger()
    assert readers.is_read(kind)
    readers.read_many(kind, 0, range(30), ledger, tmp_path)
    assert ledger.tried.total() == 30
    assert not ledger.failures
