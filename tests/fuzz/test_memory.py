"""Many fits in one process leave its memory as it was."""

from __future__ import annotations

import sys

import pytest

from fuzz import memory


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.exhaustive
def test_fits_leave_no_memory_behind():
    assert memory.growth(40, warm_up=30) < memory.GROWTH
