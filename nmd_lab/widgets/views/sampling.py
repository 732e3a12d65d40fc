"""The base of the views that answer "How sure?": a button, and what the posterior says."""

from __future__ import annotations

from typing import Any

from nmd_lab.result.posterior.posterior import Posterior
from nmd_lab.widgets.live.background import Background
from nmd_lab.widgets.parts.charts import intervals_chart
from nmd_lab.widgets.states.sampling import SamplingState

from .choosing import ChoosingView


class SamplingView(ChoosingView):
    """A view with a button "How sure?"."""

    state: SamplingState

    def __init__(self, state: SamplingState, filename: str) -> None:
        super().__init__(state, filename)
        self.buttons["sample"] = "How sure?"
        self.titles["sample"] = "Draw from the posterior of this model: predictions with intervals"
        self.actions["sample"] = lambda _: self.how_sure()

    @property
    def works(self) -> list[Background]:
        """The fit and the sampler."""
        return [self.state.sample, self.state.fit]

    @property
    def posterior(self) -> Posterior | None:
        """Draws from the posterior; None until the sampler has stopped."""
        return self.state.posterior

    def how_sure(self) -> None:
        """Draw from the posterior with the present settings."""
        problem = self.state.cannot_sample()
        if problem:
            raise ValueError(problem)
        self.state.sample_now()

    def why_disabled(self, name: str) -> str:
        """Return why a button has no use now, or an empty string."""
        return self.state.cannot_sample() if name == "sample" else super().why_disabled(name)

    def intervals(self) -> dict[str, Any]:
        """Return the chart of the intervals by its name; nothing without a posterior."""
        found = self.state.sample.findings
        return {} if found is None else {"intervals": intervals_chart(found)}

    def notes(self) -> list[str]:
        """Return what was chosen, and what the posterior says."""
        found = self.state.sample.findings
        return [*super().notes(), "" if found is None else found.caption]
