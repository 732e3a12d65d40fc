"""The base of views of fits whose settings may be "auto": a button that chooses."""

from __future__ import annotations

from nmd_lab.widgets.states.choosing import ChoosingState

from .view import View

CHOOSE_TITLE = "Choose {} by held-out entries, and fit with them"


class ChoosingView(View):
    """A view with a button "Find everything"."""

    state: ChoosingState
    opens = True

    def __init__(self, state: ChoosingState, filename: str) -> None:
        super().__init__(state, filename)
        self.buttons["choose"] = "Find everything"
        labels = [field.label for field in state.fields if field.auto]
        self.titles["choose"] = CHOOSE_TITLE.format(", ".join(labels))
        self.actions["choose"] = lambda _: self.choose()

    def choose(self) -> None:
        """Choose all settings that may be "auto", and fit with them."""
        self.state.choose_all()
        problem = self.cannot_run()
        if problem:
            raise ValueError(problem)
        self.state.start()

    def why_disabled(self, name: str) -> str:
        """Return why a button has no use now, or an empty string."""
        problems, chosen = self.state.problems(), self.state.choosable
        return next((text for each, text in problems.items() if each not in chosen), "")

    def notes(self) -> list[str]:
        """Return what was chosen, and why."""
        return [self.state.choice]
