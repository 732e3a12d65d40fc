"""The widget of an explorer: it shows the parts of a view, and passes on what the user does."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets
from IPython.display import display

from nmd_lab._runtime.checks import sentence

from .history import History
from .pictures import static_html
from .settings import value_of
from .view import View, status_part

FOLDER = Path(__file__).parent / "front"

MODULES = (
    "dom", "axes", "mosaic", "factors", "controls", "chart", "pictures", "components", "plane",
    "grid", "ratings", "explorer",
)  # fmt: skip
"""Modules in the order in which they need each other."""

IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)

Message = Mapping[str, Any]

SETTINGS = ("rank", "alpha", "nonlinearity")  # settings that are traits, too

# Parts that come from the view; some stay until a run has its first iterate, so that nothing moves
STAYING = ("curves", "modelled", "components", "scatter")
PARTS = ("facts", "pictures", "grid", "drawing", "dots", "tables", *STAYING)


def _trait() -> Any:
    """Return a trait for one piece of the page."""
    return traitlets.Any(None, allow_none=True).tag(sync=True)


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

    result: Any = traitlets.Any(None, allow_none=True)
    rank: Any = traitlets.Any(None, allow_none=True)
    alpha: Any = traitlets.Any(None, allow_none=True)
    nonlinearity: Any = traitlets.Any(None, allow_none=True)

    def __init__(self, view: View) -> None:
        self._lock = threading.RLock()
        self._note: tuple[str, bool] | None = None
        self._saved: set[Path] = set()
        self._reflecting = self._recording = False
        self._run = 0.0  # when the present run began
        self._picture: Any = None
        self._is_open = False
        super().__init__()
        self.static_id = self.model_id or ""
        self.on_msg(self._receive)
        self.observe(self._setting_given, list(SETTINGS))
        self.observe(self._selection_given, "selection")
        self._take(view)

    def _take(self, view: View) -> None:
        """Show a view; one before it is closed by `show`."""
        self.view, self.history = view, History()
        for work in view.state.works:
            work.listeners.append(self._refresh)
        self._show_settings()
        self._refresh()

    @property
    def state(self) -> Any:
        """Data, settings and fit."""
        return self.view.state

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
        self.view.start()

    def stop(self) -> None:
        """Stop at the next iteration, as ■ does."""
        self.state.active.stop()
        self._show_status()  # nothing else, since another thread may be drawing

    def join(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for the run to end, and return whether it has ended."""
        return bool(self.state.active.join(timeout))

    def code(self) -> str:
        """Return the notebook cell that repeats the work, as the button code copies it."""
        return self.view.code(self)

    def select(self, **what: Any) -> None:
        """Pick a row, a column or several rows: all parts of the page show it.

        Parameters
        ----------
        **what
            Positions `row`, `column`, `pixel` of a picture, and list `rows`; others stay.
        """
        self.selection = (self.selection or {}) | what

    def show(self, view: View) -> None:
        """Show another view in the place of the present one, whose work is stopped."""
        self.view.close()
        self._note, self.selection = None, None
        self._take(view)

    def close(self) -> None:
        """Stop the fit, and give the model back."""
        view: View | None = getattr(self, "view", None)  # None where the settings were refused
        if view is not None:
            view.close()
        super().close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.status['message']}>"

    def _ipython_display_(self) -> None:
        """Display the widget, and below it a picture for readers without a kernel."""
        bundle = self._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        show: Any = display  # which has no types
        show(data, raw=True)
        self._picture = show(self._static(), raw=True, display_id=True)

    def _static(self) -> dict[str, str]:
        return {"text/html": static_html(self), "text/plain": ""}

    def _receive(self, _: Any, message: Message, buffers: list[Any]) -> None:
        """Do what the user asks for; errors appear in the status line."""
        actions: dict[str, Callable[[Message], Any]] = {
            "opened": lambda _: self._opened(),
            "run": lambda _: self.start(),
            "stop": lambda _: self.stop(),
            "continue": lambda _: self.state.proceed(),
            "set": lambda m: self._set(m["name"], m["value"]),
            "save": lambda m: self.save(m["filename"]),
            "select": lambda m: self.select(**self.view.place(m)),
            "clear": lambda _: setattr(self, "selection", None),
            "lasso": lambda m: self.select(rows=list(m["rows"])),
            "history": lambda m: self.history.show_left(m["number"]),
            "open": lambda m: self._view_opened(m, buffers),
            **self.view.actions,
        }
        if message["do"] not in ("stop", "opened"):
            self._note = None
        try:
            answer = actions[message["do"]](message)
            if isinstance(answer, View):
                self.show(answer)
                self._tell(answer.said)
                self._opened()
        except Exception as error:
            self._tell(sentence(error), failed=True)
        if message["do"] != "stop":
            self._refresh()

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the page or the result to a file; a subclass does it."""
        raise NotImplementedError

    def _view_opened(self, message: Message, buffers: list[Any]) -> View:
        """Return the view of a file; a subclass has them."""
        raise NotImplementedError

    def _opened(self) -> None:
        """Fit as soon as the page is open; from now on changes on the page fit again."""
        self._is_open = True
        self.view.begin()

    def _set(self, name: str, value: Any) -> View | None:
        """Change a setting to what the user entered; other data have a view of their own."""
        if name == "data":
            return self._view_opened({"data": value}, [])
        kind = next((each.kind for each in self.state.fields if each.name == name), "text")
        if value == "" and name in self.state.numbers:  # "auto" was turned off
            value = self.state.numbers[name]
        self._change(name, value_of(value, kind))
        if self._is_open and (said := self.view.follow(name)):
            self._tell(said)
        return None

    def _change(self, name: str, value: Any) -> None:
        """Change a setting."""
        self.state.set(name, value)
        self.view.setting_changed(name)
        self._show_settings()
        self._refresh()

    def _setting_given(self, change: Any) -> None:
        """Change the setting whose trait was set from outside."""
        if self._reflecting:
            return
        try:
            if change.name in self.state.values:
                self._change(change.name, change.new)
        finally:
            self._show_settings()  # what is refused, or is no setting here, has no effect

    def _selection_given(self, change: Any) -> None:
        """Tell the view what was picked."""
        self.view.select(change.new)
        self._refresh()

    def _show_settings(self) -> None:
        """Show the settings in the controls and the traits."""
        with self._lock:
            self.controls = self.view.controls()
            self._reflecting = True
            try:
                for name in SETTINGS:
                    setattr(self, name, self.state.values.get(name))
            finally:
                self._reflecting = False

    def _tell(self, message: str, *, failed: bool = False) -> None:
        """Show a message in the status line until the next action of the user."""
        self._note = message, failed
        self._show_status()

    def _show_status(self) -> None:
        """Show the message, or how far it is if there is none."""
        with self._lock:
            self.status = status_part(self.view, self._note)

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
                    self.runs = self.history.lines(self.view)
                is_known = not self.state.problems() or self.view.result is not None
                if is_known and (not running or before != self._run):  # it holds from the beginning
                    self.code_text = self.code()
                parts = self.view.parts(self.history)
                for name in PARTS:
                    if name not in STAYING or not running or parts.get(name) is not None:
                        setattr(self, name, parts.get(name))
                self._show_status()
            except Exception as error:
                self._tell(sentence(error), failed=True)
        is_idle = self.state.active.phase != "running" and not self._recording
        if self._is_open and is_idle:
            self.view.idle()
        result = self.view.result
        if is_idle and self.result is not result:
            self.value = self.result = result
            if self._picture is not None:
                self._picture.update(self._static(), raw=True)
