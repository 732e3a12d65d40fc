"""A fixed sample of the part `calls`."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from fuzz import calls
from fuzz.case import Case, cases
from fuzz.containers import DENSE, SPARSE


@pytest.mark.exhaustive
@settings(
    max_examples=120,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(cases(calls.SHARES))
def test_no_call_shows_a_fault(case):
    assert calls.problem_of(case) is None


@pytest.mark.parametrize("container", [*DENSE, *SPARSE])
def test_every_container_gives_the_fit_of_every_other(container):
    case = Case("containers", shape=(9, 7), missing=0.3, container=container, other="csr")
    assert calls.problem_of(case) is None
