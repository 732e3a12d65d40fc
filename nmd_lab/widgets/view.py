"""What an explorer shows of a state, and what the user's actions do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nmd_lab._runtime.checks import sentence
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.selection import TRIAL, as_text
from nmd_lab.result.summary import validation_error
from nmd_lab.selection.choice import in_words

from .background import Memo
from .charts import FactorsPart, calibration_chart, curves_chart, errors_by_shape, trials_charts
from .history import Field, FitState, History
from .model_state import THIS, ModelState
from .pictures import Frame
from .tables import Order
from .words import Number, Piece, choice_words, model_words, name_in_notebook, shapes

Action = Callable[[Mapping[str, Any]], Any]
"""What a message of the front end does; a view that it returns is shown from then on."""

BUTTONS = {  # labels and tooltips of the buttons that all views have, by their action
    "run": ("fit again", "Fit with these settings, from the start"),
    "continue": ("resume", "Continue where it stopped"),
}
QUICK = 1.0  # seconds of a fit up to which a change of a setting fits again


class Guess(NamedTuple):
    """How well what is hidden is guessed."""

    errors: Mapping[str, float]  # of the model, and of its rivals
    things: str = "entries"
    range: str = ""  # of the data, in words
    covered: str = ""  # words on the intervals
    of: str = "column"  # each of which has an average, the simplest guess

    @property
    def number(self) -> Number:
        """The error in words."""
        (_, error), *rivals = self.errors.items()
        before, after = f"Hidden {self.things} are guessed to ", self.range
        each = f"each {self.of}'s average"
        named = {each if name == "average" else name: error for name, error in rivals}
        return Number(error, before, after, named, more=self.covered)


class View:
    """The base of the views; by default, there is nothing to fit."""

    filename = "fit.nc"  # of the result, at first
    opens = False  # whether a fit begins by itself when the page is opened

    def __init__(self, state: FitState) -> None:
        self.state = state
        self.actions: dict[str, Action] = {}
        self.factors = FactorsPart()
        self.buttons = dict(BUTTONS)  # labels and tooltips, by their action
        self.selection: dict[str, Any] | None = None
        self.data_code: str | None = None  # code that gives the data, if they are from a file
        self.mending = ""  # code that leaves columns of the data out
        self.said = ""  # a line about these data
        self.offered: tuple[str, ...] = ()  # data sets of the library, the present one first
        self.memo = Memo()
        self.order = Order()  # of the rows of a table
        self._choice: Any = None

    def parts(self, history: History) -> dict[str, Any]:
        """Return the parts of the page between the buttons and the runs, by their names."""
        raise NotImplementedError

    def setting_changed(self, name: str) -> None:
        """Adapt what is shown to a setting that has changed: another model has all components."""
        if name == "rank":
            self.factors.forget()

    def frame(self) -> Frame | None:
        """Return which entries are shown as pictures; None without pictures."""
        return None

    def place(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return positions "row", "column" and "pixel" that a message picks."""
        if "picture" not in message:
            return {name: value for name, value in message.items() if name != "do"}
        frame = self.frame()
        return {} if frame is None else frame.entry(message)

    def select(self, selection: dict[str, Any] | None) -> None:
        """Take what was picked: "row", "column", "pixel" in a picture, and the list "rows"."""
        self.selection = selection
        self.order.sought = (selection or {}).get("row")
        if selection is None or selection.get("rows"):  # in the place of those of a component
            self.factors.chosen = None

    @property
    def result(self) -> Any:
        """Result so far, or None."""
        return self.state.fit.result

    @property
    def choice(self) -> Any:
        """The last fit whose settings were chosen by trials; None without one."""
        fit = self.state.fit.result
        if fit is not None and fit.selection.sizes[TRIAL]:
            self._choice = fit
        return self._choice

    def act(self, name: str, **message: Any) -> None:
        """Do the act of a message of the page, if this view has it."""
        if name not in self.actions:
            raise ValueError(f"no {name} here: explore data, and a matrix to hide pixels of it.")
        self.actions[name](message)

    @property
    def title(self) -> str:
        """What the data are, in a few words."""
        return ""

    @property
    def model(self) -> list[Piece]:
        """The model that is shown, in words that open popovers."""
        return [] if self.result is None else model_words(self.result)

    def number(self, *, of_fit: bool = False) -> Number | None:
        """Return the number of what is shown, or of the fit in any case; None before a fit."""
        if self.result is None:
            return None
        if (guess := self.guess()).errors:
            return guess.number
        where = "The relative error is ", " where seen; nothing is hidden"
        return Number(self.result._returned("relative_error"), *where, sign="")

    def guess(self) -> Guess:
        """Return how well the model guesses what is hidden."""
        error = validation_error(self.result)
        return Guess({} if error is None else {THIS: error})

    def sentence(self, number: Number | None) -> list[Piece]:
        """Return the words about data, model and error."""
        pieces: list[Piece] = [(self.title, "data")]
        if model := self.model:
            pieces += [(": ", ""), *model, (". ", "")]
        return pieces if number is None else pieces + number.pieces

    def cannot_run(self) -> str:
        """Return why no fit can be started now, or an empty string."""
        return next(iter(self.state.problems().values()), "")

    def why_not(self, name: str) -> str:
        """Return why a button has no use now, or an empty string."""
        fit = self.state.fit
        if self.state.active.phase == "running":
            return "it is running"
        if name != "continue":
            return self.cannot_run() if name == "run" else ""
        if fit.can_proceed:
            return "the settings have changed: a new fit is needed" if self.state.changed else ""
        converged = fit.result is not None and fit.result.stop_reason.code == "converged"
        return "the fit has converged" if converged else "there is nothing to continue from"

    def start(self) -> None:
        """Start a fit with the present settings, if it can run."""
        if problem := self.cannot_run():
            raise ValueError(problem)
        self.state.start()

    def write(self, path: Path) -> None:
        """Write the result to a file."""
        self.result.save(path)

    def code(self, explorer: Any) -> str:
        """Return a notebook cell that repeats what was done."""
        name = self.data_code or name_in_notebook(self.state.input)
        if name is None and (variable := name_in_notebook(explorer)):
            name = f"{variable}.state.input"
        return self.state.code(name)

    def begin(self) -> None:
        """Fit as soon as the page is open, unless there is something to see already."""
        fresh = self.state.active.phase == "ready" and self.result is None
        if fresh and self.opens and not self.cannot_run():
            self.state.start(preview=True)

    def follow(self, name: str) -> str:
        """Fit again after a setting was changed on the page, or print how long that would take."""
        if not self.opens or name in self.state.lengths or self.cannot_run():
            return ""
        fit, result = self.state.fit, self.state.fit.result
        seconds = 0.0 if result is None else float(result.history.seconds[-1])
        if result is not None and result.stop_reason.code == "callback":
            seconds *= max(fit.planned, 1) / max(fit.done, 1)  # somebody stopped it before its end
        if seconds >= QUICK:
            return f"changed: ⟲ takes about {in_words(seconds)}"
        self.state.start()
        return ""

    def controls(self) -> list[dict[str, Any]]:
        """Return the settings as the page shows them, before them the data sets of the library."""
        data = Field("data", "Data", "choice", sorted(self.offered), "data")
        offered = [data.shown({"data": self.offered[0]}, {})] if self.offered else []
        return offered + self.state.controls()

    def idle(self) -> None:
        """Do what is for the background, when nothing runs."""

    def close(self) -> None:
        """Stop everything, and forget it."""
        for work in self.state.works:
            work.reset(tell=False)
            work.listeners.clear()


