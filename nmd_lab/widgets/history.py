"""The runs of an explorer: a table, curves next to the present ones, and the way back."""

from __future__ import annotations

from typing import Any, NamedTuple

from nmd_lab.result.selection import as_text

from .settings import FitState

MOST = 12  # number of runs that are kept; the oldest one is forgotten first


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
        self.overlaid: set[int] = set()  # numbers of the runs whose curves are drawn, too
        self.beside: int | None = None  # that whose picture is shown beside the present one
        self._count = 0

    def lines(self, state: FitState) -> list[dict[str, Any]]:
        """Keep the present run if it has ended, and return a line for each run."""
        self._keep(state)
        return [self._line(run, run.recording is state.fit.recording) for run in self.runs.values()]

    def act(self, state: FitState, number: int, what: str) -> None:
        """Draw, hide or recall a run, as its button was pressed."""
        if number not in self.runs:
            raise ValueError(f"run {number} is not kept: choose another.")
        if what == "overlay":
            self.overlaid ^= {number}
        elif what == "beside":
            self.beside = None if self.beside == number else number
        else:
            state.recall(self.runs[number].saved)

    def overlays(self, state: FitState) -> list[tuple[str, Any]]:
        """Return label and recording of the runs that are drawn next to the present one."""
        shown = [run for number, run in self.runs.items() if number in self.overlaid]
        others = [run for run in shown if run.recording is not state.fit.recording]
        return [(f"run {run.number}", run.recording) for run in others]

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
        """Return a line of the table; errors are in the unit of the data."""
        held_out, data = run.recording.of_result, run.saved.get("fitted_data")
        sizes = {} if data is None else data.unseen.sizes
        seen = run.fit.relative_error * sizes.get("relative_error", 1.0)
        return {
            "number": run.number,
            "settings": self._differences(run),
            "error": f"{seen:.4g}",
            "held_out": "" if held_out is None else f"{held_out * sizes.get('held_out', 1.0):.4g}",
            "iterations": run.fit._n_iter,
            "current": is_current,
            "overlaid": run.number in self.overlaid,
            "beside": run.number == self.beside,
        }

    def _differences(self, run: PastRun) -> str:
        """Return the settings of a run that are not those of all runs; the rank in any case."""
        others, paint = (
            [each.saved["values"] for each in self.runs.values()],
            run.saved.get("paint"),
        )
        shown = [
            f"{name.replace('_', ' ')} {as_text(value)}"
            for name, value in run.saved["values"].items()
            if name == "rank" or any(other.get(name) != value for other in others)
        ]
        return ", ".join([*shown, *([f"{paint.n_painted} entries painted"] if paint else [])])
