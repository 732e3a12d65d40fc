"""The search space of a choice: which settings are open, and which are fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nmd_lab.model.losses import Frobenius, Loss
from nmd_lab.model.nonlinearities import Identity, Nonlinearity

RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 100)
"""Ranks that a search may try, if the data are large enough."""

KINDS = ("both", "columns", "rows", "global")
"""Kinds of offsets that a search may try."""


@dataclass(frozen=True)
class Space:
    """What may be chosen.

    Attributes
    ----------
    nonlinearities : sequence of Nonlinearity
        Nonlinearities, the simplest first.
    losses : sequence of Loss
        Losses.
    rank : int or None
        Given rank, or None.
    largest_rank : int
        Largest rank that may be chosen.
    alpha, offset_alpha : float or None
        Given ridges, or None.
    offsets : str or None
        Given kind of offsets, or None.
    """

    nonlinearities: Sequence[Nonlinearity]
    losses: Sequence[Loss]
    rank: int | None
    largest_rank: int
    alpha: float | None
    offsets: str | None
    offset_alpha: float | None

    @property
    def first_model(self) -> tuple[Nonlinearity, Loss]:
        """Model of the first path: Identity + Frobenius, unless the ridge is given or f is even.

        A strong ridge brings WH near zero, where other models may be flat.  If f or the loss has no
        degree, WH may not be in the units of X, and the first path has the model itself.
        """
        f, loss = self.nonlinearities[0], self.losses[0]
        suits = f.even or self.alpha is not None or None in (f.degree, loss.degree)
        return (f, loss) if suits else (Identity(), Frobenius())

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that may be chosen, ascending."""
        return tuple(rank for rank in RANKS if rank <= self.largest_rank)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of offsets to try without components, the first for a guess."""
        if self.offsets is not None:
            return (self.offsets,)
        if self.nonlinearities[0].even:
            return ("none",)
        return KINDS
