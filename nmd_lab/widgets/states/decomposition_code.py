"""The notebook cell that repeats what was done in the decomposition explorer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nmd_lab.result.decomposition import Decomposition

from .brush import BeforeBrush, Paint
from .code import Code, fit_call
from .matrix_data import MatrixData, corrupting_code


def fitting_code(
    data: MatrixData,
    values: Mapping[str, Any],
    arguments: Mapping[str, Any],
    result: Decomposition | None,
    paint: Paint | None,
    before: BeforeBrush | None,
) -> str:
    """Return the lines that add noise and holes to X, and fit: before strokes and after them."""
    lines, seen = corrupting_code(values)
    # Without a choice there are no offsets to name
    named = {k: v for k, v in arguments.items() if k != "offsets" or arguments["alpha"] == "auto"}

    def fit(result: Decomposition | None, paint: Paint | None, **options: Any) -> str:
        if paint is None or not paint.n_painted:
            holes = values["missing"] > 0 or bool(np.isnan(data.original).any())
            verb = "complete" if holes or options else "decompose"
            return fit_call(result, verb, seen, named | options)
        _, noisy = corrupting_code({**values, "missing": 0})
        options["observed"] = Code("mask")
        return mask_code(seen, paint) + fit_call(result, "complete", noisy, named | options)

    if before is None:
        return lines + fit(result, paint)
    return lines + fit(before.fit, before.paint) + fit(result, paint, init=Code("fit"))


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
