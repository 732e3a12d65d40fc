"""The base of all explorers: controls, buttons, status line, saving and code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from nmd_lab._errors import sentence

from ._controls import Control, button, copy_button, grouped, parts_of
from ._file_data import READER_IMPORT
from ._style import CSS
from .code import name_in_notebook
from .fields import FitState
from .live_fit import LiveFit

TOOLTIPS = {
    "run": "Fit with these settings, from the start",
    "stop": "Stop at the next iteration",
    "continue": "Continue where it stopped",
    "reset": "Forget the fit",
}
"""Tooltips of the buttons that are enabled."""


class Explorer(widgets.VBox):  # type: ignore[misc]
    """A view of a state: it shows the state, and passes on what the user changes.

    Parameters
    ----------
    state : FitState
        Data, settings and fit.
    filename : str
        Name of the file that Save writes unless the user gives another.

    Attributes
    ----------
    state : FitState
        Data, settings and fit.
    fit : LiveFit
        The fit of the state.
    controls : dict of str to Control
        Controls by the name of their setting.
    buttons : dict of str to Button
        Buttons "run", "stop", "continue" and "reset".
    status, warnings : HTML
        Line that says what goes on, and the warnings of the fit.
    sidebar, tools : VBox and Box
        Parts of the page with the controls, and with the buttons.
    """

    state: FitState

    def __init__(self, state: FitState, filename: str) -> None:
        super().__init__()
        self.add_class("nmd-explorer")
        self.state = state
        self.fit: LiveFit = state.fit
        self._lock = threading.RLock()
        self._note: tuple[str, bool] | None = None
        self._saved: set[Path] = set()
        self._code = ""
        self._source: str | None = None
        self.controls = {
            field.name: Control(
                field,
                state.values[field.name],
                state.options.get(field.name, field.options),
                self._set,
                state.numbers.get(field.name, 1),
            )
            for field in state.fields
        }
        self.sidebar = widgets.VBox(self._sidebar()).add_class("nmd-controls")
        self.tools, footer = self._toolbar(), self._footer(filename)
        above = self.tools, self.status, *self._notes()
        main = widgets.VBox([*above, *self.body(), footer]).add_class("nmd-main")
        columns = widgets.Box([self.sidebar, main]).add_class("nmd-columns")
        self.children = (widgets.HTML(f"<style>{CSS}</style>", layout={"display": "none"}), columns)
        self.fit.listeners.append(self._refresh)
        self._settings_changed()

    def _sidebar(self) -> list[Any]:
        """Return the boxes of the controls."""
        return grouped(self.controls.values())

    def _notes(self) -> list[Any]:
        """Return the widgets below the status line."""
        return [self.warnings]

    def _toolbar(self) -> Any:
        """Make the buttons, the progress bar, the status line and the place of the warnings."""
        actions = {
            "run": self._run,
            "stop": self.stop,
            "continue": self._proceed,
            "reset": self._reset,
        }
        self.buttons = {
            name: button(name.capitalize(), name, self._guarded(action))
            for name, action in actions.items()
        }
        self.buttons["run"].button_style = "primary"
        self.progress = widgets.IntProgress(min=0, max=1, tooltip="Progress of the run")
        self.progress.add_class("nmd-progress")
        self.status = widgets.HTML().add_class("nmd-status")
        self.warnings = widgets.HTML().add_class("nmd-warnings")
        return widgets.Box([*self.buttons.values(), self.progress]).add_class("nmd-toolbar")

    def _footer(self, filename: str) -> Any:
        """Make what saves the result and copies the code."""
        self._file = widgets.Text(
            filename, description="File", tooltip="File that Save writes", continuous_update=False,
            style={"description_width": "32px"},
        ).add_class("nmd-filename")  # fmt: skip
        self._save = button(
            "Save", "save", self._guarded(self.save), "Write the result to the file"
        )
        self._copy = widgets.HTML().add_class("nmd-copy")
        return widgets.Box([self._file, self._save, self._copy]).add_class("nmd-footer")

    def body(self) -> Sequence[Any]:
        """Return the widgets between the status line and the footer."""
        return ()

    def draw(self) -> None:
        """Bring the body up to date; one thread at a time calls this, but it may be any."""

    @property
    def result(self) -> Any:
        """The result of the iterations so far, or None."""
        return self.fit.result

    def start(self) -> None:
        """Start a fit, as Run does.

        Raises
        ------
        ValueError
            If a setting is wrong.
        """
        problem = self.cannot_run()
        if problem:
            raise ValueError(problem)
        self._run()

    def cannot_run(self) -> str:
        """Return why no fit can be started now, or an empty string."""
        return next(iter(self.state.problems().values()), "")

    def stop(self) -> None:
        """Stop at the next iteration, as Stop does."""
        self.state.active.stop()
        self._show_status()  # nothing else, since another thread may be drawing

    def join(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for the run to end, and return whether it has ended."""
        return self.state.active.join(timeout)

    def code(self) -> str:
        """Return the notebook cell that Copy as code copies."""
        return self.state.code()

    def save(self) -> None:
        """Write the result to the file named beside the button.

        Raises
        ------
        ValueError
            If there is no result, or if the explorer would replace a file of another origin.
        """
        path = Path(self._file.value).expanduser()
        if self.result is None:
            raise ValueError("there is no result yet: press Run first.")
        if path.exists() and path.absolute() not in self._saved:
            raise ValueError(f"{path.name} exists already: give another name.")
        self.write(path)
        self._saved.add(path.absolute())
        self._tell(f"saved as {path}")

    def write(self, path: Path) -> None:
        """Write the result to a file."""
        self.result.save(path)

    def close(self) -> None:
        """Stop the fit, and give back all widgets."""
        fit: LiveFit | None = getattr(self, "fit", None)  # None where the settings were refused
        if fit is not None:
            fit.reset(tell=False)
            fit.listeners.clear()
        for part in parts_of(self):
            part.close()
        super().close()

    def _run(self) -> None:
        """Start a fit."""
        self._note = None
        self.state.start()

    def _proceed(self) -> None:
        """Continue the fit."""
        self._note = None
        self.state.proceed()

    def _reset(self) -> None:
        """Forget the fit."""
        self._note = None
        self.state.reset()

    def _set(self, name: str, value: Any) -> None:
        """Change a setting, and show errors in the status line."""
        self._guarded(lambda: self._change(name, value))()

    def _change(self, name: str, value: Any) -> None:
        """Change a setting."""
        self._note = None
        self.state.set(name, value)
        self._settings_changed()

    def _settings_changed(self) -> None:
        """Show which settings are wrong or without effect, and bring everything else up to date."""
        self._show_problems()
        self._refresh()

    def _show_problems(self) -> None:
        """Show beside the controls which settings are wrong or without effect."""
        problems, reasons = self.state.problems(), self.state.reasons()
        for name, control in self.controls.items():
            control.show(problems.get(name), reasons.get(name))

    def _guarded(self, action: Callable[[], Any]) -> Callable[[], None]:
        """Return an action whose errors appear in the status line."""

        def guarded() -> None:
            try:
                action()
            except Exception as error:
                self._tell(sentence(error), failed=True)

        return guarded

    def _tell(self, message: str, *, failed: bool = False) -> None:
        """Show a message in the status line until the next action of the user."""
        self._note = message, failed
        self._show_status()

    def _show_status(self) -> None:
        """Show the message, or how far it is if there is none."""
        active = self.state.active
        message, failed = self._note or (active.message, active.phase == "failed")
        kind = f"nmd-{'failed' if failed else active.phase}"
        self.status.value = (
            f'<span role="status" aria-live="polite" class="{kind}">{escape(message)}</span>'
        )
        self.warnings.value = "".join(
            f'<div role="status">Warning: {escape(warning)}</div>' for warning in active.warnings
        )

    def _refresh(self) -> None:
        """Bring everything up to date."""
        with self._lock:
            try:
                self._show_buttons()
                active = self.state.active
                self.progress.max, self.progress.value = max(active.planned, 1), active.done
                if active.phase != "running":
                    # Before the status: whoever reads that the fit has stopped may copy at once
                    self._show_code()
                self._show_status()
                self.draw()
            except Exception as error:
                self._tell(sentence(error), failed=True)

    def _show_buttons(self) -> None:
        """Disable the buttons that have no use now, and show why."""
        running = self.state.active.phase == "running"
        busy = "it is running" if running else ""
        problem = "" if running else self.cannot_run()
        no_fit = "" if self.fit.can_proceed else "there is nothing to go on from"
        changed = "the settings have changed: Run starts a new fit" if self.state.changed else ""
        no_result = "" if self.state.active.phase != "ready" else "there is nothing to forget"
        reasons = {
            "run": busy or problem,
            "stop": "" if running else "nothing runs",
            "continue": busy or no_fit or changed,
            "reset": no_result,
        }
        for name, reason in reasons.items():
            self.buttons[name].disabled = bool(reason)
            self.buttons[name].tooltip = reason or TOOLTIPS[name]
        self._save.disabled = running or self.result is None
        self._save.tooltip = (busy or "there is no result yet") if self._save.disabled else "Save"

    def _show_code(self) -> None:
        """Put the present code behind Copy as code, unless the settings are wrong."""
        if self.state.problems() and self.fit.result is None:
            return
        code = self.code()
        if code != self._code:
            self._code, self._copy.value = code, copy_button(code)

    def take_file(self, what: str, code: str) -> None:
        """Say in the status line and in the code that the data are from a file.

        Parameters
        ----------
        what : str
            Line that says what was read.
        code : str
            Code that reads it.
        """
        self._source, self.state.imports = code, READER_IMPORT
        self._refresh()
        self._tell(what)

    def _data_name(self, data: Any, attribute: str) -> str | None:
        """Return the code that gives the user's data in the notebook, or None if there is none.

        Parameters
        ----------
        data : object
            Data of the user, or None.
        attribute : str
            Attribute of the state that holds the data.
        """
        if data is None or self._source is not None:
            return self._source
        name = name_in_notebook(data)
        if name is None and (explorer := name_in_notebook(self)):
            return f"{explorer}.state.{attribute}"
        return name
