"""Node, which runs the front end outside a browser."""

import shutil
from pathlib import Path

import pytest


def node() -> str:
    """Return the path of Node: that of the machine, or the one that comes with Playwright."""
    own = shutil.which("node")
    if own is not None:
        return own
    playwright = pytest.importorskip("playwright", reason="node is missing")
    return str(Path(playwright.__file__).parent / "driver" / "node")
