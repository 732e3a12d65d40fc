"""A JupyterLab of the tests' own, and a notebook in it that a browser works in."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from waiting import PATIENCE, wait_for

ROOT = Path(__file__).parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
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


def find_chromium() -> str | None:
    """Return the path of a browser, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Run JupyterLab in a folder and yield its address."""
    homes = {name: folder / name for name in ("config", "data", "runtime", "ipython", "work")}
    for home in homes.values():
        home.mkdir()
    settings = folder / "settings"
    settings.mkdir()
    (settings / "overrides.json").write_text(json.dumps(OVERRIDES))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(homes["config"]),
        "JUPYTER_DATA_DIR": str(homes["data"]),
        "JUPYTER_RUNTIME_DIR": str(homes["runtime"]),
        "IPYTHONDIR": str(homes["ipython"]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "JUPYTER_PLATFORM_DIRS": "1",
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
        "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
        "--IdentityProvider.token=", "--ServerApp.password=", "--ServerApp.disable_check_xsrf=True",
        f"--ServerApp.root_dir={homes['work']}", f"--LabApp.app_settings_dir={settings}",
        f"--LabApp.user_settings_dir={folder / 'user'}",
        f"--LabApp.workspaces_dir={folder / 'workspaces'}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
        "--LabApp.news_url=None",
    ]  # fmt: skip
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(lambda: server.poll() is not None or _answers(f"{address}/api"))
        if server.poll() is not None:
            raise RuntimeError(f"JupyterLab did not start:\n{(folder / 'log').read_text()}")
        yield address
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()


def _answers(address: str) -> bool:
    with contextlib.suppress(OSError):
        urllib.request.urlopen(address, timeout=10).close()
        return True
    return False


class Notebook:
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
        self.page, self.address, self.folder = page, address, folder
        self.errors: list[str] = []
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)

    def _console(self, message: Any) -> None:
        where = message.location.get("url", "")
        ours = not any(word in where + message.text for word in IGNORED)
        if message.type == "error" and ours:
            self.errors.append(f"{message.text} ({where})")

    def open(self, name: str, cells: Sequence[str]) -> None:
        """Write a notebook, open it and run its cells."""
        written = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(written, self.folder / "work" / name)
        self.page.goto(f"{self.address}/lab/tree/{name}?reset")
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

    def close(self) -> None:
        """Leave the page and end the kernel."""
        self.page.close(run_before_unload=False)
        with urllib.request.urlopen(f"{self.address}/api/kernels", timeout=PATIENCE) as answer:
            kernels = json.load(answer)
        for kernel in kernels:
            request = urllib.request.Request(
                f"{self.address}/api/kernels/{kernel['id']}", method="DELETE"
            )
            urllib.request.urlopen(request, timeout=PATIENCE).close()


IGNORED = ("favicon", "/lsp", "WebSocket connection", "net::ERR_NETWORK_CHANGED")

KERNEL_IDLE = (
    "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status"
    " === 'idle'"
)

NEW_CELL = """async code => {
  const panel = window.jupyterapp.shell.currentWidget, commands = window.jupyterapp.commands;
  panel.content.activeCellIndex = panel.content.widgets.length - 1;
  await commands.execute('notebook:insert-cell-below');
  panel.content.activeCell.model.sharedModel.setSource(code);
  await commands.execute('notebook:run-cell');
}"""
