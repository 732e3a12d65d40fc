"""The widget of an explorer, and the same page as one file of HTML without kernel and network.

The file contains the page and the record of all that it shows: what a reader does there, the page
answers itself.  Pictures of many pixels are in 8 bits, and a photograph as a browser compresses
one.  A notebook keeps a file of fewer rows and pixels.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any
from weakref import WeakSet

import anywidget
import ipywidgets
import numpy as np
import traitlets
from IPython.core.getipython import get_ipython
from IPython.display import display
from PIL import Image

from nmd_lab._runtime.checks import sentence
from nmd_lab._runtime.html import NUMBER, table
from nmd_lab._version import __version__

from .background import COARSE, Record, at_most
from .pictures import as_bytes, still_html
from .state import State, value_of

FOLDER = Path(__file__).parent / "front"

MODULES = (
    "dom", "local", "chart", "pictures", "components", "plane", "grid", "ratings", "explorer",
)  # fmt: skip
"""Modules in the order in which they need each other."""

IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)

SETTINGS = ("rank", "alpha", "nonlinearity")  # settings that are traits, too

# Parts that come from the state; some stay until a run has its first iterate, so that nothing moves
STAYING = ("curves", "modelled", "components", "scatter")
PARTS = ("facts", "pictures", "grid", "drawing", "dots", "tables", *STAYING)


def _trait() -> Any:
    """Return a trait for one piece of the page."""
    return traitlets.Any(None, allow_none=True).tag(sync=True)


class Same(traitlets.Any):
    """A trait whose values are compared by identity: Datasets are equal entry by entry."""

    def set(self, obj: Any, value: Any) -> None:
        """Take a value, and tell of it if it is another object."""
        before, obj._trait_values[self.name] = obj._trait_values.get(self.name), value
        if value is not before:
            obj._notify_trait(self.name, before, value)


def as_script(name: str) -> str:
    """Return a module without its imports and exports, but for a default export."""
    module = (FOLDER / f"{name}.mjs").read_text(encoding="utf-8")
    return EXPORT.sub("", IMPORT.sub("", module))


def script() -> str:
    """Return all modules as one, with the default export of the last."""
    return "\n".join(map(as_script, MODULES))


def style() -> str:
    """Return all style sheets as one."""
    sheets = sorted(FOLDER.glob("*.css"))
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


class Page(anywidget.AnyWidget, ipywidgets.ValueWidget):  # type: ignore[misc]
    """A page about a fit that runs in the background."""

    _esm = traitlets.Unicode(script()).tag(sync=True)
    _css = traitlets.Unicode(style()).tag(sync=True)
    # A page is one model: a layout would be a second one
    layout: Any = traitlets.Any(None, allow_none=True).tag(
        sync=True, **ipywidgets.widget_serialization
    )
    description = traitlets.Unicode("")

    controls, status, runs, code_text = _trait(), _trait(), _trait(), _trait()
    facts, curves, pictures, modelled = _trait(), _trait(), _trait(), _trait()
    components, scatter, dots, tables = _trait(), _trait(), _trait(), _trait()
    grid, drawing = _trait(), _trait()
    selection: Any = _trait()
    static_id = traitlets.Unicode("").tag(sync=True)

    result: Any = Same(None, allow_none=True)
    value: Any = Same(None, allow_none=True)
    rank: Any = traitlets.Any(None, allow_none=True)
    alpha: Any = traitlets.Any(None, allow_none=True)
    nonlinearity: Any = traitlets.Any(None, allow_none=True)

    state: State
    save: Any  # writes the page or the result to a file
    _state_opened: Callable[[Mapping[str, Any], Sequence[Any]], State]  # of a file

    def __init__(self, state: State) -> None:
        self._lock = threading.RLock()
        self._note: tuple[str, bool] | None = None
        self._saved: set[Path] = set()
        self._run = 0.0  # when the present run began
        self._picture: Any = None
        self._last: Any = None  # sentence of the page in the notebook
        self._is_open = False
        super().__init__()
        self.static_id = self.model_id or ""
        self.on_msg(self._receive)
        self.observe(self._setting_given, list(SETTINGS))
        self.observe(self._selection_given, "selection")
        self._take(state)

    def _take(self, state: State) -> None:
        """Show a state; one before it is closed by `show`."""
        with self._lock:  # another thread may be drawing the state before
            self.state = state
            for work in state.works:
                work.listeners.append(self._refresh)
            self._show_settings()
        self._refresh()

    def start(self) -> None:
        """Start a fit, as ⟲ does.

        Raises
        ------
        ValueError
            If a setting is wrong.
        """
        if self.comm is None:
            raise ValueError("the explorer is closed: make another one.")
        self._note = None
        self.state.start()

    def stop(self) -> None:
        """Stop at the next iteration, as ■ does."""
        self.state.active.stop()
        self._show_status()  # nothing else, since another thread may be drawing

    def join(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for the run to end, and return whether it has ended."""
        return bool(self.state.active.join(timeout))

    def code(self) -> str:
        """Return the notebook cell that repeats the work, as the button code has it."""
        return self.state.code(self.state.source(self))

    def select(self, **what: Any) -> None:
        """Pick a row, a column or several rows: all parts of the page show it.

        Parameters
        ----------
        **what
            Positions `row`, `column`, `pixel` of an image, and list `rows`; others stay.
        """
        self.selection = (self.selection or {}) | what

    def show(self, state: State) -> None:
        """Show another state in the place of the present one, whose work is stopped."""
        if state.input is self.state.input:  # the same data in another form
            state.data_code, state.offered = self.state.data_code, self.state.offered
        self.state.close()
        self._note, self.selection = None, None
        self._take(state)

    def close(self) -> None:
        """Stop the fit, and give the model back."""
        if hasattr(self, "state"):  # it has none where settings were refused
            self.state.close()
        super().close()
        for name in PARTS:  # notebooks keep what a cell has returned, even if it is closed
            setattr(self, name, None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.status['message']}>"

    def _ipython_display_(self) -> None:
        """Display the widget, and below it the page for readers without a kernel."""
        end_earlier(self)
        bundle = self._repr_mimebundle_()
        data: Any = bundle[0] if isinstance(bundle, tuple) else bundle
        show: Any = display  # which has no types
        show(data | {"text/plain": ""}, raw=True)
        self._last = self.status["sentence"]
        self._picture = show(self._saved_output(), raw=True, display_id=True)

    def _saved_output(self) -> dict[str, str]:
        return {"text/html": notebook_html(self), "text/plain": repr(self)}

    def _receive(self, _: Any, message: Mapping[str, Any], buffers: list[Any]) -> None:
        """Do what the user asks for; errors appear in the status line."""
        actions: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "opened": lambda _: self._opened(),
            "run": lambda _: self.start(),
            "stop": lambda _: self.stop(),
            "set": lambda m: self._set(m["name"], m["value"]),
            "save": lambda m: self.save(m["filename"]),
            "select": lambda m: self.select(**{each: m[each] for each in m if each != "do"}),
            "clear": lambda _: self._clear_selection(),
            "lasso": lambda m: self.select(rows=list(m["rows"])),
            "open": lambda m: self._state_opened(m, buffers),
            **self.state.actions,
        }
        if message["do"] not in ("stop", "opened"):
            self._note = None
        try:
            answer = actions[message["do"]](message)
            if isinstance(answer, State):
                self.show(answer)
                self._tell(answer.said)
                self._opened()
        except Exception as error:
            self._tell(sentence(error), failed=True)
        if message["do"] != "stop":
            self._refresh()

    def _opened(self) -> None:
        """Fit as soon as the page is open; from now on changes on the page fit again."""
        self._is_open = True
        self.state.begin()

    def _set(self, name: str, value: Any) -> State | None:
        """Change a setting to what the user entered; other data have a state of their own."""
        if name == "data":
            return self._state_opened({"data": value}, [])
        if value == "" and name in self.state.numbers:  # "auto" was turned off
            value = self.state.numbers[name]
        self._change(name, value_of(value, self.state.field(name).kind))
        if self._is_open:
            self.state.follow(name)
        return None

    def _change(self, name: str, value: Any) -> None:
        """Change a setting."""
        self.state.set(name, value)
        if name == "rank":  # another model has all its components
            self.state.forget_components()
        self._show_settings()
        self._refresh()

    def _setting_given(self, change: Any) -> None:
        """Change the setting whose trait was set from outside."""
        if change.new != self.state.values.get(change.name):
            try:
                if change.name in self.state.values:
                    self._change(change.name, change.new)
            finally:
                self._show_settings()  # what is refused, or is no setting here, has no effect

    def _selection_given(self, change: Any) -> None:
        """Tell the state what was picked."""
        self.state.select(change.new)
        self._refresh()

    def _clear_selection(self) -> None:
        """Show all rows again, also after those of a component."""
        self.selection = None
        self.state.select(None)

    def _show_settings(self) -> None:
        """Show the settings in the controls and the traits."""
        with self._lock:
            self.controls = self.state.controls()
            for name in SETTINGS:
                setattr(self, name, self.state.values.get(name))

    def _tell(self, message: str, *, failed: bool = False) -> None:
        """Show a message in the status line until the next action of the user."""
        self._note = message, failed
        self._show_status()

    def _show_status(self) -> None:
        """Show the message, or how far it is if there is none."""
        with self._lock:
            self.status = self.state.status(self._note)

    def _refresh(self) -> None:
        """Bring everything up to date; any thread may call this."""
        with self._lock, self.hold_sync():
            try:
                running = self.state.active.phase == "running"
                if self._run and not running and self._note and not self._note[1]:
                    self._note = None  # what was said at the beginning of a run ends with it
                before, self._run = self._run, self.state.active.began if running else 0.0
                if not running:
                    self._show_settings()  # a choice may have put numbers in the place of "auto"
                    self.runs = self.state.history.lines(self.state)
                is_known = not self.state.problems() or self.state.result is not None
                if is_known and (not running or before != self._run):  # it holds from the beginning
                    self.code_text = self.code()
                parts = self.state.parts()
                for name in PARTS:
                    if name not in STAYING or not running or parts.get(name) is not None:
                        setattr(self, name, parts.get(name))
                self._show_status()
            except Exception as error:
                self._tell(sentence(error), failed=True)
        if self.state.active.phase == "running":
            return
        if self._is_open:
            self.state.idle()
        if is_new := self.result is not self.state.result:
            self.value = self.result = self.state.result
        said = self.status["sentence"]
        if self._picture is not None and (is_new or said != self._last):
            self._last = said
            self._picture.update(self._saved_output(), raw=True)


