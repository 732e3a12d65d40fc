"""Voila and marimo of the tests' own."""

import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from own_server import serve, write_notebook

NOT_FOR_VOILA = ["@jupyter-notebook/lab-extension"]
"""Of JupyterLab's extensions those that Voila would load and cannot run."""


def serve_voila(folder: Path, cells: Sequence[str]) -> AbstractContextManager[str]:
    """Run Voila on a notebook of these cells; the address shows it.

    Each page that is opened runs the cells anew, in a kernel of its own.
    """
    write_notebook(folder / "work/shown.ipynb", cells)
    options = [
        "--no-browser", "--show_tracebacks=True", "--Voila.ip=127.0.0.1",
        "--Voila.port_retries=0", f"--VoilaConfiguration.extension_denylist={NOT_FOR_VOILA}",
    ]  # fmt: skip
    return serve(folder, "voila", "shown.ipynb", *options)


def serve_marimo(folder: Path, cells: Sequence[str]) -> AbstractContextManager[str]:
    """Run marimo on a notebook of these cells; the address shows it.

    Each page that is opened runs the cells anew.  As always in marimo, a name may be given a value
    in one cell only, unless it starts with an underscore.
    """
    bodies = [f"@app.cell\ndef _():\n{textwrap.indent(cell.strip(), '    ')}\n" for cell in cells]
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(["import marimo\n\napp = marimo.App()\n", *bodies])
    (work / "shown.py").write_text(text, encoding="utf-8")
    options = ["--headless", "--host=127.0.0.1", "--no-token", "--no-sandbox"]
    return serve(folder, "marimo", "--yes", "run", "shown.py", *options)
