"""An explorer as one file of HTML that needs no kernel and no network.

The file contains the page, the record of all that it shows, and recorded answers to a reader who
switches a component off or looks at its rows, at another plane or at a point of a study.  Pictures
of many pixels are in the 8 bits that the page draws, a photograph as a browser compresses one, and
many weights of a model in 16 bits.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from nmd_lab._version import __version__

from .page import as_script, script, style
from .pictures import MOST_VALUES, as_bytes

NEEDS_PYTHON = "This needs Python: the page is a saved file"
TOO_LARGE = "switching a component off needs Python: the answers would make the file too large"
EXACT = 1 << 14  # bytes of a picture up to which its numbers are written as they are
WIDE = 65_535  # code of the largest of many weights
MOST_ANSWERS = 3_000_000  # bytes of the answers of one kind, above which they are left out
QUALITY = 88  # of a photograph, up to 100

Record = dict[str, Any]

HTML = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;
 style-src 'unsafe-inline'; script-src 'sha256-{digest}'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 1200px; margin: 12px auto; padding: 0 16px; }}
{style}</style>
<main id="explorer" class="nmd-saved"></main>
<noscript>This page needs JavaScript.</noscript>
<script type="text/plain" id="record">{record}</script>
<script type="module">{script}</script>
"""


def ending_of(path: str | os.PathLike[str]) -> str:
    """Return the ending of a file that an explorer can write, or raise an error."""
    ending = Path(path).suffix.lower()
    if ending not in (".html", ".nc"):
        raise ValueError(
            f"path={os.fspath(path)!r} has an unknown ending: give .html for the page, which needs "
            "no Python, or .nc for the result."
        )
    return ending


def page_of(explorer: Any) -> bytes:
    """Return the file of an explorer, which shows the same as before afterwards."""
    if explorer.state.active.phase == "running":
        raise ValueError("a run has not ended: wait, or press Stop, and save then.")
    with explorer._lock, explorer.hold_sync():
        explorer._recording, explorer._note = True, None
        try:
            record = packed(record_of(explorer))
        finally:
            explorer._recording = False
    front = script().partition("export default")[0]
    code = f"{front}{as_script('saved')}\nopenRecord(render);\n"
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    texts = {"digest": digest, "title": escape(explorer.view.title or "nmd_lab")}
    return HTML.format(**texts, style=style(), record=record, script=code).encode()


def packed(record: Record) -> str:
    """Return a record as compressed JSON in base64; the same bytes are in it once."""
    blobs: dict[str, int] = {}

    def default(value: Any) -> Any:
        if isinstance(value, bytes | memoryview):
            text = base64.b64encode(value).decode()
            return {"blob": blobs.setdefault(text, len(blobs))}
        return getattr(value, "item", value.__str__)()

    text = json.dumps(record, default=default, allow_nan=False)
    whole = f'{text[:-1]}, "blobs": {json.dumps(list(blobs))}}}'
    return base64.b64encode(gzip.compress(whole.encode(), mtime=0)).decode()


def record_of(explorer: Any) -> Record:
    """Return what an explorer shows, and its answers to messages, by their text."""
    explorer._refresh()
    factors, off = explorer.view.factors, list[int]()
    if explorer.drawing is not None:  # then the page draws without those that are off
        off, factors._off = sorted(factors._off), set()
        explorer._refresh()
    record = _recorded(explorer)
    if off:
        factors._off = set(off)
        explorer._refresh()
        record["shown"]["components"] |= {"off": off, "said": explorer.components["said"]}
    return record


def _recorded(explorer: Any) -> Record:
    selection, shown = explorer.selection, shown_by(explorer)
    answers, left_out = dict[str, Any](), list[str]()
    for what, (messages, back) in questions(shown).items():
        for message in messages:
            if what == "rows":
                explorer.selection = None  # rows that were picked would hide those
            explorer._receive(None, message, [])
            changed = changes(shown_by(explorer), shown)
            explorer._receive(None, back or message, [])
            explorer.selection = selection
            if what == "off" and shown["drawing"]:  # which the page draws
                changed = {"components": {"said": changed["components"].get("said", "")}}
            if "drawing" in changed:  # its table of f draws other rows, too
                changed["drawing"] = {"shown": changed["drawing"]["shown"]}
            if message is messages[0] and len(messages) * len(packed(changed)) > MOST_ANSWERS:
                left_out.append(what)
                break
            answers[json.dumps(message, separators=(",", ":"))] = changed
    if "off" in left_out:
        shown["components"] = shown["components"] | {"said": TOO_LARGE}
    return {"shown": shown, "answers": answers, "left_out": left_out}


