"""A journal: records by key in a file, each of which is on the disk before the next one begins.

The journal of ``study.nc`` is ``study.nc.journal``, a file of JSON lines.  Each line is a record,
such as that of a finished fit of a study.  A last line that a crash has cut short is dropped.  Each
line holds its own checksum; a record that does not agree with it is ignored.
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

from ._runtime.disk import check_target, with_remedy
from .warnings import NMDWarning

# Numbers and text by name, which JSON can hold; "key" is its own
Record = dict[str, Any]

CHECKSUM = "crc32"  # field of a line with the checksum of the others


@contextmanager
def open_journal(
    path: Path | None, records: dict[str, Record]
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
        on_disk = _read(file, path)
        for key in records.keys() - on_disk.keys():
            _write(file, records[key], path)
        records.update(on_disk)

        def add(record: Record) -> None:
            _write(file, record, path)
            records[record["key"]] = record

        yield add


def _read(file: BinaryIO, path: Path) -> dict[str, Record]:
    """Return the records of a journal by key; cut off an unfinished line."""
    file.seek(0)
    content = file.read()
    end = content.rfind(b"\n") + 1
    file.truncate(end)
    records = [_parsed(line) for line in content[:end].splitlines()]
    if damaged := records.count(None):
        text = f"{damaged} damaged of {len(records)} lines: their fits are done again."
        warnings.warn(f"path={str(path)!r} has {text}", NMDWarning, stacklevel=5)
    return {record["key"]: record for record in records if record is not None}


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
