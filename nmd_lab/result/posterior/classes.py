"""Probabilities of the levels and categories of a column, and draws of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from nmd_lab.result.filling import class_table, rows_at, typed_column

from .draws import ALL, NUMBERS, DrawnFactors
from .noise import Array
from .ordinal import level_masses, level_shares

TINY = np.finfo(np.float64).tiny
"""What a category has at least, so that the probabilities of all can be divided by their sum."""


class PosteriorClasses(DrawnFactors):
    """What a posterior says of columns of booleans, ordered levels and categories."""

    def probabilities(self, column: Any, rows: Any = None) -> Any:
        """Return the probability of each class of a column, for all rows or some.

        Parameters
        ----------
        column : label or int
            Label or position of a column of ordered levels, or label of a column of a DataFrame
            that holds booleans, ordered levels or categories.
        rows : label, int or array_like, optional
            Labels or positions of rows, by the rule of `Decomposition.predict`; by default all.

        Returns
        -------
        pandas.DataFrame (n_rows, n_classes)
            Probabilities, as `Decomposition.probabilities` has them, over all draws.

        Raises
        ------
        KeyError, IndexError
            If X has no such column.
        ValueError
            If the column holds numbers.

        Notes
        -----
        A column of more than two categories has an indicator for each of them.  Their
        probabilities are divided by the sum.

        Examples
        --------
        >>> import numpy as np, pandas as pd, nmd_lab as nmd
        >>> size = np.arange(30.0)
        >>> X = pd.DataFrame({"size": size, "weight": 2 * size + 1, "adult": size > 14})
        >>> posterior = nmd.sample(X, 1, draws=50, random_state=0)
        >>> posterior.probabilities("adult", rows=[0, -1]).idxmax(axis=1).tolist()
        [False, True]
        """
        typed, positions = typed_column(self.labels, column)
        first = int(positions[0])
        if (self.noise if self.kinds is None else self.noise[first]) != "ordinal":
            raise ValueError(
                f"column={column!r} holds numbers, which have no classes: use "
                "probability(..., above=)."
            )
        classes = list(self.noise_of(first).levels or ()) if typed is None else typed.classes
        at = rows_at(self.labels, rows)
        return class_table(self.labels, self.mean_shares(at, positions), classes, at)

    def mean_shares(self, rows: NDArray[np.integer], positions: NDArray[np.integer]) -> Array:
        """Return the probability of each class over all draws (rows, classes)."""
        cuts = self.noise_of(int(positions[0])).cuts
        assert cuts is not None
        step = max(NUMBERS // (self.n_draws * max(cuts.shape[1] + 1, positions.size)), 1)
        blocks = (rows[start : start + step] for start in range(0, max(rows.size, 1), step))
        return np.concatenate([self._mean_shares(b, positions, cuts) for b in blocks])

    def _mean_shares(
        self, rows: NDArray[np.integer], positions: NDArray[np.integer], cuts: Array
    ) -> Array:
        """Return the probability of each class over all draws, of a block of rows."""
        if self._has_indicators(int(positions[0])):
            indicated: Array = self.class_shares(rows, positions).mean(axis=0)
            return indicated
        return level_shares(cuts, self.linear_at(rows, np.repeat(positions, rows.size)))

    def class_shares(
        self, rows: NDArray[np.integer], positions: NDArray[np.integer], draws: slice = ALL
    ) -> Array:
        """Return the probability of each class in each draw (draws, rows, classes)."""
        i, j = np.repeat(rows, positions.size), np.tile(positions, rows.size)
        v = self.linear_at(i, j, draws)
        v = v.reshape(len(v), rows.size, positions.size)
        cuts = [self.noise_of(int(position)).cuts for position in positions]
        if not self._has_indicators(int(positions[0])):
            assert cuts[0] is not None
            return np.moveaxis(level_masses(cuts[0][draws], v[:, :, 0]), 0, -1)
        v -= np.concatenate([each[draws] for each in cuts if each is not None], axis=1)[:, None]
        shares: Array = ndtr(v) + TINY
        shares /= shares.sum(axis=-1, keepdims=True)
        return shares

    def _has_indicators(self, position: int) -> bool:
        """Return whether a column of X is one of the indicators of categories."""
        table = self.labels.table
        return table is not None and table.of_matrix[position].has_indicators

    def draw_classes(
        self,
        rows: NDArray[np.integer],
        positions: NDArray[np.integer],
        draw: int,
        rng: np.random.Generator,
    ) -> Array:
        """Return the position of a class for each row, from one draw."""
        shares = self.class_shares(rows, positions, slice(draw, draw + 1))[0]
        below = np.cumsum(shares, axis=1)[:, :-1]
        chosen: Array = np.sum(below < rng.random((rows.size, 1)), axis=1).astype(np.float64)
        return chosen