class ModelView(View):
    """A view that can choose its settings, and draw from the posterior of its model."""

    state: ModelState
    opens = True

    def __init__(self, state: ModelState) -> None:
        super().__init__(state)
        sampling = "Sample models that go with the data: predictions with 90 % intervals"
        self.buttons["sample"] = "draw intervals", sampling
        self.actions |= self.factors.actions | {
            "sample": self._how_sure,
            "point": self._fit_with,
        }

    def parts(self, history: History) -> dict[str, Any]:
        """Return the curves and the charts; subclasses add the others."""
        fit, found = self.state.fit, self.state.sample.findings
        intervals = {} if found is None else {"intervals": calibration_chart(found)}
        tried, f = errors_by_shape(self.choice), str(self.state.values["nonlinearity"])
        if fit.result is not None and not self.state.changed:
            f = str(fit.result.nonlinearity.name)  # the columns of a table may have their own
        return {
            "curves": curves_chart(self.curves()),
            "dots": intervals | trials_charts(self.choice),
            "facts": {"shapes": self.memo("shapes", lambda: shapes(f, tried), f, tried)},
        }

    def guess(self) -> Guess:
        """Return how well the model guesses what is hidden; errors of rivals follow."""
        error, found = self.state.fit.recording.of_result, self.state.sample.findings
        errors = self.state.errors or ({} if error is None else {THIS: error})
        return Guess(errors, covered="" if found is None else f"; {found.covers()}")

    def curves(self) -> dict[str, dict[int, float]]:
        """Return the curves of errors by iteration."""
        return {"hidden": self.state.fit.recording.hidden}

    @property
    def draws_itself(self) -> bool:
        """Whether it draws from the posterior in the background."""
        return True

    def lost(self, fitted: FittedValues | None) -> str:
        """Return what is lost without the components that are off."""
        off = self.factors.off(fitted)
        if fitted is None or not off or self.state.fit.phase == "running":
            return ""

        def words() -> str:
            before, after = (as_text(e, 2) for e in self.state.loss_without(fitted, off))
            named = ", ".join(map(str, off))
            return f"without component {named}: error where seen ±{before} → {after}"

        return self.memo("lost", words, fitted.H, off)

    def _fit_with(self, message: Mapping[str, Any]) -> None:
        """Fit with the number of components of a point that was clicked."""
        self.state.set("rank", int(message["id"]))
        self.start()

    def idle(self) -> None:
        """Draw from the posterior in the background, once a fit has ended."""
        state = self.state
        fitted = state.fit.phase == "finished" and bool(state.errors) and not state.changed
        waits = fitted and state.sample.phase == "ready"
        if waits and self.draws_itself and not state.cannot_sample():
            state.sample_now(idle=True)

    def _how_sure(self, _: Mapping[str, Any]) -> None:
        """Draw from the posterior with the present settings."""
        if problem := self.state.cannot_sample():
            raise ValueError(problem)
        if self.state.sample.phase == "running":  # in the background: now everybody can see it
            self.state.active = self.state.sample
        else:
            self.state.sample_now()

    def why_not(self, name: str) -> str:
        """Return why a button has no use now, or an empty string."""
        return super().why_not(name) or (self.state.cannot_sample() if name == "sample" else "")


