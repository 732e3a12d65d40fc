"""Files of the repository: their texts, and the modules in docs/ that make pages of the site."""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
PACKAGE, DOCS = ROOT / "nmd_lab", ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))


def text_of(name: str | Path) -> str:
    """Return the text of a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def site_module(name: str) -> ModuleType:
    """Return a module of docs/ by its name."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
