"""Processes of a study: they give the same results, and end with the one that started them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE, wait_for

import nmd_lab as nmd

PROC = Path("/proc")

needs_proc = pytest.mark.skipif(not (PROC / "self/stat").exists(), reason="looks into /proc")

STUDY = """
import os, sys, time
from pathlib import Path
import nmd_lab as nmd

def endless(X, rank):
    Path(sys.argv[1], str(os.getpid())).touch()
    while True:
        time.sleep(0.01)

if __name__ == "__main__":
    study = nmd.Study(nmd.datasets.digits(20), method=endless, rank=[2, 3], n_splits=1)
    study.run(n_jobs=3, progress=False)
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
@pytest.mark.exhaustive
def test_no_process_outlives_a_killed_study(tmp_path):
    """Three processes for two fits: two of them work, the other waits for work."""
    script, fits = tmp_path / "study.py", tmp_path / "fits"
    script.write_text(STUDY)
    fits.mkdir()
    with subprocess.Popen(
        [sys.executable, str(script), str(fits)], stderr=subprocess.DEVNULL
    ) as study:
        wait_for(lambda: len(list(fits.iterdir())) == 2)
        started = children(study.pid)
        assert len(started) >= 3
        study.kill()
        study.wait(PATIENCE)
    wait_for(lambda: all(map(has_ended, started)))


def test_processes_give_the_same():
    """Without kernels to compile, two processes differ from one in nothing but time."""
    options = {"method": ["svd", "mean_fill"], "rank": [2, 3], "n_splits": 2}
    one, two = (
        nmd.Study(nmd.datasets.digits(20), **options).run(n_jobs=n_jobs, progress=False)
        for n_jobs in (1, 2)
    )
    assert one.drop_vars("seconds").identical(two.drop_vars("seconds"))
