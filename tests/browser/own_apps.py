"""Voila and marimo of the tests' own."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from own_server import free_port, serve, write_notebook

NOT_FOR_VOILA = ["@jupyter-notebook/lab-extension"]
"""Of JupyterLab's extensions those that Voila would load and cannot run."""


@contextlib.contextmanager
def serve_voila(folder: Path, cells: Sequence[str]) -> Iterator[str]:
    """Run Voila on a notebook of these cells, and yield the address that shows it.

    Each page that is opened runs the cells anew, in a kernel of its own.
    """
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    write_notebook(work / "shown.ipynb", cells)
    port = free_port()
    options = [
        "--no-browser", "--show_tracebacks=True", "--Voila.ip=127.0.0.1", f"--port={port}",
        "--Voila.port_retries=0", f"--VoilaConfiguration.extension_denylist={NOT_FOR_VOILA}",
    ]  # fmt: skip
    with serve(folder, port, "voila", "shown.ipynb", *options) as address:
        yield address


@contextlib.contextmanager
def serve_marimo(folder: Path, cells: Sequence[str]) -> Iterator[str]:
    """Run marimo on a notebook of these cells, and yield the address that shows it.

    Each page that is opened runs the cells anew.  As always in marimo, a name may be given a value
    in one cell only, unless it starts with an underscore.
    """
    bodies = [f"@app.cell\ndef _():\n{textwrap.indent(cell.strip(), '    ')}\n" for cell in cells]
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(["import marimo\n\napp = marimo.App()\n", *bodies])
    (work / "shown.py").write_text(text, encoding="utf-8")
    port = free_port()
    options = ["--headless", "--host=127.0.0.1", f"--port={port}", "--no-token", "--no-sandbox"]
    with serve(folder, port, "marimo", "--yes", "run", "shown.py", *options) as address:
        yield address
