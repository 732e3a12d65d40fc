"""The status line of an explorer, its buttons, and how long a run will take."""

from __future__ import annotations

import time
from typing import Any

from nmd_lab._errors import sentence

from .view import View

TITLES = {
    "run": "Fit with these settings, from the start",
    "stop": "Stop at the next iteration",
    "continue": "Continue where it stopped",
    "reset": "Forget the fit",
}
"""Tooltips of the buttons that are enabled."""


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
