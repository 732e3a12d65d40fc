"""Make the pictures of the explorers: in JupyterLab (light, dark, narrow), Voila and marimo.

    PYTHONPATH=tests:tests/browser python docs/screenshots/make.py [name ...]

It needs what the browser tests need.  ``explorers.gif`` is made of screenshots, too: digits that
are built component by component, the brush, and the stars.
"""

from __future__ import annotations

import io
import itertools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from own_apps import serve_marimo, serve_voila
from own_lab import FLAGS, Notebook, find_chromium, serve
from own_server import Shown
from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1300, 1000
WAITING = 300.0
FRAME, LAST = 110, 1800
"""Time of a frame of the animated picture, and of the last one of a scene, in milliseconds."""
GIF_WIDTH = 760
"""Width of the animated picture, in pixels."""

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
DIGITS_CELL = """
import nmd_lab as nmd
explorer = nmd.widgets.explore(nmd.datasets.digits(), nonlinearity="relu", rank=12, alpha=1.0)
explorer.start(); explorer.join()
explorer
"""
STARS = """
import nmd_lab as nmd
explorer = nmd.widgets.explore(nmd.datasets.movielens_small(), rank=8, alpha=15.0, offsets="both")
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
FULL = "() => window.jupyterapp.commands.execute('application:toggle-left-area')"
"""Hides the files beside the notebook."""


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
    page.evaluate(FULL)
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


class Film:
    """Frames of an explorer that is used.

    Parameters
    ----------
    page : Page
        Page of the browser.
    pause : int
        Milliseconds before each frame.
    """

    def __init__(self, page: Any, pause: int = 60) -> None:
        self.page, self.pause, self.frames = page, pause, list[bytes]()

    def shoot(self, count: int = 1) -> None:
        """Take some frames."""
        for _ in range(count):
            self.page.wait_for_timeout(self.pause)
            self.frames.append(self.page.locator(".nmd-frame").screenshot())

    def move(self, selector: str, places: list[tuple[float, float]], steps: int) -> None:
        """Move the pointer along places, in shares of the width and height of an element."""
        box = self.page.locator(selector).first.bounding_box()
        for begin, end in itertools.pairwise(places):
            for k in range(steps + 1):
                x, y = (p + k / steps * (q - p) for p, q in zip(begin, end, strict=True))
                self.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
                self.shoot()


def builds(film: Film) -> None:
    """Build the digits from their first components, and move over the plane."""
    slider = film.page.locator(".nmd-build input")
    for k in range(13):
        slider.fill(str(k))
        film.shoot(2)
    film.move(".nmd-plane canvas", [(0.25, 0.75), (0.5, 0.25), (0.85, 0.5), (0.45, 0.85)], 7)
    film.shoot(4)


def brush(film: Film) -> None:
    """Let rain fall on the photograph, and drag the divider over what grows back."""
    page, canvas = film.page, ".nmd-picture-area canvas"
    page.get_by_role("button", name="rain", exact=True).click()
    page.get_by_label("brush radius").fill("8")
    film.move(canvas, [(0.15, 0.3), (0.15, 0.3)], 1)
    page.mouse.down()
    film.move(canvas, [(0.15, 0.3), (0.47, 0.4)], 10)
    page.mouse.up()
    film.shoot(10)
    page.get_by_role("button", name="rain", exact=True).click()
    for share in (40, 30, 20, 10, 2, 20, 40, 50):
        page.locator(".nmd-tools > input").fill(str(share))
        film.shoot()
    film.shoot(3)


def stars(film: Film) -> None:
    """Rate three films."""
    page = film.page
    page.click(".nmd-turn")
    film.shoot(3)
    for k, number in ((0, 10), (2, 2), (4, 9)):
        row = page.locator(".nmd-known .nmd-stars").nth(k)
        box = row.bounding_box()
        count = int(row.get_attribute("aria-valuemax"))
        number = min(number, count)
        row.click(position={"x": (number - 0.5) / count * box["width"], "y": box["height"] / 2})
        film.shoot(8)


SCENES = ((DIGITS_CELL, builds), (BRUSH, brush), (STARS, stars))
"""Cell of each scene of the animated picture, and what is done there."""


def animated(browser: Any, address: str, folder: Path) -> None:
    """Save an animated picture of the explorers."""
    frames, durations = [], []
    for cell, scene in SCENES:
        context = browser.new_context(viewport={"width": 1250, "height": HEIGHT})
        notebook = Notebook(context.new_page(), address, folder)
        notebook.open(f"{scene.__name__}.ipynb", [cell])
        notebook.page.evaluate(THEME, "JupyterLab Light")
        notebook.page.evaluate(FULL)
        finished(notebook.page)
        film = Film(notebook.page)
        film.shoot()
        scene(film)
        frames += film.frames
        durations += [FRAME] * (len(film.frames) - 1) + [LAST]
        notebook.close()
        context.close()
    images = [Image.open(io.BytesIO(each)).convert("RGB") for each in frames]
    height = max(round(GIF_WIDTH * each.height / each.width) for each in images)
    small = []
    for each in images:
        sheet = Image.new("RGB", (GIF_WIDTH, height), "white")
        size = GIF_WIDTH, round(GIF_WIDTH * each.height / each.width)
        sheet.paste(each.resize(size, Image.Resampling.LANCZOS))
        small.append(sheet.quantize(128, dither=Image.Dither.NONE))
    small[0].save(
        HERE / "explorers.gif", save_all=True, append_images=small[1:], duration=durations, loop=0,
        optimize=True,
    )  # fmt: skip


def main(names: list[str]) -> None:
    """Make the pictures of these names, or all of them."""
    wanted = names or [*PICTURES, "explorers", "voila", "marimo"]
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        folder = Path(temporary)
        with serve(folder) as address:
            for name in wanted:
                if name in PICTURES:
                    in_lab(browser, address, folder, name, PICTURES[name])
                elif name == "explorers":
                    animated(browser, address, folder)
                elif name == "voila":
                    in_program(browser, serve_voila, name)
                else:
                    in_program(browser, serve_marimo, name)
                print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
