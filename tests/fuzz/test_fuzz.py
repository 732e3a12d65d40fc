"""A fixed sample of all that `make fuzz` tries."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from some import some

from fuzz.calls import Case, cases
from fuzz.files import KINDS, Damage, damages
from fuzz.matrices import DENSE, SPARSE
from fuzz.memory import Growth

FIXED = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.exhaustive
@settings(FIXED, max_examples=120)
@given(cases)
def test_no_call_shows_a_fault(case):
    case.check()


@pytest.mark.parametrize("container", DENSE + SPARSE)
def test_every_container_gives_the_fit_of_every_other(container):
    Case("containers", shape=(9, 7), missing=0.3, container=container, other="csr").check()


@forks
@pytest.mark.parametrize("kind", some(list(KINDS), 6))
def test_damaged_files_are_read_or_refused(kind):
    for specimen in range(6):
        Damage(kind, specimen).check()

    @settings(FIXED, max_examples=30)
    @given(damages(kind))
    def look(damage):
        damage.check()

    look()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.exhaustive
def test_fits_leave_no_memory_behind():
    Growth(count=40, warm_up=30).check()
