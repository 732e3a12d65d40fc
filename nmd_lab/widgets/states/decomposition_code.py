"""The notebook cell that repeats what was done in the decomposition explorer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nmd_lab.result.decomposition import Decomposition

from .brush import Paint
from .code import Code, fit_call
from .matrix_data import MatrixData, corrupting_code

IMPORT = "import nmd_lab as nmd\n"


class Cell(NamedTuple):
    """What a cell repeats.

    Attributes
    ----------
    imports : str
        Further imports.
    load : str
        Lines that give X.
    values : mapping
        Settings of noise and missing entries.
    data : MatrixData
        The data.
    arguments : mapping
        Arguments of the fit.
    result : Decomposition or None
        The fit, if there is one.
    """

    imports: str
    load: str
    values: Mapping[str, Any]
    data: MatrixData
    arguments: Mapping[str, Any]
    result: Decomposition | None

    def plain(self) -> str:
        """Return the cell of a fit without paint."""
        lines, fitted = self._fit(self.result)
        return f"{IMPORT}{self.imports}\n{self.load}{lines}{fitted}"

    def painted(self, paint: Paint, before: Decomposition | None) -> str:
        """Return the cell of a fit of a painted matrix.

        Parameters
        ----------
        paint : Paint
            Entries that are hidden or revealed.
        before : Decomposition or None
            Fit from whose factors this one began; None: it began as others do.
        """
        lines, seen = corrupting_code(self.values)
        _, noisy = corrupting_code({**self.values, "missing": 0})
        options: dict[str, Any] = {"mask": Code("mask")}
        first = lines
        if before is not None and self.result is not None:
            first += self._fit(before)[1]
            options["init"] = Code("fit")
        mask = f"mask = np.isfinite(np.asarray({seen}, dtype=float))\n{paint.code()}"
        fitted = fit_call(self.result, "complete", noisy, self._named | options)
        imports = f"import numpy as np\n\n{IMPORT}{self.imports}"
        return f"{imports}\n{self.load}{first}{mask}{fitted}"

    def _fit(self, result: Decomposition | None) -> tuple[str, str]:
        """Return the lines before a fit without paint, and its call."""
        lines, seen = corrupting_code(self.values)
        holes = self.values["missing"] > 0 or bool(np.isnan(self.data.original).any())
        verb = "complete" if holes else "decompose"
        return lines, fit_call(result, verb, seen, self._named)

    @property
    def _named(self) -> dict[str, Any]:
        """Arguments that the call names; without a choice there are no offsets to name."""
        chosen = self.arguments["alpha"] == "auto"
        return {k: v for k, v in self.arguments.items() if k != "offsets" or chosen}


def loading_lines(given: str | None, making: str, *, is_own: bool) -> str:
    """Return the lines that give X.

    Parameters
    ----------
    given : str or None
        Name of the data in the notebook, or code that gives them; None if there is none.
    making : str
        Code after the name ``images`` that makes the matrix; empty if they are one.
    is_own : bool
        Whether the data are the user's.
    """
    if making:
        lines = "" if given == "images" else f"images = {given or '...'}  # your data\n"
        return f"{lines}X = images{making}\n"
    if given == "X":
        return ""
    return f"X = {given or '...'}{'  # your data' if is_own else ''}\n"
