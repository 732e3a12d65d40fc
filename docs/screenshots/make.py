"""Make the pictures of the explorers: in JupyterLab (light, dark, narrow), Voila and marimo.

    PYTHONPATH=tests:tests/browser python docs/screenshots/make.py [name ...]

It needs what the browser tests need.  ``brush.gif`` is made of screenshots, too.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from own_lab import FLAGS, Notebook, find_chromium, serve
from own_marimo import serve_marimo
from own_server import Shown
from own_voila import serve_voila
from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1300, 1000
WAITING = 300.0
FRAME = 90
"""Time of a frame of the animated picture, in milliseconds."""

DECOMPOSITION = """
import nmd_lab as nmd
explorer = nmd.widgets.explore(
    nmd.datasets.digits(), nonlinearity="minmax", rank=16, missing=0.2, alpha=1.0
)
explorer.start(); explorer.join()
explorer
"""
COMPLETION = """
import nmd_lab as nmd
explorer = nmd.widgets.explore(nmd.datasets.movielens_small(), rank=8, alpha=15.0)
explorer.start(); explorer.join()
explorer.how_sure(); explorer.join()
explorer
"""
STUDY = """
import nmd_lab as nmd
study = nmd.Study(
    nmd.datasets.digits(120), nonlinearity=["identity", "relu", "minmax"], rank=[2, 4, 8],
    missing=[0.2, 0.5], alpha=1.0, max_iter=60, n_splits=2,
)
study.run(progress=False)
explorer = nmd.widgets.explore(study, panel="missing")
explorer.start(); explorer.join()
explorer
"""
INTERVALS = """
import numpy as np, nmd_lab as nmd
palace = nmd.datasets.photograph("china", size=(71, 107))
seen = palace.where(np.random.default_rng(0).random(palace.shape) < 0.3)
explorer = nmd.widgets.explore(seen, rank=8, alpha=1.0, nonlinearity="identity")
explorer.start(); explorer.join()
explorer.how_sure(); explorer.join()
explorer
"""
BRUSH = """
import nmd_lab as nmd
explorer = nmd.widgets.Explorer(
    data="photograph of a palace", rank=20, alpha=1.0, iterations=60
)
explorer.start(); explorer.join()
explorer
"""
PICTURES = {
    "decomposition_light": DECOMPOSITION,
    "decomposition_dark": DECOMPOSITION,
    "decomposition_narrow": DECOMPOSITION,
    "completion_light": COMPLETION,
    "completion_dark": COMPLETION,
    "intervals_light": INTERVALS,
    "study_light": STUDY,
    "study_dark": STUDY,
}
"""Cell of each picture of JupyterLab; the end of the name is the theme or the width."""

THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"


def finished(page: Any) -> None:
    """Wait until the explorer is drawn."""
    page.locator(".nmd-status:not(.nmd-running)").wait_for()
    page.wait_for_timeout(1200)


def in_lab(browser: Any, address: str, folder: Path, name: str, cell: str) -> None:
    """Save a picture of an explorer in JupyterLab."""
    narrow = name.endswith("narrow")
    context = browser.new_context(viewport={"width": 900 if narrow else WIDTH, "height": HEIGHT})
    notebook = Notebook(context.new_page(), address, folder)
    notebook.open(f"{name}.ipynb", [cell])
    theme = "JupyterLab Dark" if name.endswith("dark") else "JupyterLab Light"
    page = notebook.page
    page.evaluate(THEME, theme)
    finished(page)
    page.locator(".nmd-explorer").screenshot(path=HERE / f"{name}.png")
    notebook.close()
    context.close()


def in_program(browser: Any, way: Callable[..., Any], name: str) -> None:
    """Save a picture of a page of Voila or marimo."""
    with tempfile.TemporaryDirectory() as folder, way(Path(folder), [DECOMPOSITION]) as address:
        context = browser.new_context(viewport={"width": 1000, "height": 1100})
        shown = Shown(context.new_page(), address)
        shown.page.goto(address)
        finished(shown.page)
        shown.page.screenshot(path=HERE / f"{name}.png")
        context.close()


def animated(browser: Any, address: str, folder: Path) -> None:
    """Save an animated picture of the brush."""
    context = browser.new_context(viewport={"width": 1250, "height": HEIGHT})
    notebook = Notebook(context.new_page(), address, folder)
    notebook.open("brush.ipynb", [BRUSH])
    page = notebook.page
    page.evaluate(THEME, "JupyterLab Light")
    page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    finished(page)
    page.get_by_role("button", name="hide", exact=True).click()
    tiles = page.locator(".nmd-pictures")
    page.locator(".nmd-picture-tools input").evaluate("each => { each.value = 6; }")
    box = page.locator(".nmd-picture-box canvas").bounding_box()
    frames = [tiles.screenshot()]

    def stroke(begin: tuple[float, float], end: tuple[float, float], steps: int) -> None:
        for k in range(steps + 1):
            x, y = (a + k / steps * (b - a) for a, b in zip(begin, end, strict=True))
            page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
            if k == 0:
                page.mouse.down()
            page.wait_for_timeout(60)
            frames.append(tiles.screenshot())
        page.mouse.up()
        for _ in range(5):
            page.wait_for_timeout(60)
            frames.append(tiles.screenshot())

    stroke((0.25, 0.35), (0.75, 0.35), 12)
    stroke((0.3, 0.75), (0.8, 0.6), 12)
    page.get_by_role("button", name="reveal", exact=True).click()
    stroke((0.25, 0.35), (0.5, 0.35), 8)
    images = [Image.open(io.BytesIO(each)).convert("RGB") for each in frames]
    size = (680, round(680 * images[0].height / images[0].width))
    small = [each.resize(size, Image.Resampling.LANCZOS) for each in images]
    reduced = [each.quantize(40, dither=Image.Dither.NONE) for each in small]
    durations = [FRAME] * (len(reduced) - 1) + [1800]
    reduced[0].save(
        HERE / "brush.gif", save_all=True, append_images=reduced[1:], duration=durations, loop=0,
        optimize=True,
    )  # fmt: skip
    notebook.close()
    context.close()


def main(names: list[str]) -> None:
    """Make the pictures of these names, or all of them."""
    wanted = names or [*PICTURES, "brush", "voila", "marimo"]
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        folder = Path(temporary)
        with serve(folder) as address:
            for name in wanted:
                if name in PICTURES:
                    in_lab(browser, address, folder, name, PICTURES[name])
                elif name == "brush":
                    animated(browser, address, folder)
                elif name == "voila":
                    in_program(browser, serve_voila, name)
                else:
                    in_program(browser, serve_marimo, name)
                print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
