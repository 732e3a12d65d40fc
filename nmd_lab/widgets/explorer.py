"""What all explorers share: controls, the buttons of a run, the status line, saving, code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from ._controls import Control, button, copying, grouped
from ._style import CSS
from .fields import SettingsState
from .live_fit import LiveFit, sentence


class Explorer(widgets.VBox):  # type: ignore[misc]
    """A view of a state: it shows what the state knows and hands on what the user does.

    Parameters
    ----------
    state : SettingsState
        With `fit`, `start`, `proceed`, `reset`, `changed` and `code`.
    filename : str
        Under which name a result is saved unless the user gives another.
    """

    def __init__(self, state: Any, filename: str) -> None:
        super().__init__()
        self.add_class("nmd-explorer")
        self.model: SettingsState = state
        self.fit: LiveFit = state.fit
        self._state = state
        self._lock = threading.RLock()
        self._note: tuple[str, bool] | None = None
        self._saved: set[Path] = set()
        self._code = ""
        options = getattr(state, "options", {})
        self.controls = {
            field.name: Control(
                field,
                state.values[field.name],
                options.get(field.name, field.options),
                self._set,
            )
            for field in state.fields
        }
        self.buttons = {
            "run": button("Run", "run", self._guarded(self._run)),
            "stop": button("Stop", "stop", self._guarded(self.stop)),
            "continue": button("Continue", "continue", self._guarded(self._proceed)),
            "reset": button("Reset", "reset", self._guarded(self._reset)),
        }
        self.buttons["run"].button_style = "primary"
        self.progress = widgets.IntProgress(min=0, max=1, tooltip="Progress of the run")
        self.progress.add_class("nmd-progress")
        self.status = widgets.HTML().add_class("nmd-status")
        self._file = widgets.Text(
            filename, description="File", tooltip="Where Save writes to", continuous_update=False,
            style={"description_width": "32px"},
        ).add_class("nmd-filename")  # fmt: skip
        self._save = button(
            "Save", "save", self._guarded(self.save), "Write the result to the file"
        )
        self._copy = widgets.HTML().add_class("nmd-copy")
        toolbar = widgets.Box([*self.buttons.values(), self.progress]).add_class("nmd-toolbar")
        footer = widgets.Box([self._file, self._save, self._copy]).add_class("nmd-footer")
        controls = widgets.VBox(grouped(self.controls.values())).add_class("nmd-controls")
        main = widgets.VBox([toolbar, self.status, *self.body(), footer]).add_class("nmd-main")
        columns = widgets.Box([controls, main]).add_class("nmd-columns")
        self.children = (widgets.HTML(f"<style>{CSS}</style>", layout={"display": "none"}), columns)
        self.fit.listeners.append(self._refresh)
        self._settings_changed()

    def body(self) -> Sequence[Any]:
        """Return the widgets between the status line and the footer."""
        return ()

    def draw(self) -> None:
        """Show what there is to see; called by any thread, by one at a time."""

    @property
    def result(self) -> Any:
        """The result as far as it has come, or None."""
        return self.fit.result

    def start(self) -> None:
        """Do what Run does.

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
        """Return why Run is not possible now, or an empty word."""
        return next(iter(self.model.problems().values()), "")

    def stop(self) -> None:
        """Do what Stop does."""
        self.fit.stop()
        self._show_status()  # and nothing else: a picture may be in the making

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended, at most `timeout` seconds; return whether it has."""
        return self.fit.join(timeout)

    def code(self) -> str:
        """Return the cell that Copy as code copies."""
        return str(self._state.code())

    def save(self) -> None:
        """Write the result to the file that is named beside the button."""
        path = Path(self._file.value).expanduser()
        if self.result is None:
            raise ValueError("there is no result yet: press Run first.")
        if path.exists() and path.absolute() not in self._saved:
            raise ValueError(f"{path.name} exists already: give another name.")
        self.write(path)
        self._saved.add(path.absolute())
        self._tell(f"saved as {path}")

    def write(self, path: Path) -> None:
        """Write the result."""
        self.result.save(path)

    def close(self) -> None:
        """End the run and take the widgets away."""
        self.fit.reset(tell=False)
        self.fit.listeners.clear()
        super().close()

    def _run(self) -> None:
        self._note = None
        self._state.start()

    def _proceed(self) -> None:
        self._note = None
        self._state.proceed()

    def _reset(self) -> None:
        self._note = None
        self._state.reset()

    def _set(self, name: str, value: Any) -> None:
        self._guarded(lambda: self._change(name, value))()

    def _change(self, name: str, value: Any) -> None:
        self._note = None
        self.model.set(name, value)
        self._settings_changed()

    def _settings_changed(self) -> None:
        """Show what is wrong with the settings and what they mean."""
        problems, reasons = self.model.problems(), self.model.reasons()
        for name, control in self.controls.items():
            control.show(problems.get(name), reasons.get(name))
        self._refresh()

    def _guarded(self, action: Callable[[], Any]) -> Callable[[], None]:
        """Return an action whose errors appear in the status line."""

        def guarded() -> None:
            try:
                action()
            except Exception as error:
                self._tell(sentence(error), failed=True)

        return guarded

    def _tell(self, words: str, *, failed: bool = False) -> None:
        """Put something else than the state of the run into the status line."""
        self._note = words, failed
        self._show_status()

    def _show_status(self) -> None:
        words, failed = self._note or (self.fit.message, self.fit.phase == "failed")
        kind = f"nmd-{'failed' if failed else self.fit.phase}"
        self.status.value = (
            f'<span role="status" aria-live="polite" class="{kind}">{escape(words)}</span>'
        )

    def _refresh(self) -> None:
        """Bring everything up to date."""
        with self._lock:
            try:
                self._show_buttons()
                self.progress.max = max(self.fit.planned, 1)
                self.progress.value = 0 if self.fit.state is None else self.fit.state.iteration
                if self.fit.phase != "running":
                    self._show_code()  # first: who reads that it has stopped may copy at once
                self._show_status()
                self.draw()
            except Exception as error:
                self._tell(sentence(error), failed=True)

    def _show_buttons(self) -> None:
        running = self.fit.phase == "running"
        problem = "" if running else self.cannot_run()
        nothing = "" if self.fit.can_proceed else "there is nothing to go on from"
        changed = "the settings have changed: Run begins anew" if self._state.changed else ""
        busy = "it is running" if running else ""
        empty = "" if running or self.fit.phase != "ready" else "there is nothing to forget"
        why = {
            "run": busy or problem,
            "stop": "" if running else "nothing runs",
            "continue": busy or nothing or changed,
            "reset": empty,
        }
        for name, reason in why.items():
            self.buttons[name].disabled = bool(reason)
            self.buttons[name].tooltip = reason or HELP[name]
        self._save.disabled = running or self.result is None
        self._save.tooltip = (busy or "there is no result yet") if self._save.disabled else "Save"

    def _show_code(self) -> None:
        problem = next(iter(self.model.problems().values()), None)
        if problem is not None and self.fit.result is None:
            return
        code = self.code()
        if code != self._code:
            self._code, self._copy.value = code, copying(code)


HELP = {
    "run": "Fit with these settings, from the start",
    "stop": "Stop at the next iteration",
    "continue": "Go on from where it stopped",
    "reset": "Forget the fit",
}
