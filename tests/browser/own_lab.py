"""A JupyterLab, a Voila and a marimo of the tests' own, and a notebook that a browser works in."""

import json
import shutil
import textwrap
import urllib.request
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import own_server
from own_server import Shown, write_notebook
from waiting import PATIENCE

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
    return own_server.serve(folder, "jupyterlab", *options, port_option="--ServerApp.port")


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
        self.page.wait_for_function(KERNEL_IDLE)
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
        prompt = cell.locator(".jp-InputPrompt")
        prompt.filter(has_text="[*]").or_(prompt.filter(has_text="[")).wait_for()
        done = "n => {const p=document.querySelectorAll('.jp-Notebook .jp-CodeCell')[n]"
        done += "?.querySelector('.jp-InputPrompt'); return /\\[\\d+\\]/.test(p?.textContent||'')}"
        page.wait_for_function(done, arg=before)
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


KERNEL_IDLE = (
    "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status"
    " === 'idle'"
)

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
    return own_server.serve(folder, "voila", "shown.ipynb", *options)


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
    return own_server.serve(folder, "marimo", "--yes", "run", "shown.py", *options)


PROGRAMS = {"jupyterlab": LAB, "notebook": NOTEBOOK_7, "voila": serve_voila, "marimo": serve_marimo}
"""What shows explorers: where the server has it, or its own server."""
