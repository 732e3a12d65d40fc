"""A JupyterLab, a Voila and a marimo of the tests' own, and a notebook that a browser works in."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import nbformat
from helpers import PATIENCE, wait_for

ROOT = Path(__file__).parents[2]
IGNORED = (
    "favicon",
    "/lsp",
    "WebSocket connection",
    "net::ERR_NETWORK_CHANGED",
    "(reading 'schema')",  # Notebook 7 itself, at its start
    "Command 'filebrowser:open-path' not registered",  # the same
)
OF_USER = ("JUPYTER", "IPYTHON", "XDG")
"""How variables begin that say where a user has files; those neither matter nor change here."""


@contextlib.contextmanager
def serve_module(
    folder: Path, module: str, *arguments: str, port_option: str = "--port"
) -> Iterator[str]:
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
    environment = {k: each for k, each in os.environ.items() if not k.startswith(OF_USER)}
    environment |= {"HOME": str(folder), "JUPYTER_CONFIG_DIR": str(folder / "config")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment |= {"JUPYTER_PLATFORM_DIRS": "1", "MARIMO_SKIP_UPDATE_CHECK": "1"}
    (folder / "work").mkdir(exist_ok=True)
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
        wait_for(lambda: server.poll() is not None or _listens(port))
        if server.poll() is not None:
            raise RuntimeError(f"{module} did not start:\n{(folder / 'log').read_text()}")
        yield address
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


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
        What the page threw, and the errors in its console but for what it asked of other servers.
    """

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.errors: list[str] = []
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: self._note(str(error)))
        page.on("console", self._console)

    def _console(self, message: Any) -> None:
        where = message.location.get("url", "")
        outside = where.startswith("http") and not where.startswith(self.address)
        if message.type == "error" and not outside:
            self._note(f"{message.text} ({where})")

    def _note(self, error: str) -> None:
        if not any(word in error for word in IGNORED):
            self.errors.append(error)


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
OVERRIDES = {
    "@jupyterlab/notebook-extension:tracker": {
        "windowingMode": "none",
        "autoStartDefaultKernel": True,
    },
    "@jupyterlab/apputils-extension:notification": {
        "checkForUpdates": False,
        "doNotDisturbMode": True,
        "fetchNews": "false",
    },
}
LAB, NOTEBOOK_7 = "lab/tree/{}?reset", "notebooks/{}"
"""Where the server shows a notebook: in JupyterLab, or in Notebook 7 if that is installed."""


def find_chromium() -> str | None:
    """Return the path of a browser, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def serve(folder: Path) -> AbstractContextManager[str]:
    """Run JupyterLab in a folder, with Notebook 7 if that is installed."""
    settings = folder / "settings"
    settings.mkdir()
    (settings / "overrides.json").write_text(json.dumps(OVERRIDES))
    notebook_7 = folder / "config/jupyter_notebook_config.json"  # it takes no options here
    notebook_7.parent.mkdir(exist_ok=True)
    notebook_7.write_text('{"JupyterNotebookApp": {"expose_app_in_browser": true}}')
    options = [
        "--no-browser", "--allow-root",
        "--ServerApp.ip=127.0.0.1", "--ServerApp.port_retries=0",
        "--IdentityProvider.token=", "--ServerApp.password=", "--ServerApp.disable_check_xsrf=True",
        f"--ServerApp.root_dir={folder / 'work'}", f"--LabApp.app_settings_dir={settings}",
        f"--LabApp.user_settings_dir={folder / 'user'}",
        f"--LabApp.workspaces_dir={folder / 'workspaces'}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
        "--LabApp.news_url=None",
    ]  # fmt: skip
    return serve_module(folder, "jupyterlab", *options, port_option="--ServerApp.port")


class Notebook(Shown):
    """A notebook that is open in a browser.

    Parameters
    ----------
    page : Page
        Of Playwright.
    address : str
        The server.
    folder : Path
        The server's files.
    """

    def __init__(self, page: Any, address: str, folder: Path) -> None:
        super().__init__(page, address)
        self.folder, self.name = folder, ""

    def show(self, code: str) -> None:
        """Make an explorer in the place of all that the shared notebook has; its kernel goes on."""
        if self.name != SHARED:
            self.open(SHARED, [])
        self.page.evaluate(NO_CELL)
        before = "if 'explorer' in globals(): explorer.close()"
        self.run(f"{before}\nimport nmd_lab as nmd\n{code}\nexplorer")

    def open(self, name: str, cells: Sequence[str], where: str = LAB) -> None:
        """Write a notebook, open it in a kernel of its own and run its cells."""
        self.end_kernels()
        self.name = name
        write_notebook(self.folder / "work" / name, cells)
        self.page.goto(f"{self.address}/{where.format(name)}")
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        self.page.wait_for_function(IDLE)
        self.command("notebook:run-all-cells")

    def command(self, name: str) -> None:
        """Execute one of JupyterLab's commands."""
        self.page.evaluate(f"() => window.jupyterapp.commands.execute('{name}')")

    def run(self, code: str) -> str:
        """Put code into a new last cell, run it, and return what it prints."""
        page = self.page
        before = page.locator(".jp-Notebook .jp-CodeCell").count()
        page.evaluate(NEW_CELL, code)
        cell = page.locator(".jp-Notebook .jp-CodeCell").nth(before)
        cell.locator(".jp-InputPrompt", has_text=re.compile(r"\[\d+\]")).wait_for()
        return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts()).strip()

    def end_kernels(self) -> None:
        """Leave the page, and end all kernels."""
        self.page.goto("about:blank")
        with urllib.request.urlopen(f"{self.address}/api/kernels", timeout=PATIENCE) as answer:
            kernels = json.load(answer)
        for kernel in kernels:
            request = urllib.request.Request(
                f"{self.address}/api/kernels/{kernel['id']}", method="DELETE"
            )
            urllib.request.urlopen(request, timeout=PATIENCE).close()


IDLE = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"

SHARED = "shared.ipynb"

NO_CELL = """() => {
  const { sharedModel } = window.jupyterapp.shell.currentWidget.content.model;
  sharedModel.deleteCellRange(1, sharedModel.cells.length);
  sharedModel.cells[0].setSource('');
  sharedModel.cells[0].setOutputs([]);
}"""

NEW_CELL = """async code => {
  const panel = window.jupyterapp.shell.currentWidget, commands = window.jupyterapp.commands;
  panel.content.activeCellIndex = panel.content.widgets.length - 1;
  await commands.execute('notebook:insert-cell-below');
  panel.content.activeCell.model.sharedModel.setSource(code);
  await commands.execute('notebook:run-cell');
}"""


def serve_voila(folder: Path, cells: Sequence[str]) -> AbstractContextManager[str]:
    """Run Voila on a notebook of these cells; the address shows it.

    Each page that is opened runs the cells anew, in a kernel of its own.
    """
    write_notebook(folder / "work/shown.ipynb", cells)
    options = [
        "--no-browser", "--show_tracebacks=True", "--Voila.ip=127.0.0.1",
        "--Voila.port_retries=0",
        # Of JupyterLab's extensions the one that Voila would load and cannot run
        "--VoilaConfiguration.extension_denylist=['@jupyter-notebook/lab-extension']",
    ]  # fmt: skip
    return serve_module(folder, "voila", "shown.ipynb", *options)


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
    return serve_module(folder, "marimo", "--yes", "run", "shown.py", *options)


PROGRAMS = {"jupyterlab": LAB, "notebook": NOTEBOOK_7, "voila": serve_voila, "marimo": serve_marimo}
"""What shows explorers: where the server has it, or its own server."""