def status_part(view: View, note: tuple[str, bool] | None) -> dict[str, Any]:
    """Return the status of the work that was begun last, or of an error in a view."""
    active, choice = view.state.active, view.choice
    headline, pieces, why_not = None, [("", "")], dict.fromkeys(view.buttons, "")
    try:
        number = view.number()
        headline, pieces = number and number.record, view.sentence(number)
        why_not = {name: view.why_not(name) for name in view.buttons}
    except Exception as error:
        note = sentence(error), True
    message, failed = note or (active.message, active.phase == "failed")
    return {
        "phase": active.phase,
        "message": message,
        "failed": failed,
        "done": active.done,
        "planned": max(active.planned, 1),
        "left": seconds_left(active) if active.phase == "running" and not note else "",
        "warnings": list(active.warnings),
        "filename": view.filename,
        "folder": Path.cwd().as_posix(),
        "save": "" if view.result is not None else "there is no result yet",
        "headline": headline,
        "sentence": [list(piece) for piece in pieces],
        "why": "" if choice is None else choice_words(choice),
        "buttons": {
            name: {"label": label, "disabled": bool(why_not[name]), "title": why_not[name] or about}
            for name, (label, about) in view.buttons.items()
        },
    }


FEWEST = 5  # steps from which their seconds are known: the first one compiles


def seconds_left(active: Any) -> str:
    """Return about how long a run will still take; empty while little of it is done."""
    spent, steps = time.perf_counter() - active.began, active.done - active.done_before
    if spent < 3 or steps < FEWEST or active.done >= active.planned:
        return ""
    return f"about {in_words(spent / steps * (active.planned - active.done))} left"
