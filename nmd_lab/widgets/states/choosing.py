"""State of an explorer whose settings may be "auto": chosen by held-out entries before the fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nmd_lab._checks import check_rank
from nmd_lab._interruption import Interruption
from nmd_lab.model.nonlinearities import NONLINEARITIES, Nonlinearity
from nmd_lab.solver.prepare import prepare
from nmd_lab.solver.prepared import Prepared
from nmd_lab.solver.spec import Spec
from nmd_lab.widgets.live.fit import NO_CHOICE
from nmd_lab.widgets.live.recording import Measure

from .choice import Keep, choice_for, has_bounds, is_open, parted, sentence_of, settings_of
from .fields import FitState


class ChoosingState(FitState):
    """Settings of a fit of a matrix, some of which may be "auto".

    A choice puts numbers in the place of "auto".  The fit then begins as one with these numbers
    does, so that the copied code repeats it.

    Attributes
    ----------
    decided : dict of str to object
        Values that the last run found for settings that were "auto"; a new dict for each run.
    choice : str
        Sentence that says what was chosen and why; empty if there was no choice.
    """

    fit_attributes = (*FitState.fit_attributes, "decided", "choice", "_arguments")

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self._forget_choice()
        self._looks = False
        self._earlier: dict[str, Any] | None = None
        self.fit.giving_up = self._bring_back

    def _forget_choice(self) -> None:
        self.decided: dict[str, Any] = {}
        self.choice = ""
        self._arguments: dict[str, Any] = {}

    @property
    def choosable(self) -> list[str]:
        """Names of the settings that may be "auto"."""
        return [field.name for field in self.fields if field.auto]

    def choose_all(self) -> None:
        """Make all settings "auto" that may be."""
        for name in self.choosable:
            self.set(name, "auto")

    @property
    def _has_bounds(self) -> bool:
        """Whether the present f has bounds."""
        name = self.values["nonlinearity"]
        return name != "auto" and has_bounds(NONLINEARITIES[name])

    def nonlinearity(self, values: Mapping[str, Any] | None = None) -> str | Nonlinearity:
        """Return f as a fit takes it."""
        values = self.values if values is None else values
        name = str(values["nonlinearity"])
        if name == "auto" or not has_bounds(NONLINEARITIES[name]):
            return name
        bounds = {"a": values["low"], "b": values["high"]}
        return NONLINEARITIES[name](**bounds)

    def arguments(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the arguments of the fit without the matrix."""
        raise NotImplementedError

    def check_rank(self, shape: tuple[int, int]) -> None:
        """Raise an error if the rank is neither "auto" nor right for a matrix of a shape."""
        if self.values["rank"] != "auto":
            check_rank(self.values["rank"], shape)

    def open(self) -> None:
        """Start by itself when the page is opened: with a first look before a choice."""
        self._looks = is_open(self.arguments())
        try:
            self.start()
        finally:
            self._looks = False

    def simple(self, settings: Mapping[str, Any], shape: tuple[int, int]) -> dict[str, Any]:
        """Return settings with the simplest values in the place of "auto"."""
        rank = max(1, min(self.numbers["rank"], min(shape) // 3))
        plain = {"nonlinearity": "identity", "offsets": "none"}
        values = plain | dict(self.numbers) | {"rank": rank}
        return {
            name: values.get(name, value) if value == "auto" and name in self.choosable else value
            for name, value in settings.items()
        }

    def start(self) -> None:
        """Keep the present fit until the next one has been chosen for; subclasses start that."""
        self._earlier = None if self.fit.result is None else self.keep()

    def reset(self) -> None:
        """Forget the fit."""
        self.fit.reset(tell=False)  # first: from now on a running choice changes nothing
        self._forget_choice()
        super().reset()

    def _launch(
        self,
        X: Any,
        *,
        absent_are_zeros: bool,
        measure: Measure | None = None,
        observed: Any = None,
    ) -> None:
        """Choose what is "auto", and fit; all of it in the thread of the fit."""
        self.fit.reset(tell=False)
        self._forget_choice()
        settings, asked_for = dict(self.values), self.arguments()
        choice: Spec | None = None

        def choose(asked: Interruption) -> Keep:
            nonlocal choice
            seen = asked_for if observed is None else asked_for | {"observed": observed}
            choice = choice_for(X, seen, absent_are_zeros=absent_are_zeros, asked=asked)
            return partial(self._decide, settings, choice)

        def prepared() -> Prepared:
            model, named = parted(self.arguments(settings))
            ready = prepare(
                X, *model, absent_are_zeros=absent_are_zeros, observed=observed, **named
            )
            selection = None if choice is None else choice.selection
            return ready._replace(spec=replace(ready.spec, selection=selection))

        open_ones = is_open(asked_for)
        if open_ones:
            self._settle(settings, {})
        else:
            self._settle(settings, {"offsets": "none", "offset_alpha": settings["alpha"]})
        iterations = settings["iterations"]

        def look() -> Prepared:
            self._arguments = self.arguments(self.simple(settings, np.shape(X)))
            model, named = parted(self._arguments)
            return prepare(X, *model, absent_are_zeros=absent_are_zeros, observed=observed, **named)

        looks = look if open_ones and self._looks else None
        chooses = choose if open_ones else None
        self.fit.start(prepared, iterations, measure, chooses, look=looks)

    def _bring_back(self) -> None:
        """Come back to the fit before a choice that was not made; the settings stay."""
        if self._earlier is None:
            return
        self.fit.recall(self._earlier["fit"])
        for name in self.fit_attributes:
            if name != "paint":  # which is the user's, as the settings are
                setattr(self, name, self._earlier[name])
        self.fit.message = f"{NO_CHOICE}; the earlier fit is shown"

    def _decide(self, settings: dict[str, Any], choice: Spec) -> None:
        """Take the values of a choice for what is "auto" in the settings of a run."""
        self._settle(settings, settings_of(choice))
        names = [name for name in self.choosable if name in self.decided]
        self.choice = sentence_of(choice, names)

    def _settle(self, settings: dict[str, Any], found: Mapping[str, Any]) -> None:
        """Put values in the place of "auto", unless the user has changed the setting meanwhile."""
        names = [name for name in self.choosable if settings.get(name) == "auto" and name in found]
        if "nonlinearity" in names:
            names += [name for name in ("low", "high") if name in found]
        self.decided = {name: found[name] for name in names}
        for name, value in self.decided.items():
            if self.values[name] == settings[name]:
                self.values[name] = value
        settings |= self.decided
        self.fitted_settings = self._settings(settings)
        self._arguments = self.arguments(settings)
