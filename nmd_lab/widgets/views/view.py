"""What an explorer shows of a state, and what the user's actions do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nmd_lab._errors import sentence
from nmd_lab.result.headline import headline_of
from nmd_lab.widgets.parts.texts import model_text
from nmd_lab.widgets.states.code import name_in_notebook
from nmd_lab.widgets.states.fields import FitState

from .history import History

Action = Callable[[Mapping[str, Any]], Any]
"""What a message of the front end does; a view that it returns is shown from then on."""

NO_DATA = "explore data, not what was made of them."
TITLES = {
    "run": "Fit with these settings, from the start",
    "stop": "Stop at the next iteration",
    "continue": "Continue where it stopped",
    "reset": "Forget the fit",
}
"""Tooltips of the buttons that are enabled."""

QUICK = 1.0  # seconds of a fit up to which a change of a setting fits again


class View:
    """The base of the views; by default, there is nothing to fit.

    `source` is what the user gave and the attribute of the state that holds it.
    """

    can_fit = True  # whether there are data to fit, and so buttons and controls
    opens = False  # whether a fit begins by itself when the page is opened

    def __init__(
        self, state: FitState, filename: str, source: tuple[Any, str] = (None, "")
    ) -> None:
        self.state, self.filename, self.source = state, filename, source
        self.actions: dict[str, Action] = {}
        # Label and tooltip of the buttons beside Run, Stop, Continue and Reset, by their action
        self.buttons: dict[str, tuple[str, str]] = {}
        self.selection: dict[str, Any] | None = None
        # Code that gives the data and a line about them, if they are from a file
        self.data_code: str | None = None
        self.said = ""

    def parts(self, history: History) -> dict[str, Any]:
        """Return the parts of the page between the buttons and the runs, by their names."""
        raise NotImplementedError

    def setting_changed(self, name: str) -> None:
        """Adapt what is shown to a setting that has changed."""

    def place(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return positions "row", "column" and "pixel" at `picture`, `y` and `x` of a message."""
        return {}

    def select(self, selection: dict[str, Any] | None) -> None:
        """Take what was picked: "row", "column", "pixel" in a picture, and the list "rows"."""
        self.selection = selection

    @property
    def result(self) -> Any:
        """Result so far, or None."""
        return self.state.fit.result

    def choose(self) -> None:
        """Choose all settings that may be "auto", and fit with them."""
        raise ValueError(f"nothing can be chosen here: {NO_DATA}")

    def how_sure(self) -> None:
        """Draw from the posterior with the present settings."""
        raise ValueError(f"nothing can be drawn here: {NO_DATA}")

    def brush(self, stroke: Mapping[str, Any]) -> None:
        """Hide or reveal pixels, and fit again from the present factors."""
        raise ValueError("no pixels can be hidden here: explore a matrix.")

    @property
    def title(self) -> str:
        """What the data are, in a few words."""
        return ""

    @property
    def model(self) -> str:
        """The model that is shown, in a few words."""
        return "" if self.result is None else model_text(self.result)

    def headline(self) -> dict[str, Any] | None:
        """Return the one number in the bar, or None before a fit."""
        return None if self.result is None else headline_of(self.result)

    def cannot_run(self) -> str:
        """Return why no fit can be started now, or an empty string."""
        return next(iter(self.state.problems().values()), "")

    def why_disabled(self, name: str) -> str:
        """Return why a button of `buttons` has no use now, or an empty string."""
        raise NotImplementedError(name)

    def start(self) -> None:
        """Start a fit with the present settings, if it can run."""
        if problem := self.cannot_run():
            raise ValueError(problem)
        self.state.start()

    def notes(self) -> list[str]:
        """Return lines below the status line."""
        return []

    def write(self, path: Path) -> None:
        """Write the result to a file."""
        self.result.save(path)

    def code(self, explorer: Any) -> str:
        """Return a notebook cell that repeats what was done."""
        data, attribute = self.source
        name = self.data_code
        if data is not None and name is None:
            name = name_in_notebook(data)
            if name is None and (variable := name_in_notebook(explorer)):
                name = f"{variable}.state.{attribute}"
        return self.state.code(name)

    def begin(self) -> None:
        """Fit as soon as the page is open, unless there is something to see already."""
        fresh = self.state.active.phase == "ready" and self.result is None
        if fresh and self.opens and not self.cannot_run():
            self.state.start(looks=True)

    def follow(self, name: str) -> str:
        """Fit again after a setting was changed on the page, or say how long that would take."""
        if not self.opens or name in self.state.lengths or self.cannot_run():
            return ""
        result = self.state.fit.result
        seconds = 0.0 if result is None else float(result.history.seconds[-1])
        if name != "data" and seconds >= QUICK:
            return f"changed: Run takes about {seconds:.0f} s"
        self.state.start(looks=name == "data")
        return ""

    def close(self) -> None:
        """Stop everything, and forget it."""
        for work in self.state.works:
            work.reset(tell=False)
            work.listeners.clear()


def status_part(view: View, note: tuple[str, bool] | None) -> dict[str, Any]:
    """Return what is said of the work that was begun last; an error in a view is said, too."""
    active, bar = view.state.active, dict[str, Any](headline=None, title="", model="")
    try:
        notes, why = view.notes(), reasons(view) if view.can_fit else {}
        bar = {"headline": view.headline(), "title": view.title, "model": view.model}
    except Exception as error:
        notes, why, note = [], dict.fromkeys(TITLES, ""), (sentence(error), True)
    message, failed = note or (active.message, active.phase == "failed")
    running = active.phase == "running"
    return {
        "phase": active.phase,
        "message": message,
        "failed": failed,
        "done": active.done,
        "planned": max(active.planned, 1),
        "left": seconds_left(active) if running and not note else "",
        "warnings": list(active.warnings),
        "notes": [line for line in notes if line],
        "buttons": buttons(view, why),
        "filename": view.filename,
        **bar,
        "save": "" if view.result is not None else "there is no result yet",
    }


def reasons(view: View) -> dict[str, str]:
    """Return why each button has no use now, an empty string if it has, by its action."""
    running = view.state.active.phase == "running"
    begun = view.state.active.phase != "ready"
    busy = "it is running" if running else ""
    why = {
        "run": busy or view.cannot_run(),
        "stop": "" if running else "nothing runs",
        "continue": busy or why_no_more(view),
        "reset": "" if begun else "there is nothing to forget",
    }
    return why | {name: busy or view.why_disabled(name) for name in view.buttons}


def buttons(view: View, why: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return label, tooltip and state of each button, by the name of its action."""
    texts = {name: (name.capitalize(), title) for name, title in TITLES.items()} | view.buttons
    return {
        name: {"label": texts[name][0], "disabled": bool(text), "title": text or texts[name][1]}
        for name, text in why.items()
    }


def why_no_more(view: View) -> str:
    """Return why the fit cannot be continued, or an empty string."""
    fit = view.state.fit
    if not fit.can_proceed:
        ended = fit.result is not None and fit.result.stop_reason.code == "converged"
        return "the fit has converged" if ended else "there is nothing to go on from"
    return "the settings have changed: Run starts a new fit" if view.state.changed else ""


def seconds_left(active: Any) -> str:
    """Return about how long a run will still take; empty in its first second."""
    spent, steps = time.perf_counter() - active.began, active.done - active.done_before
    if spent < 1 or steps < 1:
        return ""
    left = spent / steps * (active.planned - active.done)
    if left < 90:
        return f"about {left:.0f} s left"
    return f"about {left / 60:.0f} min left" if left < 5400 else f"about {left / 3600:.0f} h left"
