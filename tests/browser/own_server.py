"""A server of the tests' own, and a page of it that notes what goes wrong."""

import contextlib
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from waiting import PATIENCE, wait_for

ROOT = Path(__file__).parents[2]
IGNORED = (
    "favicon",
    "/lsp",
    "WebSocket connection",
    "net::ERR_NETWORK_CHANGED",
    "(reading 'schema')",  # Notebook 7 itself, at its start
    "Command 'filebrowser:open-path' not registered",  # the same
)
HOMES = {
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "IPYTHONDIR": "ipython",
    "XDG_CONFIG_HOME": "xdg/config",
    "XDG_STATE_HOME": "xdg/state",
    "XDG_CACHE_HOME": "xdg/cache",
}
"""Where servers keep their files, so that those of the user neither matter nor change."""


@contextlib.contextmanager
def serve(folder: Path, module: str, *arguments: str, port_option: str = "--port") -> Iterator[str]:
    """Run a module that serves on a port that nothing listens on, and yield its address.

    Parameters
    ----------
    folder : Path
        What the server writes goes there; it runs in the folder ``work``.
    module : str
        What Python runs with ``-m``.
    *arguments : str
        Of the module.
    port_option : str
        Which of its options says the port.

    Yields
    ------
    str
        The address, without a slash at the end.
    """
    environment = os.environ | {name: str(folder / home) for name, home in HOMES.items()}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment |= {"JUPYTER_PLATFORM_DIRS": "1", "MARIMO_SKIP_UPDATE_CHECK": "1"}
    for home in [*HOMES.values(), "work"]:
        (folder / home).mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", module, *arguments, f"{port_option}={port}"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=folder / "work", env=environment, stdout=log, stderr=log
        )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(lambda: server.poll() is not None or _answers(f"{address}/api"))
        if server.poll() is not None:
            raise RuntimeError(f"{module} did not start:\n{(folder / 'log').read_text()}")
        yield address
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=10).close()
    except urllib.error.HTTPError:
        return True  # it does not have the page
    except OSError:
        return False
    return True


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """Write a notebook of code cells."""
    written = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(written, path)


class Shown:
    """A page that is open in a browser.

    Parameters
    ----------
    page : Page
        Of Playwright.
    address : str
        The server.

    Attributes
    ----------
    errors : list of str
        What the page threw, and the errors in its console.
    outside : list of str
        What it asked of other servers.
    """

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.errors: list[str] = []
        self.outside: list[str] = []
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: self._note(str(error)))
        page.on("console", self._console)
        page.on("request", self._request)

    def _console(self, message: Any) -> None:
        where = message.location.get("url", "")
        if message.type == "error" and where not in self.outside:
            self._note(f"{message.text} ({where})")

    def _note(self, error: str) -> None:
        if not any(word in error for word in IGNORED):
            self.errors.append(error)

    def _request(self, request: Any) -> None:
        if request.url.startswith("http") and not request.url.startswith(self.address):
            self.outside.append(request.url)
