"""The base of a posterior: its fields, and summaries at entries, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from nmd_lab._runtime.checks import check_number, check_share
from nmd_lab.data.typed_table import TypedColumn

from .draws import NUMBERS, Drawn
from .entries import Entries, Unknown, entries_at, entries_of, positions_of
from .fitted import Positions
from .mixture import Array, Predictive, level_shares
from .predictive import interval_of, mean_of, std_of

Statistic = Callable[[Predictive, Array, Positions], Array]
"""A function of a distribution, of v (draws, entries), and of the positions of these entries among
all, which returns one row for each entry."""


def summarise(posterior: Drawn, entries: Entries, statistic: Statistic, width: int = 0) -> Array:
    """Return a statistic of the draws at each entry."""
    predictives, size = posterior._predictives, entries.i.size
    out = np.empty((size, width) if width else size, posterior._dtype)
    step = max(NUMBERS // (posterior._n_draws * max(each.numbers for each in predictives)), 1)
    for start in range(0, size, step):
        some = np.arange(start, min(start + step, size))
        i, j = entries.i[some], entries.j[some]
        for predictive, at, v in posterior._by_noise(predictives, j, posterior._drawn_at(i, j)):
            out[some[at]] = statistic(predictive, v, some[at])
    return out


class PosteriorPredictions(Drawn):
    """Predictions at single entries.

    All methods compute blocks of entries, and never the whole matrix.  They draw no random numbers.
    """

    def predict_std(
        self, rows: Any, columns: ArrayLike | None = None, *, noise: bool = True
    ) -> Any:
        """Return the standard deviation of a new observation.

        Parameters
        ----------
        rows, columns
            As for `predict`.
        noise : bool, default True
            Whether the noise of an observation counts.  False: the standard deviation over the
            draws of E f(T) alone, which goes to 0 with more data.

        Returns
        -------
        ndarray, 1-D, or the type of the test data
            Standard deviations in the units of X.

        Raises
        ------
        TypeError, IndexError, ValueError
            As for `predict`; also if a loss of your own has no noise model.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> with_noise, without = (
        ...     posterior.predict_std(0, "ash", noise=each)[0] for each in (True, False)
        ... )
        >>> bool(with_noise > without > 0)
        True
        """
        return self._summary(rows, columns, lambda p, v, _: std_of(p, v, noise))

    def predict_interval(
        self,
        rows: Any,
        columns: ArrayLike | None = None,
        level: float = 0.9,
        *,
        noise: bool = True,
        unknown: Unknown = "error",
    ) -> Array:
        """Return equal-tailed intervals that cover a new observation with a given probability.

        Parameters
        ----------
        rows, columns
            As for `predict`.
        level : float, default 0.9
            Probability of the interval, in (0, 1).
        noise : bool, default True
            Whether the noise of an observation counts.  False: an interval for E f(T).
        unknown : {"error", "offsets"}, default "error"
            What is done with rows and columns that X did not have.  "error": a sentence names them.
            "offsets": such a row is drawn from the prior of rows, and such a column is in each draw
            one of those of X, at random, if all are of one kind.

        Returns
        -------
        ndarray (n_entries, 2)
            Lower and upper ends in the units of X.  If X has few different values, and several at
            both ends of this scale, such as ratings, they are within it.  For test data, the
            entries are their observed ones, sorted by row and column.

        Raises
        ------
        TypeError, IndexError, ValueError
            As for `predict_std`; also if `level` is not in (0, 1).

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> low, high = posterior.predict_interval(0, "alcohol", level=0.95)[0]
        >>> bool(low < wine["alcohol"][0] < high)
        True
        """
        level = check_share("level", level, zero=False)
        entries = self._entries(rows, columns, unknown)

        def interval(p: Predictive, v: Array, _: Positions | None = None) -> Array:
            return interval_of(p, v, level, noise)

        ends, is_new = np.empty((entries.i.size, 2), self._dtype), entries.i < 0
        for which in np.unique(is_new):
            posterior = cast(Any, self)._unknown_row() if which else self
            at = np.flatnonzero(is_new == which)
            i, j = np.maximum(entries.i[at], 0), entries.j[at]
            ends[at] = summarise(posterior, entries_at(i, j), interval, 2)
            if (other := j < 0).any():
                v = posterior._at_unknown_column(i[other])
                ends[at[other]] = interval(posterior._predictives[0], v)
        scale = self.parameters.get("scale") if noise else None
        return ends if scale is None else ends.clip(*scale)

    def probability(self, rows: Any, columns: ArrayLike | None = None, *, above: float) -> Any:
        """Return the probability that a new observation is larger than a number.

        Parameters
        ----------
        rows, columns
            As for `predict`.
        above : float
            The number, in the units of X.

        Returns
        -------
        ndarray, 1-D, or the type of the test data
            Probabilities of an observation > `above`.

        Raises
        ------
        TypeError, IndexError, ValueError
            As for `predict_std`.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> bool(posterior.probability(0, "alcohol", above=13)[0] > 0.5)
        True
        """
        bound = check_number("above", above)
        return self._summary(
            rows, columns, lambda p, v, _: 1 - p.cdf(v, np.full(v.shape[1], bound))
        )

    def log_density(
        self, rows: Any, columns: ArrayLike | None = None, values: ArrayLike | None = None
    ) -> Array:
        """Return the logarithm of the predictive density of observations.

        Parameters
        ----------
        rows, columns
            As for `predict`.
        values : array_like, optional
            Observations, which broadcast with the positions.  Test data have their own.

        Returns
        -------
        ndarray, 1-D
            Logarithm of the density over the draws.  Where the noise has atoms (limits, ordinal
            levels, counts) it is that of the probability.  For test data, the entries are their
            observed ones, sorted by row and column.

        Raises
        ------
        TypeError, IndexError, ValueError
            As for `predict_std`; also if ordinal data hold a value that is no level.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> near, far = posterior.log_density(0, "alcohol", [14.0, 11.0])
        >>> bool(near > far)
        True
        """
        if columns is not None:
            if values is None:
                raise TypeError("values=None goes with test data only: give the observations.")
            i = positions_of(self._labels, "rows", rows)
            j = positions_of(self._labels, "columns", columns)
            i, j, values = np.broadcast_arrays(i, j, np.atleast_1d(values))
            rows, columns = entries_at(i, j), None
        entries = self._entries(rows, columns)
        if entries.data is not None:
            values = entries.data.observations.entries().values
        x = np.asarray(values, dtype=np.float64).ravel()
        return summarise(self, entries, lambda p, v, at: p.log_density(v, x[at]))

    def level_probabilities(self, rows: Any, columns: ArrayLike | None = None) -> Array:
        """Return the probability of each level of ordinal data.

        Parameters
        ----------
        rows, columns
            As for `predict`.

        Returns
        -------
        ndarray (n_entries, K)
            Probabilities of the K `levels`.

        Raises
        ------
        ValueError
            If the data are not ordinal.
        TypeError, IndexError
            As for `predict`.

        Examples
        --------
        >>> import nmd_lab as nmd
        >>> table = nmd.datasets.make_ratings(60, 40, 700, random_state=0)
        >>> ratings = nmd.observations_from_table(table)
        >>> posterior = nmd.sample(ratings, 2, loss="ordinal", draws=50, random_state=0)
        >>> shares = posterior.level_probabilities([0, 1], [2, 3])  # of the stars 1 to 5
        >>> shares.shape, shares.sum(axis=1).round(6)
        ((2, 5), array([1., 1.]))
        """
        if self.noise != "ordinal" or self.levels is None:
            raise ValueError(
                f"level_probabilities() is for ordinal data, and noise={self.noise!r}: use "
                "probability(..., above=), or probabilities(column)."
            )
        cuts, entries = self._noise_of(0).cuts, self._entries(rows, columns)
        assert cuts is not None
        return summarise(self, entries, lambda _, v, at: level_shares(cuts, v), len(self.levels))

    def uncertainty(self, *, noise: bool = True) -> xr.DataArray:
        """Return the standard deviation of a new observation of each entry.

        Parameters
        ----------
        noise : bool, default True
            Whether the noise of an observation counts, as for `predict_std`.

        Returns
        -------
        xarray.DataArray
            What `predict_std` gives at each entry, with the dimensions and coordinates of X.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> posterior.uncertainty().sel(row=0).idxmax().item()  # in milligrams
        'proline'
        """
        return self._labels.label(self._matrix(lambda p, v: std_of(p, v, noise)))

    def _entries(self, rows: Any, columns: Any, unknown: Unknown | None = None) -> Entries:
        """Return the entries of rows and columns, or of test data."""
        return entries_of(self._labels, rows, columns, unknown, self._owner)

    def _summary(self, rows: Any, columns: Any, statistic: Statistic) -> Any:
        """Return one number for each entry, in the type of the test data if there are some."""
        entries = self._entries(rows, columns)
        return entries.back(summarise(self, entries, statistic))

    def _expected(self, entries: Entries) -> Array:
        """Return the mean of E f(T) at each entry."""
        return summarise(self, entries, lambda p, v, _: mean_of(p, v))

    def _matrix(self, summary: Callable[[Predictive, Array], Array] = mean_of) -> Array:
        """Return a summary of the draws at each entry of X, as a matrix."""
        out = np.empty(self._shape, self._dtype)
        for i, j in self._blocks(max(each.numbers for each in self._predictives)):
            out[i, j] = self._block(summary, i, j)
        return out

    def _ranked_by(self, by: str, row: int) -> Array:
        """Return the mean of E f(T) in a row, or an end of its interval."""
        entries = entries_at(row, np.arange(self._shape[1]))
        if by == "mean":
            return self._expected(entries)
        return self.predict_interval(entries, noise=False)[:, 0 if by == "lower" else 1]

    def _class_shares(
        self, column: Any, typed: TypedColumn | None, positions: Positions, rows: Positions
    ) -> tuple[Array, list[Any]]:
        """Return the probability of each class over all draws, and the classes."""
        first = int(positions[0])
        if (self.noise if self._kinds is None else self.noise[first]) != "ordinal":
            raise ValueError(
                f"column={column!r} holds numbers, which have no classes: use "
                "probability(..., above=)."
            )
        levels = self._noise_of(first).levels or ()
        return self._mean_class_shares(rows, positions), list(levels)
