"""The journal of a study: its finished fits on disk, so that none is done twice.

The journal of ``study.nc`` is ``study.nc.journal``, a file of JSON lines.  The first one, the
header, describes the study.  Every other line is the record of a finished fit, and is written as
soon as the fit is done.  A last line that a crash has cut short is dropped.  Each line holds its
own checksum; a record that does not agree with it is ignored, and its fit is done again.
"""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from nmd_lab import _version
from nmd_lab._atomic import check_target, with_remedy
from nmd_lab.warnings import NMDWarning

from .cell import StudyProblem
from .grid import SOLVER, Grid, as_json

CHECKSUM = "crc32"
"""Field of a line with the checksum of the others."""

Record = dict[str, Any]


@contextmanager
def open_journal(
    path: Path | None, header: Record, records: dict[str, Record]
) -> Iterator[Callable[[Record], None]]:
    """Complete records by those on disk, and yield a function that adds one to both.

    `path` is the file of results, beside which the journal lies; None keeps all in memory.
    """
    if path is None:
        yield lambda record: records.update({record["key"]: record})
        return
    check_target(path)
    path = journal_path(path)
    with path.open("a+b", buffering=0) as file:
        _lock(file, path)
        on_disk = _read(file, header, path)
        for key in records.keys() - on_disk.keys():
            _write(file, records[key], path)
        records.update(on_disk)

        def add(record: Record) -> None:
            _write(file, record, path)
            records[record["key"]] = record

        yield add


def _read(file: BinaryIO, header: Record, path: Path) -> dict[str, Record]:
    """Return the records of a journal by key; cut off an unfinished line."""
    file.seek(0)
    content = file.read()
    file.truncate(content.rfind(b"\n") + 1)
    lines = content.splitlines(keepends=True)
    if not lines or not lines[0].endswith(b"\n"):
        _write(file, header, path)
        return {}
    first, *others = [_parsed(line) for line in lines if line.endswith(b"\n")]
    if first is None or first.keys() != header.keys():
        raise ValueError(f"path={str(path)!r} is damaged, or no journal: give another path.")
    if difference := _difference(first, header):
        raise ValueError(
            f"path={str(path)!r} holds another study, {difference}: give another path."
        )
    if damaged := others.count(None):
        text = f"{damaged} damaged of {len(others)} lines: their fits are done again."
        warnings.warn(f"path={str(path)!r} has {text}", NMDWarning, stacklevel=5)
    return {record["key"]: record for record in others if record is not None}


def _parsed(line: bytes) -> Record | None:
    """Return the content of a line without its checksum, or None if the two disagree."""
    with suppress(AttributeError, KeyError, RecursionError, TypeError, ValueError):
        content: Record = json.loads(line)
        if content.pop(CHECKSUM) == zlib.crc32(json.dumps(content).encode()):
            return content
    return None


def _write(file: BinaryIO, line: Record, path: Path) -> None:
    """Write one line, through to the disk."""
    checksum = zlib.crc32(json.dumps(line).encode())
    content = json.dumps(line | {CHECKSUM: checksum}).encode() + b"\n"
    try:
        while content:  # a full disk takes a part first, and then raises the error
            content = content[file.write(content) :]
        os.fsync(file.fileno())
    except OSError as error:
        raise with_remedy(error, path) from error


def _lock(file: BinaryIO, path: Path) -> None:
    """Lock the file against other processes until it is closed."""
    with suppress(ImportError):  # Windows
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            text = f"path={str(path)!r} is in use by another process: give another."
            raise RuntimeError(text) from error


def journal_path(path: Path) -> Path:
    """Return the file of the journal that belongs to a file of results."""
    return path.with_name(f"{path.name}.journal")


def journal_header(grid: Grid, problem: StudyProblem) -> Record:
    """Return what a journal is recognised by: metrics, and values of all arguments."""
    values: dict[str, tuple[Any, ...]] = {
        "X": (problem.data.fingerprint,),
        "version": (_version.__version__,),
    }
    values |= {"sample_dims": (problem.constants.get("sample_dims"),)}
    for method in grid.axes[SOLVER].values:
        values |= {name: (default,) for name, default in method.defaults.items()}
    values |= {name: axis.values for name, axis in grid.axes.items()}
    return dict(json.loads(as_json({"metrics": list(problem.metrics), "values": values})))


def _difference(old: Record, new: Record) -> str:
    """Return why a study may not continue a journal, "" if it may.

    A grid may grow or shrink, but each argument must keep at least one of its values.  Otherwise
    no earlier fit could be used, and most likely the path is a mistake.
    """
    if not set(new["metrics"]) <= set(old["metrics"]):
        return f"with metrics={old['metrics']}, not {new['metrics']}"
    for name, values in new["values"].items():
        before = old["values"].get(name, values)
        if not any(value in before for value in values):
            return f"with {name}={before}, not {values}"
    return ""