EXACT = 1 << 14  # bytes of a picture up to which its numbers are as they are
FIXED = "the file of these data has the components as they are"

HTML = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;
 style-src 'unsafe-inline'; script-src 'sha256-{digest}'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; background: Canvas; }}
body {{ max-width: 1200px; margin: 12px auto; padding: 0 16px; }}
{style}</style>
<main id="explorer" class="nmd-saved"></main>
<noscript>This page needs JavaScript.</noscript>
<script type="text/plain" id="record">{record}</script>
<script type="module">{script}</script>
"""


def page_of(explorer: Any, coarse: int = 0) -> bytes:
    """Return the file of an explorer, which stays as it is; a `coarse` one is smaller."""
    if explorer.state.active.phase == "running":
        raise ValueError("a run has not ended: wait, or press Stop, and save then.")
    context = copy_context()
    context.run(COARSE.set, coarse)
    with explorer._lock:
        record = packed({"shown": context.run(shown_by, explorer)})
    front = script().partition("export default")[0]
    code = f"{front}{as_script('saved')}\nopenRecord(render);\n"
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    texts = {"digest": digest, "title": escape(explorer.state.title or "nmd_lab")}
    return HTML.format(**texts, style=style(), record=record, script=code).encode()


FRAME = (
    '<iframe title="the explorer" sandbox="allow-scripts" allow="clipboard-write" loading="lazy" '
    'style="width: 100%; height: 760px; border: 0" srcdoc="{}"></iframe>'
)
UNPACKING = """<script type="module">
const packed = Uint8Array.from(atob("{}"), (each) => each.charCodeAt(0));
const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const page = await new Response(stream).text();
document.open();
document.write(page);
document.close();
</script>"""
# A living page hides the still one, and both the sentence of JupyterLab on a widget that is gone
NOTEBOOK = """<style>
.jp-OutputArea-child:has(+ .jp-OutputArea-child .nmd-static):not(:has(.nmd-explorer)),
.nmd-static:has(iframe) > .nmd-still {{ display: none; }}
</style><div class="nmd-static" data-explorer="{name}"><div class="nmd-still">{still}</div>
{frame}</div>"""


def notebook_html(explorer: Any) -> str:
    """Return a sentence, a picture, and once there is a result the page, as a notebook keeps it."""
    frame, coarse, state, still = "", 1, explorer.state, _still(explorer)
    if state.result is not None and state.active.phase != "running":
        while not frame and coarse <= 5:
            packed = base64.b64encode(gzip.compress(page_of(explorer, coarse), mtime=0)).decode()
            frame = FRAME.format(escape(UNPACKING.format(packed)))
            frame, coarse = frame * (len(frame + still) < 149_000), coarse + 1  # bytes
    return NOTEBOOK.format(name=explorer.static_id, still=still, frame=frame)


def _still(explorer: Any) -> str:
    """Return the sentence, what is said below it, and a picture or a table, as plain HTML."""
    said = "".join(
        f'<b style="{NUMBER * (opens == "number")}">{escape(text)}</b>' if opens else escape(text)
        for text, opens, *_ in explorer.status["sentence"]
    )
    lines = f"<p>{said}</p><p>{escape(_message(explorer.state.active))}</p>"
    grid, lists = explorer.grid, (explorer.facts or {}).get("lists")
    rows: Any
    if grid:
        columns = grid["columns"][:LISTED]
        cells = ([x or y for x, y in zip(c["model"], c["data"], strict=True)] for c in columns)
        head = ["", *(each["name"] for each in columns)]
        rows = zip(grid["labels"], *cells, strict=True)
    elif lists:
        head = [f"for {lists['person']}", ""]
        rows = ((each["title"], each["predicted"]) for each in lists["top"])
    elif explorer.pictures:
        return lines + still_html(explorer.pictures, explorer.modelled)
    else:
        head, rows = explorer.tables[-1]["head"], explorer.tables[-1]["rows"]
    return lines + table(head, islice(rows, LISTED))


def _message(work: Any) -> str:
    """Return how work has ended, without the button that continues it."""
    return str(work.message).removesuffix(": ⟲ resumes")


LISTED = 8  # rows and columns of a table that is shown at most

_shown: dict[str, tuple[str, WeakSet[Any]]] = {}  # run and explorers of each cell


def end_earlier(explorer: Page) -> None:
    """Close the explorers that an earlier run of the same cell has shown."""
    cell, run = running_cell()
    if _shown.get(cell, (run,))[0] != run:
        for each in {*_shown.pop(cell)[1]} - {explorer}:
            each.close()
    _shown.setdefault(cell, (run, WeakSet()))[1].add(explorer)


def running_cell() -> tuple[str, str]:
    """Return the name of the cell that runs, and of its run; nothing outside a notebook."""
    kernel: Any = getattr(get_ipython(), "kernel", None)
    request = kernel.get_parent("shell") if kernel is not None else {}
    run = request.get("header", {}).get("msg_id", "")
    return request.get("metadata", {}).get("cellId", ""), run


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


def shown_by(explorer: Any) -> Record:
    """Return all that an explorer shows, without what needs Python and without paths."""
    state = explorer.state
    shown: Record = dict.fromkeys(PARTS) | state.parts()
    of_clicks, status, pictures = answering(state, shown), state.status(None), shown["pictures"]
    facts = of_clicks["facts"]
    by = f"saved by nmd_lab {__version__}, nothing is fitted here"
    said = "; ".join(filter(None, [_message(state.active), by]))
    modelled, drawing = shown["modelled"], shown["drawing"]
    if pictures and "stage" in facts and pictures["scale"] != "signed":
        sizes = [pictures[name] for name in ("count", "height", "width")]
        filled = modelled or pictures["original"]
        fills = {"original": None, "seen": pictures["original"], "spread": None, "beside": filled}
        layers = {name: compressed(pictures[name], sizes, fill) for name, fill in fills.items()}
        pictures, modelled = pictures | layers, compressed(modelled, sizes)
    if pictures:
        pictures = {name: compact(each) for name, each in pictures.items()} | {"can_brush": False}
    if dots := shown["dots"]:  # a click on a point of a study shows its fits
        facts["abouts"] = [state.fits_at(each) for each in state.points] if "study" in dots else []
    if components := shown["components"]:
        components = components | {"values": compact(components["values"])}
        answers = None if drawing else answers_of(state, shown)
        components |= {"answers": answers} if answers or drawing else {"hint": FIXED}
    if drawing and COARSE.get():  # a few digits are enough, and the page draws the model
        modelled = None
        drawing = drawing | {name: compact(drawing[name]) for name in ("W", "shown", "H")}
    over = {"message": said, "failed": False, "buttons": {}, "folder": "", "phase": "finished"}
    return shown | {
        "status": status | over | of_clicks["status"],
        "facts": facts,
        "pictures": pictures,
        "modelled": compact(modelled),
        "drawing": drawing,
        "components": components,
        "code_text": re.sub(r'(\(\s*")[^"\n]*/', r"\1", explorer.code_text or ""),
        "selection": explorer.selection,
    }


def answers_of(state: Any, parts: Record) -> dict[str, Record]:
    """Return what a click on a component changes in cells and lists; pictures the page draws.

    The name is that of the component that is pinned, with a minus if it is off; or empty.
    """
    if not parts["grid"] and "lists" not in parts["facts"]:
        return {}
    old, answers = answering(state, parts), dict[str, Record]()
    before, count = (state.switched, state.chosen), parts["components"]["count"]
    ways = [(f"{sign}{k}", {k} if sign else set(), k) for k in range(count) for sign in ("", "-")]
    for name, state.switched, state.chosen in [("", set(), None), *ways]:
        answers[name] = changes(answering(state, state.parts()), old)
    state.switched, state.chosen = before
    return answers


def answering(state: Any, parts: Record) -> Record:
    """Return the parts of a page that a click on a component may change.

    They are without what would fit something, or is not in a file.
    """
    said = [piece for piece in state.status(None)["sentence"] if piece[1] != "take"]
    shown = {name: parts.get(name) for name in ("grid", "components")}
    facts = {k: each for k, each in parts["facts"].items() if k not in ("swap", "shapes")}
    if lists := facts.get("lists"):
        known = [each | {"rating": each.get("rating", "")} for each in lists["known"]]
        facts["lists"] = lists | {"fields": [], "known": known}
    return shown | {"facts": facts, "status": {"sentence": said}}


def changes(now: Any, old: Any) -> Any:
    """Return what of records, and of lists of as many, is not as it was."""
    if isinstance(now, dict) and isinstance(old, dict):
        return {k: changes(x, old.get(k)) for k, x in now.items() if x != old.get(k)}
    as_many = isinstance(now, list) and isinstance(old, list) and len(now) == len(old)
    if as_many and now and isinstance(now[0], dict):
        return [changes(*pair) for pair in zip(now, old, strict=True)]
    return now


def compact(value: Any) -> Any:
    """Return many numbers as codes in 8 bits, and anything else as it is."""
    is_large = isinstance(value, bytes) and len(value) > at_most(EXACT, 1 << 10)
    return {"floats": as_bytes(value)} if is_large else value


def compressed(value: Any, sizes: list[int], fill: Any = None) -> Any:
    """Return pictures as WebP, and which of their values are missing; small ones as they are.

    What `fill` has stands where values are missing, so that pictures with gaps are one picture.
    """
    if not isinstance(value, bytes) or len(value) <= EXACT:
        return value
    numbers, filled = (np.frombuffer(each, "<f4") for each in (value, fill or value))
    missing, (count, height, width) = np.isnan(numbers), sizes
    about, file = as_bytes(np.where(missing, filled, numbers).tobytes()), io.BytesIO()
    pixels = np.frombuffer(about.pop("codes"), np.uint8).reshape(count * height, width, -1)
    channels, quality = pixels.shape[2], at_most(88, 75)
    Image.fromarray(np.repeat(pixels, 3 // channels, axis=2)).save(file, "webp", quality=quality)
    holes = np.packbits(missing).tobytes() if missing.any() else None
    return {"floats": about | {"channels": channels, "missing": holes, "image": file.getvalue()}}
