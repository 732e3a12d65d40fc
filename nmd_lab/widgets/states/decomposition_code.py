"""The notebook cell that repeats what was done in the decomposition explorer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nmd_lab.result.decomposition import Decomposition

from .brush import Paint
from .code import Code, fit_call
from .matrix_data import MatrixData, corrupting_code
from .painting import BeforeBrush

IMPORT = "import nmd_lab as nmd\n"


class Cell(NamedTuple):
    """What a cell repeats."""

    imports: str  # further imports
    load: str  # lines that give X
    values: Mapping[str, Any]  # settings of noise and missing entries
    data: MatrixData  # the data
    arguments: Mapping[str, Any]  # arguments of the fit

    def code(
        self, result: Decomposition | None, paint: Paint | None, before: BeforeBrush | None
    ) -> str:
        """Return the cell."""
        body, _ = corrupting_code(self.values)
        if before is not None:
            body += self._fit(before.fit, before.paint, {})
        body += self._fit(result, paint, {} if before is None else {"init": Code("fit")})
        imports = "import numpy as np\n\n" if "np." in body else ""
        return f"{imports}{IMPORT}{self.imports}\n{self.load}{body}"

    def _fit(
        self, result: Decomposition | None, paint: Paint | None, options: dict[str, Any]
    ) -> str:
        """Return the lines of a fit, with the mask of its paint before it."""
        _, seen = corrupting_code(self.values)
        if paint is None or not paint.n_painted:
            holes = self.values["missing"] > 0 or bool(np.isnan(self.data.original).any())
            verb = "complete" if holes or options else "decompose"
            return fit_call(result, verb, seen, self._named | options)
        _, noisy = corrupting_code({**self.values, "missing": 0})
        return mask_code(seen, paint) + fit_call(
            result, "complete", noisy, self._named | options | {"observed": Code("mask")}
        )

    @property
    def _named(self) -> dict[str, Any]:
        """Arguments that the call names; without a choice there are no offsets to name."""
        chosen = self.arguments["alpha"] == "auto"
        return {k: v for k, v in self.arguments.items() if k != "offsets" or chosen}


def mask_code(seen: str, paint: Paint) -> str:
    """Return the lines that make the mask of what is seen."""
    return f"mask = np.isfinite(np.asarray({seen}, dtype=float))\n{paint.code()}"


def loading_lines(source: str | None, making: str, *, is_own: bool) -> str:
    """Return the lines that give X."""
    if making:
        lines = "" if source == "images" else f"images = {source or '...'}  # your data\n"
        return f"{lines}X = images{making}\n"
    if source == "X":
        return ""
    return f"X = {source or '...'}{'  # your data' if is_own else ''}\n"
