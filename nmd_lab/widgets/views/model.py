"""What the explorers of data share: buttons that choose, and that say how sure a model is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.selection import as_text
from nmd_lab.widgets.latest import Latest
from nmd_lab.widgets.parts.charts import Panel, curves_part, intervals_chart, trials_charts
from nmd_lab.widgets.parts.factors import FactorsPart
from nmd_lab.widgets.states.model import ModelState

from .history import History
from .view import View


class ModelView(View):
    """A view with the buttons "Find everything" and "How sure?"."""

    state: ModelState
    opens = True
    panels: Sequence[Panel]
    other_models: Collection[str]  # settings that make another model: its components are all on

    def __init__(self, state: ModelState, filename: str, source: tuple[Any, str]) -> None:
        super().__init__(state, filename, source)
        labels = ", ".join(field.label for field in state.fields if field.auto)
        choosing = f"Choose {labels} by held-out entries, and fit with them"
        sampling = "Draw from the posterior of this model: predictions with intervals"
        self.buttons = {"choose": ("Find everything", choosing), "sample": ("How sure?", sampling)}
        self.factors = FactorsPart()
        self._lost = Latest[str]()
        self.actions |= self.factors.actions | {
            "choose": self._choose,
            "sample": self._how_sure,
        }

    def parts(
        self, history: History, where: str = "", sizes: Mapping[str, float] = MappingProxyType({})
    ) -> dict[str, Any]:
        """Return the curves and the charts; subclasses add the others."""
        fit, found = self.state.fit, self.state.sample.findings
        intervals = {} if found is None else {"intervals": intervals_chart(found)}
        past = history.overlays(self.state)
        return {
            "curves": curves_part(self.panels, fit.recording, past, where, sizes),
            "dots": intervals | trials_charts(fit.result),
        }

    def lost(self, fitted: FittedValues | None, size: float | None = None) -> str:
        """Return what is lost without some components; `size` makes an error one of the unit."""
        off = self.factors.off(fitted)
        if fitted is None or not off or self.state.fit.phase == "running":
            return ""

        def said() -> str:
            before, after = ((size or 1.0) * e for e in self.state.loss_without(fitted, off))
            what = "off where seen" if size else "relative error"
            named = ", ".join(map(str, off))
            return f"without component {named}: {what} {as_text(before, 3)} → {as_text(after, 3)}"

        return self._lost(said, fitted.H, off)

    def setting_changed(self, name: str) -> None:
        """Switch on the components of another model."""
        if name in self.other_models:
            self.factors.forget()

    def _choose(self, _: Mapping[str, Any]) -> None:
        """Choose all settings that may be "auto", and fit with them."""
        for name in self.state.choosable:
            self.state.set(name, "auto")
        self.start()

    def _how_sure(self, _: Mapping[str, Any]) -> None:
        """Draw from the posterior with the present settings."""
        if problem := self.state.cannot_sample():
            raise ValueError(problem)
        self.state.sample_now()

    def why_disabled(self, name: str) -> str:
        """Return why a button has no use now, or an empty string."""
        if name == "sample":
            return self.state.cannot_sample()
        chosen = ["rank"] if name == "scan" else self.state.choosable
        problems = self.state.problems().items()
        return next((text for each, text in problems if each not in chosen), "")

    def notes(self) -> list[str]:
        """Return what was chosen, and what the posterior says."""
        found = self.state.sample.findings
        return [self.state.choice, "" if found is None else found.caption]
