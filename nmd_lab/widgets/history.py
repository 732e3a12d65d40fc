"""The runs of an explorer: their errors, and which one is shown left of the dividers."""

from __future__ import annotations

from typing import Any, NamedTuple

from nmd_lab.result.selection import as_text
from nmd_lab.result.summary import two_digits

from .background import Begun

MAX_RUNS = 12  # runs that are kept; the oldest one is forgotten first
ALIKE_TOL = 0.005  # relative difference of errors that are alike
WORDS = {  # of settings
    "rank": "{} components",
    "groups": "{} groups",
    "method": "{}",
    "alpha": "penalty {}",
    "offset_alpha": "penalty of offsets {}",
    "nonlinearity": "{}",
    "missing": "{} hidden",
    "validation": "{} hidden",
}


class PastRun(NamedTuple):
    """One run, which continuations and strokes of the brush replace."""

    of: Any  # what these have in common
    fit: Any  # its result
    error: float | None  # where entries are hidden, as the sentence has it
    shown: str  # the same as text, or the fraction of classes that are right
    begun: Begun


class History:
    """Runs by number from 1, the newest last."""

    def __init__(self) -> None:
        self.runs: dict[int, PastRun] = {}
        self.left: int | None = None  # number of that which is left of the dividers
        self._count = 0

    @property
    def compared(self) -> PastRun | None:
        """The run left of the dividers."""
        return self.runs.get(self.left or 0)

    def lines(self, state: Any) -> list[dict[str, Any]]:
        """Keep the present run, if it has ended, with its number; return a line for each run."""
        number = state.number(of_fit=True)
        known = number is not None and bool(number.sign)
        if state.fit.result is not None and state.fit.phase in ("stopped", "finished"):
            self._keep(state.fit, *((number.error, number.shown) if known else (None, "")))
        shown = state.fit.result if state.number() == number else None  # else draws are
        now = number.error if known and not number.value else None
        return [
            {
                "number": k,
                "text": self.words(run),
                "off": run.error,
                "error": run.shown + (_difference(run.error, now) if k == self.left else ""),
                "current": run.fit is shown,
                "left": k == self.left,
            }
            for k, run in self.runs.items()
        ]

    def show_left(self, number: int) -> None:
        """Show a run left of the dividers, or no longer."""
        if number not in self.runs:
            raise ValueError(f"run {number} is not kept: choose another.")
        self.left = None if self.left == number else number

    def _keep(self, fit: Any, error: float | None, shown: str) -> None:
        """Add the present run, or bring its entry up to date."""
        of = fit.begun.before or fit.begun
        number = next((k for k, run in self.runs.items() if run.of is of), self._count + 1)
        self._count = max(self._count, number)
        self.runs[number] = PastRun(of, fit.result, error, shown, fit.begun)
        if len(self.runs) > MAX_RUNS:
            del self.runs[min(self.runs)]

    def words(self, run: PastRun) -> str:
        """Return the settings of a run that are not those of all runs; its size in any case."""
        settings, paint = run.begun.settings, run.begun.data and run.begun.data.paint
        others = [other.begun.settings for other in self.runs.values()]
        chosen = {"rank": getattr(run.fit, "rank", None)} if "rank" in settings else {}
        chosen |= {"groups": run.fit.sizes["group"]} if "groups" in settings else {}
        words = [
            WORDS.get(name, f"{name} {{}}").format(as_text(value))
            for name, value in (settings | chosen).items()
            if name in chosen
            or (value != "auto" and any(value != other.get(name) for other in others))
        ]
        painted = [f"{paint.n_painted} entries painted"] if paint and paint.n_painted else []
        return ", ".join([*words, *painted])


def _difference(error: float | None, now: float | None) -> str:
    """Return how much better or worse an error is than that of the present run."""
    if error is None or now is None or error == now:
        return ""
    if abs(error - now) < ALIKE_TOL * now:
        return " (as now)"
    return f" ({two_digits(abs(error - now))} {'better' if error < now else 'worse'} than now)"
