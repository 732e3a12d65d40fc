"""The runs of an explorer: a table, curves beside the present ones, and the way back."""

from __future__ import annotations

from typing import Any, NamedTuple

from nmd_lab.widgets.states.fields import FitState

MOST = 12  # number of runs that are kept; the oldest one is forgotten first


class PastRun(NamedTuple):
    """One run, and what is needed to go back to it."""

    number: int  # number of the run, from 1 on
    saved: dict[str, Any]  # what `FitState.keep` returned

    @property
    def fit(self) -> Any:
        """The result."""
        return self.saved["fit"]["result"]

    @property
    def recording(self) -> Any:
        """Curves and iterates."""
        return self.saved["fit"]["recording"]


class History:
    """Runs of one state, the newest last."""

    def __init__(self) -> None:
        self.entries: list[PastRun] = []
        self.overlaid: set[int] = set()  # numbers of the runs whose curves are drawn, too
        self.beside: int | None = None  # that whose picture is shown beside the present one
        self._count = 0

    def lines(self, state: FitState) -> list[dict[str, Any]]:
        """Keep the present run if it has ended, and return a line for each run."""
        self._keep(state)
        current = self.current(state)
        return [self._line(entry, entry is current) for entry in self.entries]

    def current(self, state: FitState) -> PastRun | None:
        """Return the entry of the present run, or None."""
        recording = state.fit.recording
        return next((each for each in self.entries if each.recording is recording), None)

    def act(self, state: FitState, number: int, what: str) -> None:
        """Do what a button beside a run asks for."""
        entry = self.find(number)
        if entry is None:
            raise ValueError(f"run {number} is not kept: choose another.")
        if what == "overlay":
            self.overlaid ^= {number}
        elif what == "beside":
            self.beside = None if self.beside == number else number
        else:
            state.recall(entry.saved)

    def overlays(self, state: FitState) -> list[tuple[str, Any]]:
        """Return label and recording of the runs that are drawn beside the present one."""
        current = self.current(state)
        return [
            (f"run {entry.number}", entry.recording)
            for entry in self.entries
            if entry.number in self.overlaid and entry is not current
        ]

    def find(self, number: int | None) -> PastRun | None:
        """Return the run with a number, if it is kept."""
        return next((each for each in self.entries if each.number == number), None)

    def _keep(self, state: FitState) -> None:
        """Add the present run, or bring its entry up to date."""
        if state.fit.result is None or state.fit.phase not in ("stopped", "finished"):
            return
        present = self.current(state)
        if present is not None and present.fit is state.fit.result:
            return
        replaced = [each for each in self.entries if each is present or _same_stroke(each, state)]
        if not replaced:
            self._count += 1
        number = replaced[0].number if replaced else self._count
        entry = PastRun(number, state.keep())
        others = [each for each in self.entries if each.number != number]
        self.entries = sorted([*others, entry], key=lambda each: each.number)[-MOST:]

    def _line(self, entry: PastRun, is_current: bool) -> dict[str, Any]:
        """Return a line of the table."""
        held_out, hidden = entry.recording.of_result, entry.saved.get("hidden")
        sizes = {} if hidden is None else hidden.sizes  # errors are in the unit of the data
        seen = entry.fit.relative_error * sizes.get("relative_error", 1.0)
        return {
            "number": entry.number,
            "settings": self._differences(entry),
            "error": f"{seen:.4g}",
            "held_out": "" if held_out is None else f"{held_out * sizes.get('held_out', 1.0):.4g}",
            "iterations": entry.fit.n_iter,
            "current": is_current,
            "overlaid": entry.number in self.overlaid,
            "beside": entry.number == self.beside,
        }

    def _differences(self, entry: PastRun) -> str:
        """Return the settings of a run that are not those of all runs; the rank in any case."""
        others, paint = [each.saved["values"] for each in self.entries], entry.saved.get("paint")
        shown = [
            f"{name.replace('_', ' ')} {_text(value)}"
            for name, value in entry.saved["values"].items()
            if name == "rank" or any(other.get(name) != value for other in others)
        ]
        return ", ".join([*shown, *([f"{paint.n_painted} entries painted"] if paint else [])])


def _same_stroke(entry: PastRun, state: FitState) -> bool:
    """Return whether an entry and the present fit are both of a brush that began at one fit."""
    before, now = entry.saved.get("before_brush"), getattr(state, "before_brush", None)
    return before is not None and now is not None and before.fit is now.fit


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
