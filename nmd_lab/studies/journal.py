"""Finished fits on disk, one line each: what a study never computes twice.

The journal of ``study.nc`` is ``study.nc.journal``.  Its first line describes the study, and every
other line is a finished fit in JSON, which reached the disk before the next one began.  A line that
a crash has cut short is dropped.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

LAYOUT = 1
"""Version of the layout of journals."""


class Journal:
    """The records of finished fits, by key; on disk if there is a path.

    Parameters
    ----------
    path : Path or None
        Where the study's results go; None keeps records in memory only.
    header : dict
        What the study is, see `check_header`.
    records : dict
        Records that are known already.

    Raises
    ------
    OSError
        If the path is a folder, or in none.
    ValueError
        If the file is of another study, or no journal.
    RuntimeError
        If another process writes it.
    """

    def __init__(
        self, path: Path | None, header: dict[str, Any], records: dict[str, dict[str, Any]]
    ) -> None:
        self.records: dict[str, dict[str, Any]] = {}
        self.file: IO[bytes] | None = None
        if path is not None:
            if path.is_dir():
                raise IsADirectoryError(f"path={str(path)!r} is a folder: give a file name in it.")
            if not path.resolve().parent.is_dir():
                raise FileNotFoundError(
                    f"path={str(path)!r} is in no existing folder: make it first."
                )
            self._open(journal_path(path), header)
        for key, record in records.items():
            if key not in self.records:
                self.add(record)

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record; when this returns it is on disk."""
        if self.file is not None:
            _write(self.file, record)
        self.records[record["key"]] = record

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.file is not None:
            self.file.close()  # which gives up the lock
            self.file = None

    def _open(self, path: Path, header: dict[str, Any]) -> None:
        """Read what is there, cut off an unfinished line, and be ready to write."""
        file = path.open("a+b")
        try:
            _lock(file, path)
            file.seek(0)
            content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            if len(whole) < len(content):
                file.truncate(len(whole))
            if whole:
                self.records = _read(whole, header, path)
            else:
                _write(file, header)
        except BaseException:
            file.close()
            raise
        self.file = file


def _read(content: bytes, header: dict[str, Any], path: Path) -> dict[str, dict[str, Any]]:
    """Return the records of a journal, if it is one of this study."""
    try:
        old, *records = map(json.loads, content.splitlines())
        layout = old["layout"]
        found = {record["key"]: record for record in records}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"path={str(path)!r} is damaged, or no journal of a study: give another path."
        ) from error
    if layout != LAYOUT:
        raise ValueError(
            f"path={str(path)!r} has the layout {layout}, this version reads {LAYOUT}: give "
            "another path."
        )
    check_header(old, header, path)
    return found


def _write(file: IO[bytes], line: dict[str, Any]) -> None:
    file.write(json.dumps(line).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())


def journal_path(path: Path) -> Path:
    """Return where the journal of a study is."""
    return path.with_name(f"{path.name}.journal")


def check_header(old: dict[str, Any], new: dict[str, Any], path: Path) -> None:
    """Refuse to go on with a study that another study, or other software, began.

    A grid may grow or shrink, but each argument must keep at least one of its values: where none
    is left, nothing that was computed could be used, and most likely the path is a mistake.

    Parameters
    ----------
    old, new : dict
        "layout", "version", "data" (a hash), "metrics" (names), "settings" (what else decides the
        results, by name) and "values" (for each argument a list of values in words).
    path : Path
        Of the journal.

    Raises
    ------
    ValueError
        With what has changed.
    """
    name = str(path)
    again = "give another path, or delete the file to start again."
    if old["data"] != new["data"]:
        raise ValueError(f"X is not what the study in path={name!r} was begun with: {again}")
    if old["version"] != new["version"]:
        raise ValueError(
            f"path={name!r} was begun with nmd_lab {old['version']}, this is {new['version']}: "
            f"{again}"
        )
    for word in new["metrics"]:
        if word not in old["metrics"]:
            raise ValueError(
                f"metrics={word!r} was not measured in path={name!r}, only {old['metrics']}: "
                f"{again}"
            )
    for argument in sorted({*old["settings"], *new["settings"]}):
        was, now = old["settings"].get(argument), new["settings"].get(argument)
        if was != now:
            raise ValueError(f"{argument}={now} was {was} in path={name!r}: {again}")
    for argument in sorted({*old["values"], *new["values"]}):
        was, now = old["values"].get(argument, []), new["values"].get(argument, [])
        if was and now and not any(value in was for value in now):
            raise ValueError(
                f"{argument}={_short(now)} was {_short(was)} in path={name!r}: {again}"
            )


def _short(values: list[Any]) -> str:
    return str(values[0] if len(values) == 1 else values)


def _lock(file: IO[bytes], path: Path) -> None:
    """Keep other processes out for as long as the file is open."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise RuntimeError(
            f"path={str(path)!r} is in use by another process: wait for it, or give another path."
        ) from error
