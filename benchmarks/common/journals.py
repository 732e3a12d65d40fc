"""Results, each of which is on the disk before the next one begins."""

from __future__ import annotations

import inspect
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import nmd_lab as nmd
from benchmarks.paper.cells import state_of_code
from nmd_lab.checkpoint import hash_of
from nmd_lab.studies.cell import Record, read_records, write_record


class Journals:
    """A folder with a folder of records for each part of the page and each method.

    Parameters
    ----------
    folder : Path
        The folder; made if it is not there.
    is_stored : bool, default False
        Whether nothing new is worked out.  Then results of earlier versions of the library count,
        the last one of each cell; otherwise those of our methods are done again.

    Notes
    -----
    Two processes may work side by side on different parts, or on different methods.
    """

    def __init__(self, folder: Path, is_stored: bool = False) -> None:
        self.folder, self.is_stored = folder, is_stored
        folder.mkdir(parents=True, exist_ok=True)

    def collect(
        self,
        name: str,
        work: Callable[..., dict[str, Any]],
        cells: Iterable[dict[str, Any]],
        *,
        peer: Callable[..., Any] | None = None,
    ) -> list[Record]:
        """Return the records of some cells, each ``cell | work(**cell)``, with its seconds.

        Parameters
        ----------
        name : str
            Name of the part.
        work : callable
            A function of a module.
        cells : iterable of dict
            Arguments of JSON's types.
        peer : callable, optional
            The method of another package that `work` calls.  A change of its source makes the
            results obsolete, and an exception is one; otherwise a change of the library does.
        """
        code = state_of_code() if peer is None else inspect.getsource(peer)
        folder = self.folder / re.sub(r"\W+", "-", name)
        records = read_records(folder)
        latest = {record["what"]: record for record in records.values()}
        found = []
        for cell in cells:
            what = json.dumps(cell, sort_keys=True)
            key = hash_of(f"{what} {code}")
            if key not in records and not self.is_stored:
                records[key] = {"key": key, "what": what} | cell
                records[key] |= timed(work, cell, peer is not None)
                write_record(folder, records[key])
                print(f"{name}: {cell}: {records[key]['seconds']:.1f} s", flush=True)
            record = latest.get(what) if self.is_stored else records[key]
            if record is not None:
                found.append(record)
        return found


def timed(
    work: Callable[..., dict[str, Any]], cell: dict[str, Any], may_fail: bool
) -> dict[str, Any]:
    """Return the result of a cell with its processor time, or the error in which it ended."""
    began = processor_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
        try:
            result = work(**cell)
        except Exception as error:
            if not may_fail:
                raise
            result = {"error": f"{type(error).__name__}: {error}"[:200]}
    return {"seconds": processor_time() - began} | result


def processor_time() -> float:
    """Return the seconds of processor time of this process, and of those that it has waited for."""
    return sum(os.times()[:4])
