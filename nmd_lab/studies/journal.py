"""The finished fits of a study on disk, so that none is done twice.

The journal of ``study.nc`` is ``study.nc.journal``.  Its first line, the header, describes the
study.  Every other line is the record of a finished fit in JSON, and is written as soon as the fit
is done.  A last line that a crash has cut short is dropped.  Each line holds its own checksum; a
record that does not agree with it is ignored, and its fit is done again.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from nmd_lab import _version
from nmd_lab._atomic import check_target, with_remedy
from nmd_lab.warnings import NMDWarning

from .cell import StudyProblem
from .grid import Grid
from .hashing import plain_value

JOURNAL_LAYOUT = 1
"""Version of the layout of journals."""

CHECKSUM = "crc32"
"""Field of a line with the checksum of the others."""


class Journal:
    """The records of finished fits, in memory and on disk.

    Parameters
    ----------
    path : Path or None
        File of the study's results, beside which the journal lies; None keeps records in memory
        only.
    header : dict
        Description of the study, see `journal_header`.
    records : dict
        Earlier records by key, which the journal gets if it does not have them.

    Attributes
    ----------
    records : dict
        All records by key.

    Raises
    ------
    OSError
        If the path is a folder, or its folder does not exist or cannot be written.
    ValueError
        If the journal belongs to another study, or its header is damaged.
    RuntimeError
        If another process is writing to the journal.
    """

    def __init__(
        self, path: Path | None, header: dict[str, Any], records: dict[str, dict[str, Any]]
    ) -> None:
        self.records: dict[str, dict[str, Any]] = {}
        self.file: IO[bytes] | None = None
        if path is not None:
            check_target(path)
            self.path = journal_path(path)
            self._open(self.path, header)
        for key, record in records.items():
            if key not in self.records:
                self.add(record)

    def add(self, record: dict[str, Any]) -> None:
        """Add a record; it is on disk when this method returns."""
        if self.file is not None:
            _write(self.file, record, self.path)
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
            self.file.close()  # releases the lock
            self.file = None

    def _open(self, path: Path, header: dict[str, Any]) -> None:
        """Open and lock the file, read its records, and cut off an unfinished line."""
        file = path.open("a+b", buffering=0)  # else a failed write would be repeated at the end
        try:
            _lock(file, path)
            file.seek(0)
            content = file.read()
            complete = content[: content.rfind(b"\n") + 1]
            if len(complete) < len(content):
                file.truncate(len(complete))
            if complete:
                self.records = _read(complete, header, path)
            else:
                _write(file, header, path)
        except BaseException:
            file.close()
            raise
        self.file = file


def _read(content: bytes, header: dict[str, Any], path: Path) -> dict[str, dict[str, Any]]:
    """Return the records of a journal by key, if it belongs to this study."""
    first, *lines = content.splitlines()
    old = _parsed(first)
    try:
        layout = old["layout"]
        if layout == JOURNAL_LAYOUT:
            differences = list(header_differences(old, header, path))
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(
            f"path={str(path)!r} is damaged, or no journal of a study: give another path."
        ) from error
    if layout != JOURNAL_LAYOUT:
        raise ValueError(
            f"path={str(path)!r} has the layout {layout}, this version reads {JOURNAL_LAYOUT}: "
            "give another path."
        )
    if differences:
        raise ValueError(differences[0])
    records = [record for record in map(_parsed, lines) if record is not None]
    if damaged := len(lines) - len(records):
        warnings.warn(
            f"path={str(path)!r} has {damaged} damaged of {len(lines)} lines: their fits are done "
            "again.",
            NMDWarning,
            stacklevel=5,
        )
    return {record["key"]: record for record in records}


def _parsed(line: bytes) -> Any:
    """Return the content of a line without its checksum, or None if the two disagree."""
    try:
        content = json.loads(line)
        checksum = content.pop(CHECKSUM)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    return content if checksum == zlib.crc32(json.dumps(content).encode()) else None


def _write(file: IO[bytes], line: dict[str, Any], path: Path) -> None:
    """Write one line, through to the disk; after an error the file ends as before."""
    checksum = zlib.crc32(json.dumps(line).encode())
    content = memoryview(json.dumps(line | {CHECKSUM: checksum}).encode() + b"\n")
    length = os.fstat(file.fileno()).st_size
    try:
        while content:
            content = content[file.write(content) :]
        os.fsync(file.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            file.truncate(length)
        raise with_remedy(error, path) from error


def journal_path(path: Path) -> Path:
    """Return the file of the journal that belongs to a file of results."""
    return path.with_name(f"{path.name}.journal")


def journal_header(grid: Grid, problem: StudyProblem) -> dict[str, Any]:
    """Return the description of a study by which its journal is recognised.

    Parameters
    ----------
    grid : Grid
        Grid of the study.
    problem : StudyProblem
        Data and errors of the study.

    Returns
    -------
    dict
        "layout" and "version" (of journals and of nmd_lab), "data" (hash of the data), "metrics"
        (names), "settings" (what else decides the results, by name) and "values" (for each
        argument the list of its values, in numbers and text).
    """
    values: dict[str, list[Any]] = {}
    for axis in grid.axes:
        is_method = axis.name == "method"
        values[axis.name] = [v.name if is_method else plain_value(v) for v in axis.values]
    on_axes = set(values)
    given = next((axis.values for axis in grid.axes if axis.name == "alpha"), ())
    alphas: list[dict[str, Any]] = [{"alpha": value} for value in given] or [{}]
    for method, alpha in itertools.product(grid.axis("method").values, alphas):
        for name, default in method.settled(alpha).items():
            if name not in on_axes:
                defaults = values.setdefault(name, [])
                if plain_value(default) not in defaults:
                    defaults.append(plain_value(default))
    return {
        "layout": JOURNAL_LAYOUT,
        "version": _version.__version__,
        "data": problem.data.fingerprint(),
        "metrics": list(problem.metrics),
        "settings": {"sample_dims": plain_value(problem.constants.get("sample_dims"))},
        "values": values,
    }


def header_differences(old: dict[str, Any], new: dict[str, Any], path: Path) -> Iterator[str]:
    """Yield the reasons why a study may not continue a journal, each as a sentence.

    A grid may grow or shrink, but each argument must keep at least one of its values.  Otherwise
    no earlier fit could be used, and most likely the path is a mistake.

    Parameters
    ----------
    old, new : dict
        Headers of the journal and of the study, see `journal_header`.
    path : Path
        File of the journal.
    """
    name = str(path)
    remedy = "give another path, or delete the file to start again."
    if old["data"] != new["data"]:
        yield f"X is not what the study in path={name!r} was begun with: {remedy}"
    if old["version"] != new["version"]:
        yield (
            f"path={name!r} was begun with nmd_lab {old['version']}, this is {new['version']}: "
            f"{remedy}"
        )
    for metric in new["metrics"]:
        if metric not in old["metrics"]:
            yield (
                f"metrics={metric!r} was not measured in path={name!r}, only {old['metrics']}: "
                f"{remedy}"
            )
    for argument in sorted({*old["settings"], *new["settings"]}):
        was, now = old["settings"].get(argument), new["settings"].get(argument)
        if was != now:
            yield f"{argument}={now} was {was} in path={name!r}: {remedy}"
    for argument in sorted({*old["values"], *new["values"]}):
        was, now = old["values"].get(argument, []), new["values"].get(argument, [])
        if was and now and not any(value in was for value in now):
            yield f"{argument}={_short(now)} was {_short(was)} in path={name!r}: {remedy}"


def _short(values: list[Any]) -> str:
    """Return a list as text, and its item alone if it has one."""
    return str(values[0] if len(values) == 1 else values)


def _lock(file: IO[bytes], path: Path) -> None:
    """Lock the file against other processes until it is closed."""
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
