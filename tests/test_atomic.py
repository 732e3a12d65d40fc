"""Files that are written as a whole, and what killed runs leave behind."""

import os
import subprocess
import sys
import tempfile
import time

import pytest

from nmd_lab._runtime import machine
from nmd_lab._runtime.machine import check_target, write_atomically


def dead_process() -> int:
    """Return the id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    return child.pid


def leftover(path, process, monkeypatch):
    """Return the temporary file that a process would have made."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: process)
        name = machine._prefix(path)
    file = path.with_name(f"{name}0123.partial")
    file.write_text("half")
    return file


@pytest.mark.skipif(os.name != "posix", reason="asks for processes by their id")
def test_files_of_dead_processes_are_removed_and_others_stay(tmp_path, monkeypatch):
    path = tmp_path / "fit.nc"
    dead = leftover(path, dead_process(), monkeypatch)
    of_another_file = leftover(tmp_path / "other.nc", dead_process(), monkeypatch)
    alive = leftover(path, os.getppid(), monkeypatch)
    leftover(path, 10**12, monkeypatch)  # the number of no process
    foreign = tmp_path / ".fit.nc.0123456789abcdef.partial"  # of another machine or version
    foreign.write_text("half")
    old = tmp_path / ".fit.nc.fedcba9876543210.partial"
    old.write_text("half")
    long_ago = time.time() - 2 * machine.MAX_WRITE_SECONDS
    os.utime(old, (long_ago, long_ago))
    write_atomically(path, lambda file: file.write(b"x"))
    assert not dead.exists()
    assert not old.exists()
    assert of_another_file.exists()
    assert alive.exists()
    assert foreign.exists()
    assert path.read_bytes() == b"x"


def test_an_error_keeps_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")

    def write(file):
        file.write(b"new")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=r"path='.*a' cannot be written \(No space left") as caught:
        write_atomically(path, write)
    assert caught.value.errno == 28
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_found_before(tmp_path, monkeypatch):
    """As /proc does to root."""

    def refuse(*_, **__):
        raise FileNotFoundError(2, "No such file or directory")

    check_target(tmp_path / "a", "out")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(FileNotFoundError, match=r"out='.*a' cannot be written.* another path\.$"):
        check_target(tmp_path / "a", "out")
