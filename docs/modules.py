"""Print a line a module: its name and the first sentence of its docstring.

python docs/modules.py
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "nmd_lab"


def sentence(path: Path) -> str:
    """Return the first sentence of a module, or of the ``__init__.py`` of a folder."""
    file = path / "__init__.py" if path.is_dir() else path
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return re.split(r"(?<=\.)\s", " ".join(text.split()))[0]


def inside(folder: Path) -> list[Path]:
    """Return the modules of a folder without its helpers, and then its folders."""
    hidden = "__init__" if folder == PACKAGE else "_"  # the helpers at the top are a layer
    files = [path for path in sorted(folder.glob("*.py")) if not path.stem.startswith(hidden)]
    return files + sorted(path.parent for path in folder.glob("*/__init__.py"))


def tree(folder: Path, indent: str = "") -> list[str]:
    """Return a line for each module, those of folders below the line of the folder."""
    lines = []
    for path in inside(folder):
        name = f"{indent}{path.name}{'/' * path.is_dir()}"
        lines.append(f"{name:<24} {sentence(path)}")
        lines += tree(path, f"{indent}  ") if path.is_dir() else []
    return lines


if __name__ == "__main__":
    print("\n".join(tree(PACKAGE)))
