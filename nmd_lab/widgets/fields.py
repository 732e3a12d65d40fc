"""What an explorer's controls stand for: names, values, what is wrong, what cannot apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from nmd_lab.solver.options import Options
from nmd_lab.solver.penalty import as_penalty_rule

from .live_fit import sentence


class Field(NamedTuple):
    """One setting.

    Attributes
    ----------
    name : str
        What the state calls it.
    label : str
        What the user reads.
    kind : {"choice", "integer", "number", "share", "words"}
        How it is entered.
    options : tuple of str
        For a choice, or as suggestions for words.
    group : str
        The heading that it stands under.
    help : str
        One line for who hovers over it.
    """

    name: str
    label: str
    kind: Literal["choice", "integer", "number", "share", "words"]
    options: tuple[str, ...] = ()
    group: str = ""
    help: str = ""


class SettingsState:
    """Values of fields, with a sentence for each that is wrong and for each that cannot apply."""

    fields: Sequence[Field] = ()

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def set(self, name: str, value: Any) -> None:
        """Change a setting.

        Raises
        ------
        KeyError
            If there is no such setting.
        """
        if name not in self.values:
            raise KeyError(f"{name!r} is no setting: choose from {list(self.values)}.")
        self.values[name] = value

    def reasons(self) -> dict[str, str]:
        """Return for each setting that has no effect now why that is so."""
        return {}

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return for settings what raises an error if they are wrong."""
        return {}

    def problems(self) -> dict[str, str]:
        """Return for each wrong setting what is wrong and what to do."""
        found: dict[str, str] = {}
        idle = self.reasons()
        for name, check in self.checks().items():
            if name not in idle:
                try:
                    check()
                except Exception as error:
                    words = sentence(error)
                    if words not in found.values():
                        found[name] = words
        return found


def check_option(name: str, value: Any) -> Options:
    """Check one option of a fit as a fit does.

    Raises
    ------
    ValueError, TypeError
        In one sentence, if it is wrong.
    """
    return Options.of({name: value})


def as_penalty(words: str) -> str | float:
    """Return what the words of a penalty stand for: a rule, or a fixed number.

    Raises
    ------
    ValueError, TypeError
        If they stand for none.
    """
    try:
        penalty: str | float = float(words)
    except ValueError:
        penalty = words.strip()
    as_penalty_rule(penalty)
    return penalty
