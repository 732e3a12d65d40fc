"""The front end: the ES modules of ``front/`` as one, since a widget has a single module.

No build step: import lines are left out, and exports become plain functions.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent / "front"

MODULES = (
    "dom", "axes", "mosaic", "controls", "curves", "pictures", "components", "drawing", "scatter",
    "dots", "grid", "stars", "runs", "explorer",
)  # fmt: skip
"""Modules in the order in which they need each other."""

IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def script() -> str:
    """Return all modules as one, with the default export of the last."""
    modules = [(FOLDER / f"{name}.mjs").read_text(encoding="utf-8") for name in MODULES]
    return "\n".join(EXPORT.sub("", IMPORT.sub("", module)) for module in modules)


def style() -> str:
    """Return all style sheets as one."""
    sheets = sorted(FOLDER.glob("*.css"))
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
