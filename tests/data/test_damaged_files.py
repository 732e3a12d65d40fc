"""Damaged files of every kind: read, or refused in one sentence; more of them in tests/fuzz."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from waiting import PATIENCE

FUZZ = Path(__file__).parents[1] / "fuzz"
ROOT = FUZZ.parents[1]


def test_damaged_files_do_no_harm():
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(FUZZ / "read_mutated.py"), "all", "440", "0"],
        capture_output=True, text=True, timeout=PATIENCE, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-300:]
    assert "440 files" in done.stdout
    assert "0 faults" in done.stdout
