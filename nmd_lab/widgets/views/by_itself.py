"""What an explorer does without a click: it fits when opened, and again when a setting changes."""

from __future__ import annotations

from .view import View

QUICK = 1.0  # seconds of a fit up to which a change of a setting fits again


def begin(view: View) -> None:
    """Fit as soon as the page is open, unless there is something to see already."""
    fresh = view.state.active.phase == "ready" and view.result is None
    if fresh and view.opens and not view.cannot_run():
        view.state.open()


def follow(view: View, name: str) -> str:
    """Fit again after a setting was changed on the page, if that is quick; else say how long."""
    state = view.state
    if not view.opens or name in state.lengths or view.cannot_run():
        return ""
    if name == "data":
        state.open()
        return ""
    result = state.fit.result
    seconds = 0.0 if result is None else float(result.history.seconds[-1])
    if seconds < QUICK:
        state.start()
        return ""
    return f"changed: Run takes about {seconds:.0f} s"
