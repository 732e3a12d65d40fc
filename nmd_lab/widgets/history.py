"""The runs of an explorer: their errors, the way back, and one left of the dividers."""

from __future__ import annotations

from typing import Any, NamedTuple

from nmd_lab.result.selection import as_text

from .settings import FitState
from .words import two_digits

MOST = 12  # number of runs that are kept; the oldest one is forgotten first
WORDS = {"rank": "{} components", "alpha": "ridge {}", "nonlinearity": "{}"}  # of settings


class PastRun(NamedTuple):
    """One run, and what is needed to go back to it."""

    number: int  # number of the run, from 1 on
    saved: dict[str, Any]  # what `FitState.keep` returned
    fit: Any  # its result
    recording: Any  # its curves and iterates


class History:
    """Runs of one state by number, the newest last."""

    def __init__(self) -> None:
        self.runs: dict[int, PastRun] = {}
        self.left: int | None = None  # number of that which is left of the dividers
        self._count = 0

    def lines(self, state: FitState) -> list[dict[str, Any]]:
        """Keep the present run if it has ended, and return a line for each run."""
        self._keep(state)
        return [self._line(run, run.recording is state.fit.recording) for run in self.runs.values()]

    def act(self, state: FitState, number: int, what: str) -> None:
        """Show a run left of the dividers, or no longer, or go back to it."""
        if number not in self.runs:
            raise ValueError(f"run {number} is not kept: choose another.")
        if what == "left":
            self.left = None if self.left == number else number
        else:
            state.recall(self.runs[number].saved)

    def _keep(self, state: FitState) -> None:
        """Add the present run, or bring its entry up to date."""
        fit = state.fit
        if fit.result is None or fit.phase not in ("stopped", "finished"):
            return
        runs = self.runs.values()
        if any(run.recording is fit.recording and run.fit is fit.result for run in runs):
            return
        before = getattr(state, "before_brush", None)  # that of strokes that began at one fit
        same = [
            run
            for run in runs
            if run.recording is fit.recording
            or (before is not None and run.saved["before_brush"] is before)
        ]
        if not same:
            self._count += 1
        number = same[0].number if same else self._count
        self.runs[number] = PastRun(number, state.keep(), fit.result, fit.recording)
        if len(self.runs) > MOST:
            del self.runs[min(self.runs)]

    def _line(self, run: PastRun, is_current: bool) -> dict[str, Any]:
        """Return a run: its error where entries are hidden, in the unit of the data."""
        error, data = run.recording.of_result, run.saved.get("fitted_data")
        if data is not None and error is not None:
            error = data.unseen.in_units(error)
        return {
            "number": run.number,
            "text": self.words(run),
            "off": error,
            "error": "" if error is None else two_digits(error),
            "current": is_current,
            "left": run.number == self.left,
        }

    def words(self, run: PastRun) -> str:
        """Return the settings of a run that are not those of all runs; the rank in any case."""
        others = [each.saved["values"] for each in self.runs.values()]
        paint = run.saved.get("paint")
        shown = [
            WORDS.get(name, f"{name} {{}}").format(as_text(value))
            for name, value in run.saved["values"].items()
            if name == "rank" or any(other.get(name) != value for other in others)
        ]
        painted = [f"{paint.n_painted} entries painted"] if paint else []
        return ", ".join([*shown, *painted])
