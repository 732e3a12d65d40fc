"""Settings of an explorer, and its runs.

Settings have fields, values, faults, and a choice of those that are "auto".  Runs have their errors
and what is shown left of the dividers.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from nmd_lab._runtime.checks import check_share, check_word, sentence
from nmd_lab._runtime.machine import one_thread
from nmd_lab._runtime.progress import Interruption
from nmd_lab.api.prepare import prepare
from nmd_lab.data.inputs import form_of
from nmd_lab.fit.summary import Decided
from nmd_lab.request.options import COMPLETION_DEFAULTS, Options
from nmd_lab.result.selection import as_text
from nmd_lab.result.summary import two_digits

from .background import Background
from .live import Begun, LiveFit

HIDDEN = 0.1  # fraction of the entries that are hidden at first, to tell a model by

Check = Callable[[Any], Any]  # raises an error if a value is wrong


class Field(NamedTuple):
    """One setting."""

    name: str
    label: str = ""  # in front of the input
    kind: Literal["choice", "integer", "number", "share", "text"] = "text"
    options: Sequence[str] = ()  # options of a choice, or suggestions for a text
    group: str = ""  # popover with the field; without one, it is an argument of `explore` alone
    help: str = ""  # tooltip of one line
    option_labels: Mapping[str, str] = MappingProxyType({})  # where names alone would not do
    auto: bool = False  # whether "auto" is a value, which is then chosen by held-out entries
    value: Any = None  # at first
    check: Check | str | None = None  # refuses wrong values, or names an option of a fit that does
    searched: bool = False  # whether each letter that is entered searches

    def verify(self, value: Any) -> None:
        """Raise an error if a value is wrong whatever the other settings are."""
        if isinstance(self.check, str):
            Options.of({self.check: value})
        elif self.check is not None:
            self.check(value)

    def shown(
        self, values: Mapping[str, Any], problems: Mapping[str, str], unused: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return the field as the page shows it, with its value and what is wrong with it."""
        return {
            **{name: getattr(self, name) for name in ("name", "label", "kind", "group")},
            "options": [[each, self.option_labels.get(each, each)] for each in self.options],
            "help": self.help or self.label,
            "auto": self.auto and self.kind in ("integer", "number"),
            "value": entered(values[self.name], self.kind),
            "problem": problems.get(self.name, ""),
            "unused": self.name in unused,
            "searched": self.searched,
        }


def hidden_fields(name: str, what: str) -> tuple[Field, Field]:
    """Return the fraction of what is hidden at random, and the seed."""
    share, seed = f"Fraction of hidden {what}", f"Seed of hidden {what} and of the start"
    check = partial(check_share, name)
    return (
        Field(name, "Hidden", "share", (), "data", share, value=HIDDEN, check=check),
        Field("seed", "Seed", "integer", (), "again", seed, value=0, check="random_state"),
    )


