"""A setting that can be chosen, the space of all of them, and candidates that suit the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nmd_lab.data.observations import Observations
from nmd_lab.model.losses import KL, L1, Frobenius, Loss
from nmd_lab.model.nonlinearities import Identity, MinMax, Nonlinearity, ReLU


class Setting(NamedTuple):
    """Values of the options that can be chosen.

    Attributes
    ----------
    nonlinearity, loss : Nonlinearity, Loss
        Model.
    rank : int
        Number of components.
    alpha : float
        Ridge of the factors, in the units of X.
    offsets : {"none", "global", "rows", "columns", "both"}
        Offsets of the model.
    offset_alpha : float
        Ridge of the offsets, in the units of X.
    """

    nonlinearity: Nonlinearity
    loss: Loss
    rank: int
    alpha: float
    offsets: str
    offset_alpha: float


RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 100)
"""Ranks that a search may try, if the data are large enough."""

KINDS = ("both", "columns", "rows", "global")
"""Kinds of offsets that a search may try."""


@dataclass(frozen=True)
class Space:
    """The settings that may be chosen.

    Attributes
    ----------
    nonlinearities : sequence of Nonlinearity
        Nonlinearities, the simplest first.
    losses : sequence of Loss
        Losses.
    largest_rank : int
        Largest rank that may be chosen.
    rank_candidates, alpha_candidates : tuple or None
        Ascending candidates to which rank and ridge are limited, such as the one that was given;
        None for no limit.
    offsets : str or None
        Given kind of offsets, or None.
    offset_alpha : float or None
        Given ridge of the offsets, or None.
    """

    nonlinearities: Sequence[Nonlinearity]
    losses: Sequence[Loss]
    largest_rank: int
    rank_candidates: tuple[int, ...] | None = None
    alpha_candidates: tuple[float, ...] | None = None
    offsets: str | None = None
    offset_alpha: float | None = None

    @property
    def rank(self) -> int | None:
        """The only rank that may be chosen, or None."""
        ranks = self.rank_candidates or ()
        return ranks[0] if len(ranks) == 1 else None

    @property
    def alpha(self) -> float | None:
        """The only ridge that may be chosen, or None."""
        alphas = self.alpha_candidates or ()
        return alphas[0] if len(alphas) == 1 else None

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of offsets that may be chosen."""
        return KINDS if self.offsets is None else (self.offsets,)

    @property
    def first_model(self) -> tuple[Nonlinearity, Loss]:
        """Model of the first path: Identity + Frobenius, unless the ridge is given or f is even.

        A strong ridge brings WH near zero, where other models may be flat.  If f or the loss has no
        degree, WH may not be in the units of X, and the first path has the model itself.
        """
        f, loss = self.nonlinearities[0], self.losses[0]
        itself = f.even or self.alpha_candidates is not None or None in (f.degree, loss.degree)
        return (f, loss) if itself else (Identity(), Frobenius())

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks to try, ascending."""
        return self.rank_candidates or tuple(rank for rank in RANKS if rank <= self.largest_rank)

    def rank_near(self, rank: int) -> int:
        """Return the largest rank up to this one that may be chosen, or the smallest of all."""
        if self.rank_candidates is None:
            return min(rank, self.largest_rank)
        smaller = (r for r in self.rank_candidates if r <= rank)
        return max(smaller, default=self.rank_candidates[0])

    def alpha_near(self, alpha: float) -> float:
        """Return the ridge nearest to this one, in proportion, that may be chosen."""
        if self.alpha_candidates is None:
            return alpha
        logs = np.log(np.maximum([*self.alpha_candidates, alpha], 1e-300))  # a ridge may be 0
        return self.alpha_candidates[int(np.argmin(np.abs(logs[:-1] - logs[-1])))]

    def stepped(self, setting: Setting, name: str, factor: float) -> Setting | None:
        """Return a setting with a ridge times a factor, or the next candidate; None without one."""
        number, candidates = getattr(setting, name), self.alpha_candidates
        further: Sequence[float] = [number * factor]
        if name == "alpha" and candidates is not None:
            further = [alpha for alpha in candidates if (alpha - number) * (factor - 1) > 0]
        if not further:
            return None
        changed: dict[str, Any] = {name: max(further) if factor < 1 else min(further)}
        return setting._replace(**changed)


def suitable_nonlinearities(observations: Observations) -> list[Nonlinearity]:
    """Return the nonlinearities to try, the simplest first.

    Many zeros in data >= 0 suggest ReLU.  Many values at the smallest and at the largest one, or a
    documented range, suggest MinMax.  Square and Modulus are never among them, since nothing in the
    values tells them from ReLU.
    """
    low, high = observations.range()
    total, at_low, at_high = observations.weighted_sums(lambda x: x == low, lambda x: x == high)
    found: list[Nonlinearity] = [Identity()]
    if low == high:
        return found
    # A bound is the value of at least 0.5 % of the entries, and not of a single one.
    least = max(0.005, 2 / observations.n_observed)
    if low == 0 and at_low / total >= least:
        found.append(ReLU())
    documented = observations.labels.valid_range
    if documented is not None and np.isfinite(documented).all():
        found.append(MinMax(*documented))
    elif min(at_low, at_high) / total >= least:
        found.append(MinMax(low, high))
    return found


def suitable_losses(observations: Observations) -> list[Loss]:
    """Return the losses to try: KL is one of them for counts only."""
    found: list[Loss] = [Frobenius(), L1()]
    not_counts = observations.sum_of(lambda x, weights: weights * ((x < 0) | (x != np.floor(x))))
    return found if not_counts else [*found, KL()]
