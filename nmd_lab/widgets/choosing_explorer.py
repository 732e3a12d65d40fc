"""The base of explorers whose settings may be "auto": a button that chooses, and its outcome."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets as widgets

from ._controls import button, grouped
from .choosing_state import ChoosingState
from .explorer import Explorer

CHOOSE_TOOLTIP = "Choose {} by held-out entries, and fit with them"


class ChoosingExplorer(Explorer):
    """An explorer with a button "Choose for me".

    Attributes
    ----------
    chooser : Button
        The button.
    choice : HTML
        Line that says what was chosen and why.
    """

    state: ChoosingState

    def choose(self) -> None:
        """Choose all settings that may be "auto", and fit with them, as Choose for me does.

        Raises
        ------
        ValueError
            If another setting is wrong.
        """
        self.state.choose_all()
        self._write(self.state.choosable)
        self._settings_changed()
        self.start()

    def _sidebar(self) -> list[Any]:
        """Return the boxes of the controls, and the button below those that it chooses."""
        self._shown: dict[str, Any] = self.state.decided
        self.chooser = button("Choose for me", "choose", self._guarded(self.choose))
        boxes = grouped(self.controls.values())
        last = max(boxes.index(self.controls[name].box) for name in self.state.choosable)
        return [*boxes[: last + 1], self.chooser, *boxes[last + 1 :]]

    def _notes(self) -> list[Any]:
        """Return the widgets below the status line."""
        self.choice = widgets.HTML(layout={"display": "none"}).add_class("nmd-choice")
        return [self.choice, *super()._notes()]

    def _write(self, names: Any) -> None:
        """Show the present values of settings in their controls."""
        for name in names:
            self.controls[name].write(self.state.values[name])

    def _show_status(self) -> None:
        """Show what was chosen, too."""
        super()._show_status()
        said = self.state.choice
        self.choice.value = f'<span role="status">{escape(said)}</span>'
        self.choice.layout.display = None if said else "none"

    def _show_buttons(self) -> None:
        """Show chosen values in their controls, and disable the buttons that have no use now."""
        decided = self.state.decided
        if decided is not self._shown:
            self._shown = decided
            self._write(decided)
            self._show_problems()
        super()._show_buttons()
        reason = "it is running"
        if self.state.active.phase != "running":
            problems, chosen = self.state.problems(), self.state.choosable
            reason = next((text for name, text in problems.items() if name not in chosen), "")
        labels = [self.controls[name].field.label for name in self.state.choosable]
        self.chooser.disabled = bool(reason)
        self.chooser.tooltip = reason or CHOOSE_TOOLTIP.format(", ".join(labels))
