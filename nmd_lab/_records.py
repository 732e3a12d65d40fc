"""Records of finished work in a folder, a JSON file each, so that a run that is killed keeps them.

The records of ``study.nc`` are in the folder ``study.nc.fits``.  A file is written as a whole, and
through to the disk, before the next one begins.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from ._runtime.disk import write_atomically
from .warnings import NMDWarning

# Numbers and text by name, which JSON can hold; "key" is its own, and that of its file
Record = dict[str, Any]


def records_folder(path: Path) -> Path:
    """Return the folder with the records that belong to a file of results."""
    return path.with_name(f"{path.name}.fits")


def read_records(folder: Path) -> dict[str, Record]:
    """Return the records of a folder by key, the latest last; damaged ones are left out."""
    records, damaged = {}, 0
    paths = sorted(folder.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    for path in paths:
        try:
            record: Record = json.loads(path.read_bytes())
            records[record["key"]] = record
        except (IndexError, KeyError, RecursionError, TypeError, ValueError):
            damaged += 1
    if damaged:
        text = f"{damaged} damaged of {len(paths)} files: their work is done again."
        warnings.warn(f"{str(folder)!r} has {text}", NMDWarning, stacklevel=3)
    return records


def write_record(folder: Path, record: Record) -> None:
    """Write one record, through to the disk."""
    folder.mkdir(exist_ok=True)
    content = json.dumps(record).encode()
    write_atomically(folder / f"{record['key']}.json", lambda file: file.write(content))