def shown_by(explorer: Any) -> Record:
    """Return all that an explorer shows, without what needs Python and without paths."""
    shown = {name: each for name, each in explorer.get_state().items() if not name.startswith("_")}
    status, facts, pictures = shown["status"], dict(shown["facts"] or {}), shown["pictures"]
    work = explorer.state.active
    message = work.message.removesuffix(": ⟲ resumes")
    said = "" if work.phase == "ready" or not message else f"{message}; "
    said += f"saved by nmd_lab {__version__}, nothing is fitted here"
    if "shapes" in facts:  # a click on one would fit it
        facts["shapes"] = []
    facts.pop("swap", None)  # what it would show is not in the file
    if "lists" in facts:
        fields = [each | {"options": []} for each in facts["lists"]["fields"]]
        known = [each | {"rating": each.get("rating", "")} for each in facts["lists"]["known"]]
        facts["lists"] = facts["lists"] | {"fields": fields, "known": known}
    modelled, drawing = shown["modelled"], shown["drawing"]
    if pictures and "stage" in facts and pictures["scale"] != "signed":
        sizes = [pictures[name] for name in ("count", "height", "width", "channels")]
        filled = modelled or pictures["original"]
        fills = {"seen": pictures["original"], "beside": filled}
        layers = {
            name: compressed(pictures[name], sizes, fills.get(name))
            for name in ("original", "seen", "spread", "beside")
        }
        pictures, modelled = pictures | layers, compressed(modelled, sizes)
    if pictures:
        pictures = {name: compact(each) for name, each in pictures.items()} | {"can_brush": False}
    if components := shown["components"]:
        components = components | {"values": compact(components["values"])}
    if drawing:
        drawing = drawing | {name: compact(drawing[name], WIDE) for name in ("W", "shown", "H")}
    return shown | {
        "status": status
        | {
            "message": said,
            "failed": False,
            "save": NEEDS_PYTHON,
            "buttons": {},
            "folder": "",
            "phase": "finished",
        },
        "facts": facts,
        "pictures": pictures,
        "modelled": compact(modelled),
        "drawing": drawing,
        "components": components,
        "code_text": re.sub(r'(\(\s*")[^"\n]*/', r"\1", shown["code_text"] or ""),
        "controls": [],
        "runs": [],
        "static_id": "",
    }


def compact(value: Any, most: int = 254) -> Any:
    """Return many numbers as codes in 8 or 16 bits, and anything else as it is."""
    is_large = isinstance(value, bytes) and len(value) > EXACT
    return {"floats": as_bytes(value, most)} if is_large else value


def compressed(value: Any, sizes: list[int], fill: Any = None) -> Any:
    """Return pictures as WebP, and which of their values are missing; small ones as they are.

    What `fill` has stands where values are missing, so that pictures with gaps are one picture.
    """
    if not isinstance(value, bytes) or len(value) <= EXACT:
        return value
    numbers, (count, height, width, channels) = np.frombuffer(value, "<f4"), sizes
    if numbers.size != count * height * width * channels:  # one number for each pixel
        channels = 1
    filled = numbers if fill is None else np.frombuffer(fill, "<f4")
    low, high = float(np.nanmin(filled)), float(np.nanmax(filled))
    missing = np.isnan(numbers)
    whole = np.where(missing, filled, numbers)
    codes = np.nan_to_num((whole - low) * (255 / ((high - low) or 1.0)))
    pixels = np.rint(codes).astype(np.uint8).reshape(count * height, width, channels)
    file = io.BytesIO()
    Image.fromarray(np.repeat(pixels, 3 // channels, axis=2)).save(file, "webp", quality=QUALITY)
    holes = np.packbits(missing).tobytes() if missing.any() else None
    about = {"low": low, "high": high, "channels": channels, "missing": holes}
    return {"floats": about | {"image": file.getvalue()}}


def questions(shown: Record) -> dict[str, tuple[list[Record], Record | None]]:
    """Return messages of a reader, and the one that takes them back (None: each itself)."""
    names = "facts", "components", "scatter", "dots", "pictures"
    facts, components, plane, dots, pictures = (shown[name] or {} for name in names)
    component = [{"do": "component", "k": k} for k in range(components.get("count", 0))]
    lines = [line for panel in dots.get("study", {}).get("panels", ()) for line in panel["series"]]
    point = {"do": "point", "chart": "study"}
    now = facts.get("point")
    pixels = pictures["count"] * pictures["height"] * pictures["width"] if pictures else 0
    # Components of large models are switched off by the page, without their errors
    large = shown["drawing"] and pixels * len(component) > MOST_VALUES
    cases = not shown["drawing"] or pictures["layout"] == "rows"  # of which a component has most
    weights = shown["drawing"] and shown["drawing"]["W"]  # those of which are the plane
    return {
        "off": ([each | {"what": "off"} for each in component if not large], None),
        "rows": ([each | {"what": "rows"} for each in component if cases], None),
        "points": (
            [point | {"id": n} for line in lines for n in line["ids"]],
            None if now is None else point | {"id": now},
        ),
        "plane": (
            [{"do": "plane", "a": k, "b": k} for k in range(plane.get("rank", 0)) if not weights],
            {"do": "plane", "a": plane.get("a"), "b": plane.get("b")},
        ),
    }


def changes(now: Record, before: Record) -> Record:
    """Return what has changed; of a record, its entries."""
    found: Record = {}
    for name, each in now.items():
        old = before[name]
        if not (isinstance(each, dict) and isinstance(old, dict)):
            found |= {} if each == old else {name: each}
        elif entries := {key: value for key, value in each.items() if value != old.get(key)}:
            found[name] = entries
    return found
