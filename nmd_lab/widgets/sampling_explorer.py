"""The base of explorers that answer "How sure?": a button, and what the posterior says."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets as widgets

from nmd_lab.result.posterior.posterior import Posterior

from ._controls import button
from ._doubt_maps import NAMES
from .choosing_explorer import ChoosingExplorer
from .sampling_state import SamplingState

SAMPLE_TOOLTIP = "Draw from the posterior of this model: predictions with intervals"


class SamplingExplorer(ChoosingExplorer):
    """An explorer with a button "How sure?".

    Attributes
    ----------
    sampler : Button
        The button.
    intervals : Image
        Predicted against observed values, with intervals.
    maps : dict of str to Image
        Observed picture, posterior mean and standard deviation.
    """

    state: SamplingState

    @property
    def posterior(self) -> Posterior | None:
        """Draws from the posterior; None until the sampler has stopped."""
        return self.state.posterior

    def how_sure(self) -> None:
        """Draw from the posterior with the present settings, as How sure? does.

        Raises
        ------
        ValueError
            If a setting is wrong, or not chosen yet.
        """
        problem = self.state.cannot_sample()
        if problem:
            raise ValueError(problem)
        self._note = None
        self.state.sample_now()

    def close(self) -> None:
        """Stop fit and sampler, and remove the widgets."""
        self.state.sample.reset(tell=False)
        self.state.sample.listeners.clear()
        super().close()

    def _sidebar(self) -> list[Any]:
        """Return the boxes of the controls, and the button below the number of draws."""
        self.sampler = button("How sure?", "sample", self._guarded(self.how_sure), SAMPLE_TOOLTIP)
        self.state.sample.listeners.append(self._refresh)
        return [*super()._sidebar(), self.sampler]

    def _findings(self) -> list[Any]:
        """Return the widgets that show what the posterior says."""
        self.intervals = widgets.Image().add_class("nmd-chart").add_class("nmd-intervals")
        self._said = widgets.HTML().add_class("nmd-caption")
        self._titles = {name: widgets.HTML(name) for name in NAMES}
        self.maps = {name: widgets.Image().add_class("nmd-plot") for name in NAMES}
        tiles = [
            widgets.VBox([self._titles[name], self.maps[name]]).add_class("nmd-tile")
            for name in NAMES
        ]
        self._panels = widgets.Box(tiles).add_class("nmd-panels").add_class("nmd-maps")
        return [self.intervals, self._said, self._panels]

    def _show_findings(self, row: int) -> None:
        """Show what the posterior says, and its pictures of a row; nothing without one."""
        found = self.state.sample.findings
        maps = found.maps.of_row(row if self.state.is_sampled else 0) if found else {}
        for widget, shown in (
            (self.intervals, found), (self._said, found), (self._panels, maps),
        ):  # fmt: skip
            widget.layout.display = None if shown else "none"
        if found is not None:
            _show(self.intervals, found.chart)
            self._said.value = escape(found.caption)
        for name, (title, picture) in maps.items():
            self._titles[name].value = escape(title)
            _show(self.maps[name], picture)

    def _show_buttons(self) -> None:
        """Disable the buttons that have no use now, and show why."""
        super()._show_buttons()
        running = self.state.active.phase == "running"
        reason = "it is running" if running else self.state.cannot_sample()
        self.sampler.disabled = bool(reason)
        self.sampler.tooltip = reason or SAMPLE_TOOLTIP


def _show(image: Any, png: bytes) -> None:
    """Show a PNG file, unless it is shown already."""
    if image.value != png:
        image.value = png