class FitState:
    """Settings with one sentence for each that is wrong, and a fit with them."""

    input: Any  # what the user gave
    fields: Sequence[Field] = ()
    numbers: Mapping[str, Any] = MappingProxyType({})  # what an input shows as "auto" is turned off
    lengths = ("iterations", "draws", "shape")  # settings that change no model
    imports = ""  # lines of the copied code that import what reads the data of the user

    def __init__(self, first: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self.values = {field.name: field.value for field in self.fields} | dict(first)
        self.fit = LiveFit(settings=tuple(self.values))
        self.active: Background = self.fit  # what was begun last; its progress is shown
        self.works: list[Background] = [self.fit]
        for name, value in values.items():
            self.set(name, value)

    def set(self, name: str, value: Any) -> None:
        """Change a setting."""
        field = next((each for each in self.fields if each.name == name), None)
        if field is None:
            raise KeyError(f"{name!r} is no setting: choose from {list(self.values)}.")
        if field.kind == "choice":
            check_word(name, value, tuple(field.options))
        self.values[name] = value

    def unused(self) -> list[str]:
        """Return the names of the settings that have no effect now."""
        return []

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each checked setting that raises an error if it is wrong."""
        return {each.name: partial(each.verify, self.values[each.name]) for each in self.fields}

    def problems(self) -> dict[str, str]:
        """Return what is wrong and what to do, by the name of each wrong setting."""
        problems: dict[str, str] = {}
        unused = self.unused()
        for name, check in self.checks().items():
            if name in unused:
                continue
            try:
                check()
            except Exception as error:
                message = sentence(error)
                if message not in problems.values():
                    problems[name] = message
        return problems

    def controls(self) -> list[dict[str, Any]]:
        """Return those fields that the page shows."""
        problems, unused = self.problems(), self.unused()
        shown = (field for field in self.fields if field.group)
        return [field.shown(self.values, problems, unused) for field in shown]

    @property
    def work(self) -> Any:
        """The work whose results are runs that can be compared."""
        return self.fit

    @property
    def changed(self) -> bool:
        """Whether the settings differ from those of the last run."""
        fitted = self.work.begun.settings
        return bool(fitted) and self._settings(self.values) != fitted

    def _settings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings without `lengths`."""
        return {name: value for name, value in values.items() if name not in self.lengths}

    def start(self, *, preview: bool = False) -> None:
        """Start a fit with the present settings; with a first look before a choice if `preview`."""
        raise NotImplementedError

    def proceed(self) -> None:
        """Continue the fit."""
        self.active = self.fit
        self.fit.proceed(self.values["iterations"])

    def code(self, source: str | None = None) -> str:
        """Return a notebook cell that repeats the fit, from data that are given by some code."""
        lines = self.lines(source)
        numpy = "import numpy as np\n\n" if "np." in lines else ""
        return f"{numpy}import nmd_lab as nmd\n{self.imports}\n{lines}"

    def lines(self, source: str | None) -> str:
        """Return the lines of the cell without imports."""
        raise NotImplementedError


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


WITHOUT_RIDGE = ("none", "global")  # kinds of offsets that have no ridge


def default_nonlinearity(alpha: float | str) -> str:
    """Return the nonlinearity that `complete` has by default with a ridge."""
    return "auto" if alpha == "auto" else "identity"


def prepared(
    X: Any, arguments: Mapping[str, Any], *, signals: Interruption | None = None, **more: Any
) -> Decided:
    """Return what a fit of X begins with, given arguments of a call of `complete`."""
    return prepare(X, form_of(X), Options(**COMPLETION_DEFAULTS | dict(arguments) | more), signals)


def choice_for(
    X: Any, arguments: Mapping[str, Any], *, asked: Interruption, **more: Any
) -> Decided:
    """Return a fit that is ready to be solved, with what was chosen for what is "auto"."""
    # Explorers go on until a fit has converged: no trial ends early after a path of ridges
    with one_thread():
        return prepared(X, {"init": "svd"} | dict(arguments), signals=asked, **more)


def settings_of(choice: Decided) -> dict[str, Any]:
    """Return the chosen values as settings; those of an f with bounds include these."""
    f, options = choice.problem.units.model.column_models[0].nonlinearity, choice.options
    bounds = dict(zip(("low", "high"), f.parameters, strict=True)) if has_bounds(f) else {}
    return bounds | {
        "nonlinearity": f.name,
        "rank": int(options.rank),
        "alpha": rounded(options.alpha),
        "offsets": options.offsets,
        "offset_alpha": rounded(options.offset_alpha),
    }


def has_bounds(f: Any) -> bool:
    """Return whether a nonlinearity, or a class of them, has a lower and an upper bound."""
    return bool(f.parameter_names == ("a", "b"))


def rounded(number: float) -> float:
    """Return a number with four digits: what controls show, the code has and the fit gets.

    >>> rounded(16.185352), rounded(3.0)
    (16.19, 3.0)
    """
    return float(f"{number:.4g}")


MOST = 12  # number of runs that are kept; the oldest one is forgotten first
ALIKE = 0.005  # relative difference of errors that are alike
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
    """Runs of one state by number from 1, the newest last."""

    def __init__(self) -> None:
        self.runs: dict[int, PastRun] = {}
        self.left: int | None = None  # number of that which is left of the dividers
        self._count = 0

    def lines(self, view: Any) -> list[dict[str, Any]]:
        """Keep the present run, if it has ended, with its number; return a line for each run."""
        state, number = view.state, view.number(of_fit=True)
        known = number is not None and bool(number.sign)
        if state.work.result is not None and state.work.phase in ("stopped", "finished"):
            self._keep(state, *((number.error, number.shown) if known else (None, "")))
        shown = state.work.result if view.number() == number else None  # else draws are
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

    def _keep(self, state: FitState, error: float | None, shown: str) -> None:
        """Add the present run, or bring its entry up to date."""
        begun = state.work.begun
        of = begun.before or begun
        number = next((k for k, run in self.runs.items() if run.of is of), self._count + 1)
        self._count = max(self._count, number)
        self.runs[number] = PastRun(of, state.work.result, error, shown, begun)
        if len(self.runs) > MOST:
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
    if abs(error - now) < ALIKE * now:
        return " (as now)"
    return f" ({two_digits(abs(error - now))} {'better' if error < now else 'worse'} than now)"
