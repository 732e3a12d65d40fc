"""Part `calls`: fits of all kinds of data with all kinds of options, and what is done with them."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from . import call_checks, call_uses, file_uses
from .case import Case, cases
from .faults import Fault, check_warnings, is_documented, kind_of
from .ledger import Ledger

CHECKS: dict[str, Callable[[Case], None]] = {
    "fit": call_checks.fit_is_sound,
    "repeat": call_checks.same_seed_same_bits,
    "containers": call_checks.containers_agree,
    "permuted": call_checks.permuted_data_permute_the_fit,
    "use": call_uses.fit_is_used,
    "estimator": call_uses.estimators_agree,
    "table": call_uses.tables_are_read,
    "table file": file_uses.tables_keep_their_values,
    "command": file_uses.command_gives_the_fit,
    "study": call_uses.small_study_runs,
    "wrong option": call_uses.wrong_option_is_refused,
    "wrong data": call_uses.wrong_data_are_refused,
}
"""The checks by name."""

OFTEN = {
    "fit": 6,
    "use": 4,
    "containers": 4,
    "permuted": 3,
    "wrong option": 3,
    "estimator": 2,
    "command": 2,
}
SHARES = tuple(name for name in CHECKS for _ in range(OFTEN.get(name, 1)))
"""Checks to draw from, each as often as it is to be drawn."""

PATIENCE = 120
"""Seconds after which a call hangs; the slowest takes about two."""


def problem_of(case: Case) -> tuple[str, str] | None:
    """Return kind and text of the fault that a case shows, None if all is well."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                CHECKS[case.check](case)
            except Exception as error:
                if not is_documented(error):
                    raise
        check_warnings(caught)
    except Exception as error:
        return kind_of(error), str(error)
    return None


def look(case: Case, ledger: Ledger) -> None:
    """Check a case, and record it."""
    part = f"calls: {case.check}"
    ledger.passed(part)
    found = problem_of(case)
    if found is None:
        return
    kind, text = found
    ledger.failed(part, kind, text, f"python -m fuzz --again {str(case)!r}")


def run(ledger: Ledger, seconds: float, seed: int) -> None:
    """Look at cases until the time is over."""
    end = time.monotonic() + seconds
    signal.signal(signal.SIGALRM, _hangs)
    batch = 0
    while time.monotonic() < end:

        @hypothesis.seed(seed * 1_000_003 + batch)
        @settings(
            max_examples=200,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(cases(SHARES))
        def examples(case: Case) -> None:
            if time.monotonic() < end:
                signal.alarm(PATIENCE)
                look(case, ledger)
                signal.alarm(0)

        examples()
        batch += 1


def _hangs(*_: Any) -> None:
    raise Fault(f"a call takes more than {PATIENCE} s")
