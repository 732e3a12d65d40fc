"""The search space of a choice: which settings are open, and which are fixed."""

from __future__ import annotations

import math
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
    given_ranks, given_alphas : tuple or None
        Ascending candidates to which rank and ridge are limited; None for no limit.
    """

    nonlinearities: Sequence[Nonlinearity]
    losses: Sequence[Loss]
    rank: int | None
    largest_rank: int
    alpha: float | None
    offsets: str | None
    offset_alpha: float | None
    given_ranks: tuple[int, ...] | None = None
    given_alphas: tuple[float, ...] | None = None

    @property
    def first_model(self) -> tuple[Nonlinearity, Loss]:
        """Model of the first path: Identity + Frobenius, unless the ridge is given or f is even.

        A strong ridge brings WH near zero, where other models may be flat.  If f or the loss has no
        degree, WH may not be in the units of X, and the first path has the model itself.
        """
        f, loss = self.nonlinearities[0], self.losses[0]
        alphas_are_given = self.alpha is not None or self.given_alphas is not None
        suits = f.even or alphas_are_given or None in (f.degree, loss.degree)
        return (f, loss) if suits else (Identity(), Frobenius())

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that may be chosen, ascending."""
        candidates = RANKS if self.given_ranks is None else self.given_ranks
        return tuple(rank for rank in candidates if rank <= self.largest_rank)

    def rank_near(self, rank: int) -> int:
        """Return the largest rank up to this one that may be chosen, or the smallest of all."""
        if self.given_ranks is None:
            return min(rank, self.largest_rank)
        return max((each for each in self.given_ranks if each <= rank), default=self.given_ranks[0])

    def allows_rank(self, rank: int) -> bool:
        """Return whether a rank may be chosen."""
        return self.given_ranks is None or rank in self.given_ranks

    def alpha_near(self, alpha: float) -> float:
        """Return the ridge nearest to this one, in proportion, that may be chosen."""
        if self.given_alphas is None:
            return alpha
        return min(self.given_alphas, key=lambda each: abs(_log(each) - _log(alpha)))

    def allows_alpha(self, alpha: float) -> bool:
        """Return whether a ridge may be chosen."""
        return self.given_alphas is None or alpha in self.given_alphas

    def stepped(self, name: str, number: float, factor: float) -> float | None:
        """Return a ridge times a factor, or the next candidate in this direction, None without."""
        if name != "alpha" or self.given_alphas is None:
            return number * factor
        if factor < 1:
            return max((each for each in self.given_alphas if each < number), default=None)
        return min((each for each in self.given_alphas if each > number), default=None)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of offsets to try without components, the first for a guess."""
        if self.offsets is not None:
            return (self.offsets,)
        if self.nonlinearities[0].even:
            return ("none",)
        return KINDS


def _log(number: float) -> float:
    return math.log(max(number, 1e-300))
