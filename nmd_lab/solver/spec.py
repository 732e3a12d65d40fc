"""The specification of a fit: all that is asked for or chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nmd_lab.model.kind import LimitModel
from nmd_lab.model.model import Model

from .initialization import Start
from .options import Options


@dataclass(frozen=True, kw_only=True)
class Spec(Options):
    """Options of a fit of which none is "auto", with its model, its rank and what trials found.

    Attributes
    ----------
    model : Model
        Model, in the units of X.
    rank : int
        Number of components.
    limits : LimitModel
        What is known of entries with limits; sd = NaN if a pilot run is to estimate it.
    start : Start or None
        Factors of the trials from which the fit begins; None if it begins as `init` says.
    selection : dict or None
        What `Decomposition.selection` tells; None if nothing was chosen.
    spent : float
        Seconds of `time_limit` that the choice took.
    """

    model: Model
    rank: int
    limits: LimitModel
    start: Start | None = None
    selection: dict[str, Any] | None = None
    spent: float = 0.0

    @property
    def after_choice(self) -> Spec:
        """The specification with what the choice left of the time limit."""
        if self.time_limit is None:
            return self
        return replace(self, time_limit=max(self.time_limit - self.spent, 0.0))
