"""Record the explorers of the page "Try it", so that they answer without a kernel.

    python docs/try_it.py

writes ``try_it_front.js`` (the front end of the explorers) and ``try_it_data.js`` (what each shows,
and its answers to what a reader can do) into ``docs/_static``.  Both are plain scripts, so that
the page works without a server too.  ``make docs`` calls it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import numpy as np

import nmd_lab as nmd
from nmd_lab.widgets.page import script, style

HERE = Path(__file__).parent
DIGITS = 600
RANK = 12
HIDDEN = 0.6
"""Fraction of the pixels of the clipped picture that no model sees."""
STEP = 2
"""Every other pixel of the picture is taken."""
EVERY = 6
"""Every so many of the iterations that an explorer keeps can be seen again."""
NEEDS_A_KERNEL = "In a notebook: there is no kernel behind this page"


def digits() -> Any:
    """Return an explorer of handwritten digits, with the first digits of the data set."""
    explorer = nmd.widgets.explore(
        nmd.datasets.digits(DIGITS), nonlinearity="relu", rank=RANK, alpha=1.0
    )
    explorer.start()
    explorer.join()
    return explorer


def interference() -> Any:
    """Return four plane waves as a sensor with a smallest and a largest value records them."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:180, :240] / 180
    field = np.zeros(x.shape, complex)
    for angle, phase, number in zip(
        *rng.uniform(0, 2 * np.pi, (2, 4)), rng.uniform(1.5, 3.5, 4), strict=True
    ):
        field += np.exp(1j * (2 * np.pi * number * (np.cos(angle) * x + np.sin(angle) * y) + phase))
    light = 0.5 + 0.6 * (np.abs(field) ** 2 / 4 - 1)
    return np.clip(light + 0.02 * rng.normal(size=light.shape), 0, 1)


def clipped_picture() -> Any:
    """Return an explorer of a generated picture with missing pixels, with draws of its model."""
    picture = interference()[::STEP, ::STEP]
    hidden = np.random.default_rng(1).random(picture.shape) < HIDDEN
    explorer = nmd.widgets.explore(
        np.where(hidden, np.nan, picture), nonlinearity="minmax", low=0, high=1
    )
    explorer.choose()
    explorer.join()
    explorer.how_sure()
    explorer.join()
    return explorer


def parts_of(explorer: Any) -> dict[str, Any]:
    """Return all that an explorer shows, without what only a kernel could do."""
    parts = {name: each for name, each in explorer.get_state().items() if not name.startswith("_")}
    for button in parts["status"]["buttons"].values():
        button |= {"disabled": True, "title": NEEDS_A_KERNEL}
    parts["status"]["save"] = NEEDS_A_KERNEL
    parts["pictures"]["can_brush"] = False
    parts["facts"]["iterations"] = parts["facts"]["iterations"][::-EVERY][::-1]
    return parts | {"controls": []}


def messages(explorer: Any) -> Iterator[dict[str, Any]]:
    """Yield what a reader can do: look at earlier iterations, and switch each component off."""
    for iteration in parts_of(explorer)["facts"]["iterations"]:
        yield {"do": "iteration", "iteration": iteration}
    for k in range(explorer.components["count"]):
        yield {"do": "component", "k": k, "what": "off"}


def recorded(explorer: Any) -> dict[str, Any]:
    """Return what an explorer shows, and its answers by message."""
    shown, answers = parts_of(explorer), dict[str, Any]()
    for message in messages(explorer):
        explorer._receive(None, message, [])
        now = parts_of(explorer)
        changed: dict[str, Any] = {"modelled": now["modelled"]}
        for name in ("components", "facts"):
            changed[name] = {k: each for k, each in now[name].items() if each != shown[name][k]}
        if message["do"] == "iteration":
            del changed["components"]  # they stay those of the last iterate
        answers[json.dumps(message, separators=(",", ":"))] = changed
        if message["do"] == "component":
            explorer._receive(None, message, [])  # on again
    explorer.close()
    return {"shown": shown, "answers": answers}


def as_json(value: Any) -> Any:
    """Return bytes as base64."""
    return {"bytes": base64.b64encode(value).decode()}


def write(folder: Path) -> None:
    """Record both explorers, and write the scripts."""
    both = {"digits": recorded(digits()), "picture": recorded(clipped_picture())}
    text = json.dumps(both | {"style": style()}, separators=(",", ":"), default=as_json)
    (folder / "try_it_data.js").write_text(f"globalThis.TRY_IT = {text};\n", encoding="utf-8")
    front = script().replace("export default", "globalThis.NMD_EXPLORER =")
    (folder / "try_it_front.js").write_text(f"(() => {{\n{front}}})();\n", encoding="utf-8")


if __name__ == "__main__":
    write(HERE / "_static")
