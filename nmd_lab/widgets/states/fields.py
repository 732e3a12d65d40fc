"""The settings of an explorer: fields, their values, and what is wrong or without effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from nmd_lab._checks import check_word
from nmd_lab._errors import sentence
from nmd_lab.solver.options import Options
from nmd_lab.solver.penalty import as_penalty_rule
from nmd_lab.widgets.live.background import Background
from nmd_lab.widgets.live.fit import LiveFit


class Field(NamedTuple):
    """One setting."""

    name: str  # name in the state's dict of values
    label: str  # label in front of the input
    kind: Literal["choice", "integer", "number", "share", "text"]  # kind of the input
    options: tuple[str, ...] = ()  # options of a choice, or suggestions for a text
    group: str = ""  # heading above the field
    help: str = ""  # tooltip of one line
    option_labels: Mapping[str, str] = MappingProxyType({})  # where names alone would not do
    auto: bool = False  # whether "auto" is a value, which is then chosen by held-out entries


class SettingsState:
    """Values of fields, with one sentence for each that is wrong or without effect."""

    fields: Sequence[Field] = ()
    options: Mapping[str, Sequence[str]] = MappingProxyType({})

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def set(self, name: str, value: Any) -> None:
        """Change a setting."""
        if name not in self.values:
            raise KeyError(f"{name!r} is no setting: choose from {list(self.values)}.")
        field = next((each for each in self.fields if each.name == name), None)
        if field is not None and field.kind == "choice":
            check_word(name, value, tuple(self.options.get(name, field.options)))
        self.values[name] = value

    def reasons(self) -> dict[str, str]:
        """Return why settings have no effect now, by the name of each such setting."""
        return {}

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each checked setting that raises an error if it is wrong."""
        return {}

    def problems(self) -> dict[str, str]:
        """Return what is wrong and what to do, by the name of each wrong setting."""
        problems: dict[str, str] = {}
        without_effect = self.reasons()
        for name, check in self.checks().items():
            if name not in without_effect:
                try:
                    check()
                except Exception as error:
                    message = sentence(error)
                    if message not in problems.values():
                        problems[name] = message
        return problems


class FitState(SettingsState):
    """Settings, and the fit that is made with them.

    Attributes
    ----------
    options : dict of str to list of str
        Options of the settings whose options depend on the data.
    numbers : mapping of str to number
        Numbers that an input shows when the user turns "auto" off.
    fit : LiveFit
        The fit, which can be stopped and continued.
    fitted_settings : dict
        Settings with which the fit was started, without `lengths`; empty before a fit.
    lengths : tuple of str
        Names of the settings that say how long something runs, and change no model.
    fit_attributes : tuple of str
        Names of the attributes that belong to one fit.
    imports : str
        Lines of the copied code that import what reads the data of the user.
    """

    options: Mapping[str, Sequence[str]]
    numbers: Mapping[str, Any] = MappingProxyType({})
    imports: str = ""
    lengths: tuple[str, ...] = ("iterations",)
    fit_attributes: tuple[str, ...] = ("fitted_settings",)

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.fit = LiveFit(settings=tuple(values))
        self.fitted_settings: dict[str, Any] = {}

    @property
    def active(self) -> Background:
        """The work that was begun last; its progress is shown."""
        return self.fit

    @property
    def changed(self) -> bool:
        """Whether the settings differ from those of the fit."""
        return bool(self.fitted_settings) and self._settings() != self.fitted_settings

    def _settings(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return settings without `lengths`, by default the present ones."""
        values = self.values if values is None else values
        return {name: value for name, value in values.items() if name not in self.lengths}

    def start(self) -> None:
        """Start a fit with the present settings."""
        raise NotImplementedError

    def open(self) -> None:
        """Start by itself when the page is opened."""
        self.start()

    def proceed(self) -> None:
        """Continue the fit."""
        self.fit.proceed(self.values["iterations"])

    def reset(self) -> None:
        """Forget the fit."""
        self.fitted_settings = {}
        self.fit.reset()

    def keep(self) -> dict[str, Any]:
        """Return what `recall` needs to come back to the present fit."""
        saved: dict[str, Any] = {name: getattr(self, name) for name in self.fit_attributes}
        return saved | {"fit": self.fit.keep(), "values": dict(self.fitted_settings)}

    def recall(self, saved: dict[str, Any]) -> None:
        """Come back to a fit, and to its settings."""
        self.fit.recall(saved["fit"])
        for name in self.fit_attributes:
            setattr(self, name, saved[name])
        self.values |= saved["values"]

    def code(self, name: str | None = None) -> str:
        """Return a notebook cell that repeats the fit."""
        raise NotImplementedError


def check_option(name: str, value: Any) -> Options:
    """Check one option of a fit as a fit does."""
    return Options.of({name: value})


def as_rho(text: str) -> Any:
    """Return the name of a penalty rule or a fixed penalty."""
    try:
        rho: str | float = float(text)
    except ValueError:
        rho = text.strip()
    as_penalty_rule(rho)
    return rho
