"""A few kills of each kind; what holds after them does not depend on their moment."""

from __future__ import annotations

import os

import pytest

from fuzz import interrupts, save_kills, study_kills
from fuzz.ledger import Ledger

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


def test_a_killed_save_leaves_a_whole_file():
    ledger = Ledger()
    for seed in range(4):
        save_kills.look(ledger, seed)
    assert not ledger.failures


def test_ctrl_c_gives_the_best_so_far():
    ledger = Ledger()
    for seed in range(6):
        interrupts.look(ledger, seed)
    assert not ledger.failures


def test_a_killed_study_resumes():
    ledger = Ledger()
    study_kills.look(ledger, 0, n_jobs=1)
    assert not ledger.failures
