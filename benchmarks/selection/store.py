"""Answers that are stored as they are worked out, so that a killed run goes on."""

from __future__ import annotations

import json
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nmd_lab
from benchmarks.paper.cells import Cell, path_of, state_of_code

Answer = dict[str, Any]


class Store:
    """A folder with one JSON file for each answer.

    Parameters
    ----------
    folder : Path
        The folder; made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(
        self, work: Callable[..., Answer], *, depends_on_code: bool = True, **arguments: Any
    ) -> Answer:
        """Return work(**arguments), from the folder if it is there.

        Parameters
        ----------
        work : callable
            A function of a module; its source is a part of the file's name.
        depends_on_code : bool, default True
            Whether a change of the library makes the answer obsolete.  The thousands of fits of a
            grid are kept.
        **arguments
            Numbers and strings.
        """
        options = {"code": state_of_code()} if depends_on_code else {}
        path = path_of(self.folder, Cell({"work": work.__name__, **arguments}, options), work)
        if path.exists():
            return json.loads(path.read_text("utf-8"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nmd_lab.warnings.NMDWarning)
            answer = work(**arguments)
        unfinished = self.folder / f".{uuid.uuid4().hex}.partial"
        try:
            unfinished.write_text(json.dumps(answer, default=lambda number: number.item()), "utf-8")
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return answer
