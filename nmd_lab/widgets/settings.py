"""Settings of an explorer: fields, values, faults, and the choice of those that are "auto"."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from nmd_lab._runtime.checks import check_share, check_word, sentence
from nmd_lab._runtime.machine import one_thread
from nmd_lab._runtime.progress import Interruption
from nmd_lab.data.inputs import form_of
from nmd_lab.solver.options import COMPLETION_DEFAULTS, Options
from nmd_lab.solver.prepare import prepare
from nmd_lab.solver.request import Decided

from .background import Background
from .live_fit import LiveFit

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

    def start(self, *, looks: bool = False) -> None:
        """Start a fit with the present settings; with a first look before a choice if `looks`."""
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
    f, options = choice.model.kinds[0].nonlinearity, choice.options
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
