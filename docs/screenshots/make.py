"""Make the pictures of the explorers: in JupyterLab (light, dark, narrow), Voila and marimo.

    PYTHONPATH=tests:tests/browser python docs/screenshots/make.py [name ...]

It needs what the browser tests need.  ``explorers.gif`` is made of screenshots, too: digits that
are built component by component, the plane that draws digits, and a roof that grows back.
"""

from __future__ import annotations

import io
import itertools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from own_lab import FLAGS, Notebook, Shown, find_chromium, serve, serve_marimo, serve_voila
from PIL import Image, ImageDraw
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1300, 1000
WAITING = 300.0
BUILDING, MOVING, RAINING = 160, 130, 150
"""Milliseconds of a frame of each scene of the animated picture."""
LAST = 900
"""Milliseconds of the last frame of a scene."""
GIF_WIDTH, COLORS = 760, 96
"""Width of the animated picture in pixels, and the number of its colours."""

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
DIGITS_CELL = """
import nmd_lab as nmd
explorer = nmd.widgets.explore(nmd.datasets.digits(), nonlinearity="minmax", rank=24, alpha=1.0)
explorer.start(); explorer.join()
explorer
"""
PALACE_CELL = """
import nmd_lab as nmd
explorer = nmd.widgets.explore(data="photograph of a palace")
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
    page.locator(".nmd-status:not(.nmd-running)").wait_for(state="attached")
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
    if name.startswith("intervals"):
        page.click(".nmd-tools button:has-text('uncertainty')")
    page.mouse.move(1, 1)
    page.wait_for_timeout(300)
    page.locator(".nmd-frame").screenshot(path=HERE / f"{name}.png")
    notebook.end_kernels()
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
    """Frames of an explorer that is used, with the pointer.

    Parameters
    ----------
    page : Page
        Page of the browser.
    """

    def __init__(self, page: Any) -> None:
        self.page, self.frames, self.at = page, list[tuple[Image.Image, int]](), (-99.0, -99.0)

    def shoot(self, milliseconds: int, count: int = 1) -> None:
        """Take some frames."""
        frame = self.page.locator(".nmd-frame")
        for _ in range(count):
            self.page.wait_for_timeout(60)
            box, picture = frame.bounding_box(), Image.open(io.BytesIO(frame.screenshot()))
            picture = picture.convert("RGB")
            x, y = self.at[0] - box["x"], self.at[1] - box["y"]
            arrow = [(x + a, y + b) for a, b in ((0, 0), (0, 22), (6, 17), (15, 17))]
            ImageDraw.Draw(picture).polygon(arrow, fill="black", outline="white", width=2)
            self.frames.append((picture, milliseconds))

    def move(
        self, selector: str, places: list[tuple[float, float]], steps: int, milliseconds: int
    ) -> None:
        """Move the pointer along places, in shares of the width and height of an element."""
        box = self.page.locator(selector).first.bounding_box()
        for begin, end in itertools.pairwise(places):
            for k in range(steps + 1):
                x, y = (p + k / steps * (q - p) for p, q in zip(begin, end, strict=True))
                self.at = box["x"] + x * box["width"], box["y"] + y * box["height"]
                self.page.mouse.move(*self.at)
                self.shoot(milliseconds)


def builds(film: Film) -> None:
    """Build the digits from their first components, and move over the plane (7 s)."""
    slider = film.page.locator(".nmd-build input")
    film.page.locator(".nmd-tools > input").fill("0")  # the model alone
    for k in range(25):
        slider.fill(str(k))
        film.shoot(2 * BUILDING if k < 3 else BUILDING // 2 if k > 12 else BUILDING)
    film.shoot(LAST)
    places = [(0.25, 0.15), (0.6, 0.4), (0.75, 0.85), (0.3, 0.6)]
    film.move(".nmd-plane canvas", places, 6, MOVING)


def rains(film: Film) -> None:
    """Let rain fall on the roof, and see it grow back (5 s)."""
    page, canvas = film.page, ".nmd-picture-area canvas"
    page.locator(".nmd-tools > input").fill("0")
    page.get_by_role("button", name="rain", exact=True).click()
    page.get_by_label("brush radius").fill("14")
    film.move(canvas, [(0.2, 0.3), (0.2, 0.3)], 1, RAINING)
    page.mouse.down()
    film.move(canvas, [(0.2, 0.3), (0.36, 0.22), (0.46, 0.34)], 6, RAINING)
    page.mouse.up()
    film.shoot(LAST // 2)
    page.locator(".nmd-status:not(.nmd-running)").wait_for(state="attached")
    page.wait_for_timeout(500)
    page.get_by_role("button", name="rain", exact=True).click()
    for share in (100, 85, 70, 55, 45, 35, 25, 15, 5, 0):
        page.locator(".nmd-tools > input").fill(str(share))
        film.shoot(RAINING)
    film.shoot(LAST)


SCENES = ((DIGITS_CELL, builds), (PALACE_CELL, rains))
"""Cell of each scene of the animated picture, and what is done there."""


def animated(browser: Any, address: str, folder: Path) -> None:
    """Save an animated picture of the explorers."""
    frames: list[tuple[Image.Image, int]] = []
    for cell, scene in SCENES:
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
        notebook = Notebook(context.new_page(), address, folder)
        notebook.open(f"{scene.__name__}.ipynb", [cell])
        notebook.page.evaluate(THEME, "JupyterLab Light")
        notebook.page.evaluate(FULL)
        finished(notebook.page)
        film = Film(notebook.page)
        scene(film)
        frames += film.frames
        notebook.end_kernels()
        context.close()
    small = []
    for picture, _ in frames:
        size = GIF_WIDTH, round(GIF_WIDTH * picture.height / picture.width)
        small.append(picture.resize(size, Image.Resampling.LANCZOS))
    # One palette for all, so that what stays is the same in the next frame
    some = small[:: max(1, len(small) // 12)]
    sheet = Image.new("RGB", (GIF_WIDTH, sum(each.height for each in some)))
    for k, each in enumerate(some):
        sheet.paste(each, (0, k * each.height))
    palette = sheet.quantize(COLORS, dither=Image.Dither.NONE)
    first, *others = (each.quantize(palette=palette, dither=Image.Dither.NONE) for each in small)
    first.save(
        HERE / "explorers.gif", save_all=True, append_images=others,
        duration=[each for _, each in frames], loop=0, optimize=True,
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
