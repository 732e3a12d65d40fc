"""A Voila app of the tests' own."""

from __future__ import annotations

import contextlib
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
