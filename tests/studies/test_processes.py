"""Processes of a study end with the one that started them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE, wait_for

PROC = Path("/proc")

needs_proc = pytest.mark.skipif(not (PROC / "self/stat").exists(), reason="looks into /proc")

STUDY = """
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
import nmd_lab as nmd

def endless(X, rank):
    Path(sys.argv[1], str(os.getpid())).touch()
    while True:
        time.sleep(0.01)

if __name__ == "__main__":
    study = nmd.Study(nmd.datasets.digits(20), method=endless, rank=[2, 3], n_splits=1)
    study.run(n_jobs=4, progress=False)
"""


def fields(process: Path) -> list[str]:
    """Return the state and the parent of a process, and what follows; nothing if it has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def children(parent: int) -> list[Path]:
    processes = [path for path in PROC.iterdir() if path.name.isdigit()]
    return [path for path in processes if fields(path)[1:2] == [str(parent)]]


def has_ended(process: Path) -> bool:
    return fields(process)[:1] in ([], ["Z"], ["X"])


@needs_proc
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_no_process_outlives_a_study(name, tmp_path):
    """Four processes for two fits: two of them work, the others wait for work."""
    script, fits = tmp_path / "study.py", tmp_path / "fits"
    script.write_text(STUDY)
    fits.mkdir()
    with subprocess.Popen(
        [sys.executable, str(script), str(fits)], stderr=subprocess.DEVNULL
    ) as study:
        wait_for(lambda: len(list(fits.iterdir())) == 2)
        started = children(study.pid)
        assert len(started) >= 4
        os.kill(study.pid, getattr(signal, name))
        study.wait(PATIENCE)
    wait_for(lambda: all(map(has_ended, started)))


def test_a_process_that_starts_after_the_end_of_its_parent_ends():
    begin = "from nmd_lab.studies.processes import exit_with_parent; import os, time\n"
    wait = "exit_with_parent(os.getppid() + 1)\nwhile True: time.sleep(0.01)"
    command = [sys.executable, "-c", begin + wait]
    run = subprocess.run(command, timeout=PATIENCE, check=False, stderr=subprocess.PIPE)
    assert (run.returncode, run.stderr) == (1, b"")
