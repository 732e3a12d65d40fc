"""The classes of a posterior: their probabilities in each draw and over all draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from .draws import ALL, NUMBERS, TINY, Drawn
from .mixture import level_masses, level_shares


class TemperedShares(NamedTuple):
    """How classes are drawn so that over all draws they have the tempered probabilities.

    The class of a draw is accepted with a probability, or another one is drawn from all.

    Attributes
    ----------
    shares, accepted : ndarray (rows, classes)
        Probability of each class, and probability with which that of a draw is accepted.
    """

    shares: NDArray[np.float64]
    accepted: NDArray[np.float64]


class DrawnClasses(Drawn):
    """Levels and classes of columns."""

    def _mean_class_shares(
        self, rows: NDArray[np.integer], positions: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Return the probability of each class of a column over all draws (rows, classes)."""
        return self._tempering(positions).of(self._mixed_class_shares(rows, positions))

    def _mixed_class_shares(
        self, rows: NDArray[np.integer], positions: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Return the mean over the draws of the probability of each class (rows, classes)."""
        cuts = self._noise_of(int(positions[0])).cuts
        assert cuts is not None
        step = max(NUMBERS // (self._n_draws * max(cuts.shape[1] + 1, positions.size)), 1)
        found = []
        for start in range(0, max(rows.size, 1), step):
            some = rows[start : start + step]
            if self._has_indicators(positions):
                found.append(self._shares_in_draws(some, positions).mean(axis=0))
            else:
                v = self._linear_at(some, np.repeat(positions, some.size))
                found.append(level_shares(cuts, v))
        return np.concatenate(found)

    def _shares_in_draws(
        self, rows: NDArray[np.integer], positions: NDArray[np.integer], draws: slice = ALL
    ) -> NDArray[np.float64]:
        """Return the probability of each class in each draw (draws, rows, classes)."""
        i, j = np.repeat(rows, positions.size), np.tile(positions, rows.size)
        v = self._linear_at(i, j, draws)
        v = v.reshape(len(v), rows.size, positions.size)
        cuts = [self._noise_of(int(position)).cuts for position in positions]
        if not self._has_indicators(positions):
            assert cuts[0] is not None
            return np.moveaxis(level_masses(cuts[0][draws], v[:, :, 0]), 0, -1)
        v -= np.concatenate([each[draws] for each in cuts if each is not None], axis=1)[:, None]
        shares: NDArray[np.float64] = ndtr(v) + TINY
        shares /= shares.sum(axis=-1, keepdims=True)
        return shares

    def _draw_classes(
        self,
        rows: NDArray[np.integer],
        positions: NDArray[np.integer],
        draw: int,
        tempered_shares: TemperedShares | None,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Return the position of a class for each row, from one draw.

        Over all draws they have the tempered probabilities, if these are given.
        """
        chosen = _choose(self._shares_in_draws(rows, positions, slice(draw, draw + 1))[0], rng)
        if tempered_shares is not None:
            shares, accepted = tempered_shares
            again = np.flatnonzero(rng.random(rows.size) > accepted[np.arange(rows.size), chosen])
            chosen[again] = _choose(shares[again], rng)
        return chosen.astype(np.float64)

    def _tempered_shares(
        self, rows: NDArray[np.integer], positions: NDArray[np.integer]
    ) -> TemperedShares | None:
        """Return how classes are drawn with their temperature; None for temperature 1."""
        if (tempering := self._tempering(positions)).temperature == 1:
            return None
        mixed = np.maximum(self._mixed_class_shares(rows, positions), TINY)
        shares = tempering.of(mixed)
        ratio = shares / mixed
        return TemperedShares(shares, ratio / ratio.max(axis=1, keepdims=True))

    def _has_indicators(self, positions: NDArray[np.integer]) -> bool:
        """Return whether columns of X are the indicators of categories."""
        table = self._labels.table
        return table is not None and table.of_matrix[int(positions[0])].has_indicators


def _choose(shares: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return a position for each row of probabilities."""
    below = np.cumsum(shares, axis=1)[:, :-1]
    return np.asarray(np.sum(below < rng.random((len(shares), 1)), axis=1))
