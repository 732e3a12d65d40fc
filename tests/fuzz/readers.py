"""Part `readers`: damaged files of each kind, read in children under limits of memory and time."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from .faults import Fault, check_warnings, is_documented, kind_of, message_of
from .ledger import Ledger
from .mutate import mutated
from .specimens import KINDS, Kind, intact

SECONDS = 20
"""Time after which a reader hangs; an intact file takes a hundredth of a second."""

BATCH = 100
"""Number of files that one child reads."""

MEMORY = 1 << 30
"""Bytes that a reader may take; an intact file has some kilobytes."""

ALLOWED = (ValueError, OSError, KeyError)
"""What `read_matrix` and `load` document."""


def damaged(kind: str, seed: int, index: int) -> bytes:
    """Return the damaged file of a kind, a seed and an index."""
    rng = np.random.default_rng([seed, index, sorted(KINDS).index(kind)])
    specimens = intact(kind)
    return mutated(specimens[index % len(specimens)], rng)


def problem_of(kind: Kind, content: bytes) -> tuple[str, str] | None:
    """Return kind and text of the fault of a reader, None if all is well."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / kind.name
        path.write_bytes(content)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    kind.read(path)
                except Exception as error:
                    if not is_documented(error, ALLOWED):
                        raise
            check_warnings(caught)
        except Exception as error:
            text = message_of(error).replace(folder, "")
            return kind_of(error), f"{type(error).__name__}: {text}"
    return None


def run(ledger: Ledger, seconds: float, seed: int) -> None:
    """Read damaged files of each kind in turn until the time is over."""
    end, first = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for name in KINDS:
            read_many(name, seed, range(first, first + BATCH), ledger, Path("out/fuzz/files"))
        first += BATCH


def is_read(name: str) -> bool:
    """Return whether intact files of a kind are read, so that damaged ones mean something."""
    return all(problem_of(KINDS[name], content) is None for content in intact(name))


def read_many(name: str, seed: int, indices: range, ledger: Ledger, folder: Path) -> None:
    """Read damaged files in one child after another, each as long as none kills it."""
    part, left = f"readers: {name}", list(indices)
    while left:
        done, death = _in_child(name, seed, left)
        for index, found in done:
            ledger.passed(part)
            if found is not None:
                _record(ledger, part, found, (name, seed, index), folder)
        left = left[len(done) :]
        if left and death is not None:
            ledger.passed(part)
            _record(ledger, part, (death, "its process ended"), (name, seed, left[0]), folder)
            left = left[1:]


def _record(
    ledger: Ledger,
    part: str,
    found: tuple[str, str],
    example: tuple[str, int, int],
    folder: Path,
) -> None:
    name, seed, index = example
    again = f"python -m fuzz --again '{name}:{seed}:{index}'"
    if ledger.failed(part, *found, again):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{seed}-{index}-{KINDS[name].name}").write_bytes(damaged(name, seed, index))


def _in_child(
    name: str, seed: int, indices: list[int]
) -> tuple[list[tuple[int, tuple[str, str] | None]], str | None]:
    """Return what was found in files, and what ended the child before the last, None if nothing."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz"))
    log, said = folder / "log", folder / "said"
    child = os.fork()
    if child == 0:
        try:
            tempfile.tempdir = str(folder)
            _read_all(name, seed, indices, log, said)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    lines = log.read_text().splitlines() if log.exists() else []
    shutil.rmtree(folder, ignore_errors=True)
    done = [(index, found and tuple(found)) for index, found in map(json.loads, lines)]
    return done, _death(status) if len(done) < len(indices) else None


def _death(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return "the process ends"
    name = signal.Signals(os.WTERMSIG(status)).name
    hangs = name in ("SIGALRM", "SIGXCPU")
    return f"takes more than {SECONDS} s" if hangs else f"the process ends with {name}"


def _read_all(name: str, seed: int, indices: list[int], log: Path, said: Path) -> None:
    """Read files, and write a line for each when it is done."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.disable()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    stream = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(stream, 2)
    os.dup2(stream, 1)
    sys.stdout = sys.stderr = os.fdopen(stream, "w")
    with log.open("w") as file:
        for index in indices:
            content = damaged(name, seed, index)
            signal.alarm(SECONDS)
            before = said.stat().st_size
            found = problem_of(KINDS[name], content)
            signal.alarm(0)
            if found is None and said.stat().st_size > before:
                found = "something is printed", said.read_bytes()[before:][:200].decode("latin1")
            file.write(json.dumps([index, found]) + "\n")
            file.flush()


def repeat(example: str, out: Path) -> None:
    """Write the damaged file of "KIND:SEED:INDEX" to a folder, and read it in this process."""
    name, seed, index = example.split(":")
    content = damaged(name, int(seed), int(index))
    path = out / KINDS[name].name
    path.write_bytes(content)
    print(path)
    found = problem_of(KINDS[name], content)
    if found is not None:
        raise Fault(*found)
