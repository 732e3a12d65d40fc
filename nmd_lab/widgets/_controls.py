"""Input widgets with a label, and with a note that says what is wrong or why they are disabled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import ipywidgets as widgets

from .fields import Field


class Control:
    """The input and the note of one field, with a button for "auto" beside a number.

    Parameters
    ----------
    field : Field
        The setting that the control changes.
    value : object
        Starting value.
    options : sequence of str
        Options of a choice, or suggestions for a text.
    changed : callable
        Function that is called with the name of the field and its new value.
    number : int or float, default 1
        Number that takes the place of the starting value "auto" when the user turns it off.
    """

    def __init__(
        self,
        field: Field,
        value: Any,
        options: Sequence[str],
        changed: Callable[[str, Any], None],
        number: float = 1,
    ) -> None:
        self.field, self._changed, self._writing = field, changed, False
        switched = field.auto and field.kind in ("integer", "number")
        self.input = _input(field, number if switched and value == "auto" else value, options)
        self.auto = _auto_button(field, value == "auto") if switched else None
        self.note = widgets.HTML().add_class("nmd-note")
        line = self.input
        if self.auto is not None:
            line = widgets.Box([self.input, self.auto]).add_class("nmd-switched")
            self.auto.observe(self._tell, "value")
        self.box = widgets.VBox([line, self.note])
        self.box.add_class("nmd-control").add_class(f"nmd-{field.name.replace('_', '-')}")
        self.input.observe(self._tell, "value")
        self.show(None, None)

    @property
    def value(self) -> Any:
        """What the user has entered."""
        if self.auto is not None and self.auto.value:
            return "auto"
        return number_of(self.input.value, self.field.kind)

    def write(self, value: Any) -> None:
        """Show another value, without a call of `changed`."""
        self._writing = True
        try:
            if self.auto is not None:
                self.auto.value = value == "auto"
            if self.auto is None or value != "auto":
                self.input.value = _entered(value, self.field.kind)
        finally:
            self._writing = False

    def _tell(self, _change: Any) -> None:
        """Tell of a change by the user."""
        if not self._writing:
            self._changed(self.field.name, self.value)

    def show(self, problem: str | None, reason: str | None) -> None:
        """Show what is wrong with the value, or disable the input and show why."""
        is_auto = self.auto is not None and self.auto.value
        self.input.disabled = reason is not None or is_auto
        if self.auto is not None:
            self.auto.disabled = reason is not None
        toggle_class(self.box, "nmd-is-auto", is_auto)
        self.note.value = escape(problem or reason or "")
        self.note.layout.display = None if problem or reason else "none"
        toggle_class(self.box, "nmd-wrong", bool(problem))


def _input(field: Field, value: Any, options: Sequence[str]) -> Any:
    """Return the input widget that suits the kind of a field."""
    common: dict[str, Any] = {
        "description": field.label,
        "tooltip": field.help or field.label,
        "style": {"description_width": "90px"},
        "layout": {"width": "auto"},
    }
    if field.kind == "choice":
        pairs = [(field.option_labels.get(option, option), option) for option in options]
        return widgets.Dropdown(options=pairs, value=value, **common)
    if field.kind == "text":
        return widgets.Combobox(
            options=list(options), value=str(value), continuous_update=False, **common
        )
    if field.kind == "share":
        return widgets.FloatSlider(
            value=value, min=0, max=0.95, step=0.05, readout_format=".2f",
            continuous_update=False, **common,
        )  # fmt: skip
    # Not an input of type "number", which rereads 2.7 as 27
    return widgets.Text(_entered(value, field.kind), continuous_update=False, **common)


def number_of(entered: Any, kind: str) -> Any:
    """Return what was entered: as a number where the kind asks for one and it is one."""
    if kind not in ("integer", "number"):
        return entered
    try:
        return int(entered) if kind == "integer" else float(entered)
    except ValueError:
        return entered  # which the check of the setting refuses, with what was entered


def _entered(value: Any, kind: str) -> Any:
    """Return a value as an input has it."""
    return f"{value:.12g}" if kind in ("integer", "number") and value != "" else value


def _auto_button(field: Field, pressed: bool) -> Any:
    """Return the button that gives a number the value "auto"."""
    tooltip = f"Choose the {field.label} by held-out entries"
    made = widgets.ToggleButton(pressed, description="auto", tooltip=tooltip)
    return made.add_class("nmd-auto")


def grouped(controls: Iterable[Control]) -> list[Any]:
    """Return the boxes of controls, with a heading before each group."""
    boxes, group = [], ""
    for control in controls:
        if control.field.group != group:
            group = control.field.group
            boxes.append(widgets.HTML(escape(group)).add_class("nmd-heading"))
        boxes.append(control.box)
    return boxes


def button(label: str, kind: str, action: Callable[[], None], tooltip: str = "") -> Any:
    """Return a button with the class ``nmd-<kind>``."""
    made = widgets.Button(description=label, tooltip=tooltip or label)
    made.add_class(f"nmd-{kind}")
    made.on_click(lambda _: action())
    return made


def toggle_class(widget: Any, name: str, on: bool) -> None:
    """Give a widget a class, or take it away."""
    (widget.add_class if on else widget.remove_class)(name)


def parts_of(widget: Any) -> list[Any]:
    """Return the widgets inside a widget, with their layouts and styles."""
    found: list[Any] = []
    waiting = [widget]
    while waiting:
        for value in waiting.pop().trait_values(sync=True).values():
            inner = value if isinstance(value, list | tuple) else [value]
            new = [each for each in inner if isinstance(each, widgets.Widget)]
            new = [each for each in new if all(each is not other for other in [widget, *found])]
            found += new
            waiting += new
    return found


def replace_children(box: Any, children: Iterable[Any]) -> None:
    """Put other widgets into a box, and give those before back."""
    before = box.children
    box.children = tuple(children)
    for widget in before:
        for part in (*parts_of(widget), widget):
            part.close()


class Debounced:
    """A function that runs once after a burst of calls.

    Parameters
    ----------
    function : callable
        Function without arguments.
    seconds : float
        Time without a call after which the function runs.
    """

    def __init__(self, function: Callable[[], None], seconds: float = 0.12) -> None:
        self._function, self._seconds = function, seconds
        self._handle: asyncio.TimerHandle | None = None

    def __call__(self, *_: Any) -> None:
        """Call the function after the pause, or at once where no event loop runs."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._function()
            return
        if self._handle is not None:
            self._handle.cancel()
        self._handle = loop.call_later(self._seconds, self._function)


COPY_SCRIPT = (
    "const box=this.parentNode,t=box.querySelector('textarea');"
    "if(navigator.clipboard&&window.isSecureContext){navigator.clipboard.writeText(t.value);}"
    "else{box.querySelector('details').open=true;t.select();document.execCommand('copy');}"
    "this.textContent='Copied';setTimeout(()=>{this.textContent='Copy as code';},1500);"
)
"""JavaScript of the copy button: the browser copies, without a message to the kernel."""


def copy_button(code: str) -> str:
    """Return the HTML of a button that copies code, and of the code itself."""
    return (
        '<button type="button" class="lm-Widget jupyter-widgets jupyter-button widget-button '
        'nmd-copy-button" title="Put a cell that repeats this on the clipboard" '
        f'onclick="{COPY_SCRIPT}">'
        "Copy as code</button><details><summary>Show the code</summary>"
        f'<textarea readonly aria-label="Code that repeats this" class="nmd-code" '
        f'spellcheck="false" rows="{code.count(chr(10)) + 1}">{escape(code)}</textarea></details>'
    )
