"""The finished fits of a study on disk, so that none is done twice.

The journal of ``study.nc`` is ``study.nc.journal``.  Its first line, the header, describes the
study.  Every other line is the record of a finished fit in JSON, and is written as soon as the fit
is done.  A last line that a crash has cut short is dropped.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from nmd_lab import _version

from .cell import StudyProblem
from .grid import Grid
from .hashing import plain_value

JOURNAL_LAYOUT = 1
"""Version of the layout of journals."""


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
        If the path is a folder, or its folder does not exist.
    ValueError
        If the journal belongs to another study, or is damaged.
    RuntimeError
        If another process is writing to the journal.
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
        """Add a record; it is on disk when this method returns."""
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
            self.file.close()  # releases the lock
            self.file = None

    def _open(self, path: Path, header: dict[str, Any]) -> None:
        """Open and lock the file, read its records, and cut off an unfinished line."""
        file = path.open("a+b")
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
                _write(file, header)
        except BaseException:
            file.close()
            raise
        self.file = file


def _read(content: bytes, header: dict[str, Any], path: Path) -> dict[str, dict[str, Any]]:
    """Return the records of a journal by key, if it belongs to this study."""
    try:
        old, *records = map(json.loads, content.splitlines())
        layout = old["layout"]
        by_key = {record["key"]: record for record in records}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"path={str(path)!r} is damaged, or no journal of a study: give another path."
        ) from error
    if layout != JOURNAL_LAYOUT:
        raise ValueError(
            f"path={str(path)!r} has the layout {layout}, this version reads {JOURNAL_LAYOUT}: "
            "give another path."
        )
    check_header(old, header, path)
    return by_key


def _write(file: IO[bytes], line: dict[str, Any]) -> None:
    """Write one line, through to the disk."""
    file.write(json.dumps(line).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())


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
    for method in grid.axis("method").values:
        for name, default in method.defaults.items():
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


def check_header(old: dict[str, Any], new: dict[str, Any], path: Path) -> None:
    """Check that a study may continue a journal.

    A grid may grow or shrink, but each argument must keep at least one of its values.  Otherwise
    no earlier fit could be used, and most likely the path is a mistake.

    Parameters
    ----------
    old, new : dict
        Headers of the journal and of the study, see `journal_header`.
    path : Path
        File of the journal.

    Raises
    ------
    ValueError
        If they differ in the data, the version, the metrics, a setting or all values of an
        argument.
    """
    name = str(path)
    remedy = "give another path, or delete the file to start again."
    if old["data"] != new["data"]:
        raise ValueError(f"X is not what the study in path={name!r} was begun with: {remedy}")
    if old["version"] != new["version"]:
        raise ValueError(
            f"path={name!r} was begun with nmd_lab {old['version']}, this is {new['version']}: "
            f"{remedy}"
        )
    for metric in new["metrics"]:
        if metric not in old["metrics"]:
            raise ValueError(
                f"metrics={metric!r} was not measured in path={name!r}, only {old['metrics']}: "
                f"{remedy}"
            )
    for argument in sorted({*old["settings"], *new["settings"]}):
        was, now = old["settings"].get(argument), new["settings"].get(argument)
        if was != now:
            raise ValueError(f"{argument}={now} was {was} in path={name!r}: {remedy}")
    for argument in sorted({*old["values"], *new["values"]}):
        was, now = old["values"].get(argument, []), new["values"].get(argument, [])
        if was and now and not any(value in was for value in now):
            raise ValueError(
                f"{argument}={_short(now)} was {_short(was)} in path={name!r}: {remedy}"
            )


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
