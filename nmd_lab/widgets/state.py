"""The base of all explorers: settings, work in the background, what is shown, and the acts."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from nmd_lab._runtime.checks import check_share, check_word, sentence
from nmd_lab.data.labels import Labels
from nmd_lab.request.options import Options
from nmd_lab.result.selection import trials_of

from . import charts
from .background import Array, Background, History, Judged, Limits, Memo, Record, Run, Settings
from .given import cell, name_in_notebook
from .pictures import MANY_MISSING, MAX_ROWS, Frame, Paint, drawing_part, drawn_at, end_of_scale
from .words import Number, Piece, choice_words, model_words

HIDDEN = 0.1  # fraction of the entries that are hidden at first, to tell a model by


class Field(NamedTuple):
    """One setting."""

    name: str
    label: str = ""  # in front of the input
    kind: Literal["choice", "integer", "number", "share", "text"] = "text"
    options: Sequence[str] = ()  # options of a choice, or suggestions for a text
    group: str = ""  # popover with the field; without one, it is an argument of `explore` alone
    help: str = ""  # tooltip of one line
    option_labels: Mapping[str, str] = {}  # where names alone would not do
    auto: bool = False  # whether "auto" is a value, which is then chosen by held-out entries
    value: Any = None  # at first
    check: Callable[[Any], Any] = lambda value: None  # raises an error if a value is wrong
    searched: bool = False  # whether each letter that is entered searches

    def shown(self, values: Settings, problems: Settings, unused: Sequence[str] = ()) -> Record:
        """Return the field as the page shows it, with its value and what is wrong with it."""
        record = self._asdict() | {
            "options": [[each, self.option_labels.get(each, each)] for each in self.options],
            "help": self.help or self.label,
            "auto": self.auto and self.kind in ("integer", "number"),
            "value": entered(values[self.name], self.kind),
            "problem": problems.get(self.name, ""),
            "unused": self.name in unused,
        }
        for_python = ("check", "option_labels")
        return {name: each for name, each in record.items() if name not in for_python}


def option(name: str) -> Callable[[Any], Any]:
    """Return what raises an error if a value is wrong for an option of a fit."""
    return lambda value: Options.of({name: value})


def hidden_fields(name: str, what: str) -> tuple[Field, Field]:
    """Return the fraction of what is hidden at random, and the seed."""
    share, seed = f"Fraction of held-out {what}", f"Seed of held-out {what} and of the start"
    check = partial(check_share, name)
    return (
        Field(name, "Hidden", "share", (), "data", share, value=HIDDEN, check=check),
        Field("seed", "Seed", "integer", (), "again", seed, value=0, check=option("random_state")),
    )


def entered(value: Any, kind: str) -> Any:
    """Return a value as an input shows it.

    >>> entered(3.0, "number"), entered("auto", "integer"), entered(0.5, "share")
    ('3', 'auto', 0.5)
    """
    if value is None:
        return ""
    if kind in ("integer", "number") and isinstance(value, numbers.Number):
        return f"{value:.12g}"
    return value if kind == "share" else str(value)


def value_of(value: Any, kind: str) -> Any:
    """Return what was entered: as a number where the kind asks for one and it is one.

    >>> value_of("12", "integer"), value_of("2.7", "integer"), value_of("1,5", "number")
    (12, '2.7', '1,5')
    """
    if kind not in ("integer", "number") or value == "auto":
        return value
    try:
        return int(value) if kind == "integer" else float(value)
    except (TypeError, ValueError):
        return value  # which the check of the setting refuses, with what was entered


class State:
    """Data or a result with settings, work in the background, and what the page shows of them."""

    fields: Sequence[Field] = ()
    numbers: Mapping[str, Any] = {}  # what an input shows as "auto" is turned off
    lengths = ("iterations", "draws", "shape")  # settings that change no model
    kind: type[Run] = Run  # of what runs
    filename = "fit.nc"  # of the result, at first
    opens = False  # whether a fit begins by itself when the page is opened
    data_code: str | None = None  # code that gives the data, if they are from a file
    about = ""  # a line below the sentence, such as what is left out, with the button "take"
    said = ""  # a line about these data
    offered: tuple[str, ...] = ()  # data sets of the library, the present one first
    paint = Paint((0, 0))  # what the brush has done: nothing
    posterior: Any = None  # draws; None until they have been asked for
    switched: set[int]  # components that are off
    chosen: int | None  # component whose rows are shown
    trials = trials_of({})  # of the last choice of settings
    things: Any = ("entries", "column")  # what is guessed, and of what each has an average
    limits: Any = None  # the smallest and the largest value, if the sentence has them

    # What each explorer has
    run: Callable[..., None]  # fits without a check of the settings; a first look with `preview`
    repaint: Callable[[Paint], None]  # takes other painted entries, and fits again
    lines: Callable[[str | None], str]  # of the cell, without imports, given the code of the data
    parts: Callable[[], Record]  # of the page, between the buttons and the runs, by their names

    def __init__(self, X: Any, values: Settings, first: Settings | None = None) -> None:
        self.input = X  # what the user gave
        self.fit: Any = Background(self.kind)
        self.active = self.fit  # what was begun last; its progress is shown
        self.works: list[Background[Any]] = [self.fit]
        # What a message of the front end does; a state that it returns is shown from then on
        self.actions: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "history": lambda m: self.history.show_left(m["number"]),
            "component": self._component,
        }
        self.buttons = {  # labels and tooltips, by their action
            "run": ("fit again", "Fit with these settings, from the start"),
            "continue": ("resume", "Continue where it stopped"),
        }
        self.forget_components()
        self.history = History()
        self.memo = Memo()
        self.order = charts.Order()  # of the rows of a table
        self.selection: dict[str, Any] | None = None
        self.values = {field.name: field.value for field in self.fields} | (first or {})
        for name, value in values.items():
            self.set(name, value)

    # Settings

    def field(self, name: str) -> Field:
        """Return a setting."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"{name!r} is no setting: choose from {list(self.values)}.")

    def set(self, name: str, value: Any) -> None:
        """Change a setting."""
        field = self.field(name)
        if field.kind == "choice":
            check_word(name, value, tuple(field.options))
        self.values[name] = value

    def unused(self) -> list[str]:
        """Return the names of the settings that have no effect now."""
        return []

    def check(self, field: Field) -> None:
        """Raise an error if a setting is wrong."""
        field.check(self.values[field.name])

    def problems(self) -> dict[str, str]:
        """Return what is wrong and what to do, by the name of each wrong setting."""
        names: dict[str, str] = {}  # of the first setting with each problem
        unused = self.unused()
        for field in self.fields:
            try:
                if field.name not in unused:
                    self.check(field)
            except Exception as error:
                names.setdefault(sentence(error), field.name)
        return {name: problem for problem, name in names.items()}

    def controls(self) -> list[Record]:
        """Return the settings as the page shows them, before them the data sets of the library."""
        problems, unused = self.problems(), self.unused()
        data = Field("data", "Data", "choice", sorted(self.offered), "data")
        offered = [data.shown({"data": self.offered[0]}, {})] if self.offered else []
        shown = (field for field in self.fields if field.group)
        return offered + [field.shown(self.values, problems, unused) for field in shown]

    @property
    def changed(self) -> bool:
        """Whether the settings differ from those of the last run."""
        fitted = self.fit.settings
        return bool(fitted) and self._settings(self.values) != fitted

    def _settings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings without `lengths`."""
        return {name: value for name, value in values.items() if name not in self.lengths}

    # Work

    @property
    def result(self) -> Any:
        """Result so far, or None."""
        return self.fit.result

    def cannot_run(self) -> str:
        """Return why no fit can be started now, or an empty string."""
        return next(iter(self.problems().values()), "")

    def why_not(self, name: str) -> str:
        """Return why a button has no use now, or an empty string."""
        if self.active.phase == "running":
            return "it is running"
        if name != "continue":
            return self.cannot_run() if name == "run" else ""
        changed = "the settings have changed: a new fit is needed" if self.changed else ""
        return self.fit.cannot_proceed() or changed

    def start(self) -> None:
        """Fit with the present settings."""
        if problem := self.cannot_run():
            raise ValueError(problem)
        self.run()

    def begin(self) -> None:
        """Fit as soon as the page is open, unless there is something to see already."""
        fresh = self.active.phase == "ready" and self.result is None
        if fresh and self.opens and not self.cannot_run():
            self.run(preview=True)

    def follow(self, name: str) -> None:
        """Fit again after a setting was changed on the page."""
        if self.opens and name not in self.lengths and not self.cannot_run():
            self.run()

    def idle(self) -> None:
        """Do what is for the background, when nothing runs."""

    def act(self, name: str, **message: Any) -> None:
        """Do the act of a message of the page, if this explorer has it."""
        if name not in self.actions:
            raise ValueError(f"no {name} here: explore data, and a matrix to mask pixels of it.")
        self.actions[name](message)

    @property
    def endings(self) -> dict[str, tuple[str, ...]]:
        """Endings of the files that can be written, by what is in them."""
        return {"the page": (".html",), "the result": (".nc",)}

    @property
    def endings_text(self) -> str:
        """The endings in words."""
        return ", ".join(f"{', '.join(each)} {what}" for what, each in self.endings.items())

    def write(self, path: Path) -> None:
        """Write the result to a file; the ending is one of `endings`."""
        self.result.save(path)

    def close(self) -> None:
        """Stop everything, and forget it."""
        for work in self.works:
            work.reset()
            work.listeners.clear()
        self.memo, self.history, self.actions = Memo(), History(), {}

    def undo(self) -> None:
        """Take the last stroke of the brush back."""
        self.repaint(self.paint.before or self.paint)

    # Code

    def code(self, source: str | None = None) -> str:
        """Return a notebook cell that repeats what was done, from data that some code gives."""
        return cell(
            self.lines(source) + f"# shown without components {self.off}\n" * bool(self.off)
        )

    def source(self, explorer: Any) -> str | None:
        """Return the code that gives the data in the notebook with an explorer of them."""
        name = self.data_code or name_in_notebook(self.input)
        if name is None and (variable := name_in_notebook(explorer)):
            return f"{variable}.state.input"
        return name

    # The page

    def pictures(self, frame: Frame, limits: Limits, names: list[str], layers: Record) -> Record:
        """Return the pictures that stay while a fit runs, given as layers by name.

        What is under the brush does not count in the scale of the uncertainty.
        """
        run, count, hidden = self.history.compared, self.paint.n_painted, 0.0
        rows, (low, high) = frame.rows.tolist() if frame.picture is not None else [0], limits
        shown: Record = dict.fromkeys(("original", "seen", "spread", "beside")) | layers
        if (seen := shown["seen"]) is not None:
            hidden = float(np.mean(np.isnan(seen) & ~np.isnan(shown["original"])))
        spread = shown["spread"]
        return {
            **frame.size,
            "count": frame.n_pictures,
            "step": frame.step,
            "layout": "matrix" if frame.picture is None else "rows",
            "scale": "rgb" if frame.channels == 3 else "signed" if low < -0.25 * high else "gray",
            "low": low,
            "high": high,
            "ids": rows,
            "labels": [names[row] if names else "" for row in rows],
            **{name: None if x is None else frame.arranged(x) for name, x in shown.items()},
            "n_painted": count,
            "many_missing": hidden > MANY_MISSING or count > 0,
            "most": 0.0 if spread is None else end_of_scale(spread, self.paint, frame),
            "beside_title": "" if run is None else self.history.words(run),
            "can_brush": "brush" in self.actions,
        }

    def drawn(self, frame: Frame) -> tuple[Any, Any]:
        """Return mean and standard deviation of the draws where pictures are shown."""
        of = self.posterior, frame.rows.tolist()
        return self.memo("drawn", lambda: drawn_at(self.posterior, frame), *of)

    def select(self, selection: dict[str, Any] | None) -> None:
        """Take what was picked: "row", "column", "pixel" in a picture, and the list "rows"."""
        self.selection = selection
        self.order.sought = (selection or {}).get("row")
        if selection is None or selection.get("rows"):  # in the place of those of a component
            self.chosen = None

    # Components, some of which are switched off, and rows in the plane of two of them

    @property
    def shown(self) -> Any:
        """The model that is shown, as the page numbers its components; None without one."""
        return None

    def forget_components(self) -> None:
        """Switch all components on, since they are of another model."""
        self.switched, self.chosen = set(), None

    @property
    def off(self) -> list[int]:
        """The components that are switched off, by size."""
        rank = 0 if self.shown is None else self.shown.H.shape[0]
        return sorted(k for k in self.switched if k < rank)

    def model_parts(
        self, frame: Frame, labels: Labels, X: Array, seen: Array, posterior: Any
    ) -> Record:
        """Return the model in pictures, its components and their plane, and the cells of a table.

        These are of the draws if there are some, whose least sure cells have a table of their own.
        """
        fitted = None if self.shown is None else self.shown.without(self.off)
        model = self.drawn(frame)[0] if fitted is None and self.posterior is not None else None
        if fitted is not None:
            model = frame.means(fitted.shape, fitted.block)
        parts = self.components(frame, labels, charts.texts(labels, "columns"))
        parts["modelled"] = None if model is None else frame.arranged(model)
        if labels.table is not None:
            names = charts.texts(labels, "rows")
            grid = charts.Grid(labels.table, X, seen, fitted, posterior)
            doubts = self.memo("doubts", lambda: grid.least_sure(names), posterior)
            shown = grid.shown(self.rows(len(X)), names, self.order)
            parts |= {"tables": [] if doubts is None else [doubts], "grid": shown}
        return parts

    def rows(self, m: int) -> Any:
        """Return selected ones of m rows, or those of a component; None for neither."""
        picked = [row for row in (self.selection or {}).get("rows") or [] if 0 <= row < m]
        if picked:
            return np.asarray(picked[:MAX_ROWS], np.intp)
        fitted, k = self.shown, self.chosen
        if fitted is None or k is None or k >= fitted.H.shape[0]:
            return None
        w = fitted.W[:, k]
        return np.argsort(-charts.leaning(w) * w, kind="stable")[:MAX_ROWS]

    def components(self, frame: Frame | None, labels: Labels, names: list[str]) -> Record:
        """Return the components and the plane of the rows."""
        if (fitted := self.shown) is None:
            return {}
        W, H, _, _ = fitted
        components = charts.components_part(W, H, frame, names)
        words = self.memo("words", lambda: charts.component_words(fitted, components, labels), W, H)
        rows, points = self.memo("points", lambda: charts.points_of(labels), labels)
        plane = charts.plane_part(W[rows], rows) | points
        return {
            "components": components | {"off": self.off, "chosen": self.chosen, "words": words},
            "scatter": plane if H.shape[0] > 1 else None,
        }

    def drawing(
        self, frame: Frame, labels: Labels, X: Array | None = None, judged: Judged | None = None
    ) -> Record | None:
        """Return what the page draws the model with; the same while the model and X are."""
        if (fitted := self.shown) is None:
            return None
        rows, _ = self.memo("points", lambda: charts.points_of(labels), labels)
        of = fitted.W, fitted.H, X, rows, frame.rows.tolist()
        return self.memo("drawing", lambda: drawing_part(fitted, frame, rows, X, judged), *of)

    def _component(self, message: Mapping[str, Any]) -> None:
        """Switch a component off or on, or show the rows with most of it."""
        k, what = int(message.get("k", 0)), message["what"]
        if what == "on":
            self.forget_components()
        elif what == "off":
            self.switched ^= {k}
            self.chosen = self.chosen if k in self.switched else None
        else:
            self.chosen = None if self.chosen == k else k

    # The sentence

    @property
    def title(self) -> str:
        """What the data are, in a few words."""
        return ""

    @property
    def model(self) -> list[Piece]:
        """The model that is shown, in words that open popovers."""
        return [] if self.result is None else model_words(self.result)

    def number(self, *, of_fit: bool = False) -> Number | None:
        """Return how well what is shown guesses what is hidden, or the fit in any case.

        None where nothing is hidden, and before a fit.
        """
        errors = self.fit.errors  # where it has not seen, of its rivals too once they are known
        return Number.of_guess(errors, self.things, self.limits, self.covered) if errors else None

    @property
    def findings(self) -> Any:
        """The coverage of the intervals of draws, or of a filling; None without any."""
        return self.works[0].findings

    @property
    def covered(self) -> str:
        """Words on the intervals, for the end of the sentence."""
        return "" if self.findings is None else f"; {self.findings.covers()}"

    def sentence(self, number: Number | None) -> list[Piece]:
        """Return the words about data, model and error."""
        pieces: list[Piece] = [(self.title, "data")]
        if model := self.model:
            words = ", a first look" * self.fit.is_look
            if self.off:
                words += f", without component {', '.join(map(str, self.off))}"
            pieces += [(": ", ""), *model, *[(words, "")] * bool(words), (". ", "")]
        pieces += [] if number is None else number.pieces
        if self.about:
            pieces.append((f"\n{self.about} ", ""))
            pieces += [(label, "take") for label, _ in filter(None, [self.buttons.get("take")])]
        return pieces

    def status(self, note: tuple[str, bool] | None) -> Record:
        """Return the status of the work that was begun last, or of an error in what is shown."""
        active = self.active
        headline, pieces, endings = None, [("", "")], ""
        why_not = dict.fromkeys(self.buttons, "")
        try:
            number = self.number()
            headline, pieces = number and number.record, self.sentence(number)
            endings = self.endings_text
            why_not = {name: self.why_not(name) for name in self.buttons}
        except Exception as error:
            note = sentence(error), True
        message, failed = note or (active.message, active.phase == "failed")
        buttons = dict[str, Record]()
        for name, (label, about) in self.buttons.items():
            why = why_not[name]
            buttons[name] = {"label": label, "disabled": bool(why), "title": why or about}
        return {
            "phase": active.phase,
            "message": message,
            "failed": failed,
            "first_look": self.fit.is_look,
            "done": active.done,
            "planned": max(active.planned, 1),
            "warnings": list(active.warnings),
            "filename": self.filename,
            "endings": endings,
            "folder": Path.cwd().as_posix(),
            "save": "" if self.result is not None else "there is no result yet",
            "headline": headline,
            "sentence": [list(piece) for piece in pieces],
            "why": choice_words(self.trials),
            "buttons": buttons,
        }
