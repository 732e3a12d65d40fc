"""Data with their holes filled by a posterior: by a point, or several times by draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import as_generator, check_integer, check_word
from nmd_lab.data.base import FloatArray
from nmd_lab.data.containers import dense_like
from nmd_lab.data.labels import is_frame
from nmd_lab.data.matching import MatchedData, match, observe_beside
from nmd_lab.data.typed_table import TypedColumn
from nmd_lab.result.entries import entries_at
from nmd_lab.result.filling import data_to_fill, filled_frame, refuse_sparse

from .classes import PosteriorClasses
from .entries import summarise
from .kernels import Array
from .new_rows import NewRowsOfPosterior
from .predictions import PosteriorPredictions

Point = Literal["auto", "mean", "median", "mode"]
"""What one number, level or class stands for a distribution."""

Positions = NDArray[np.integer]


class PosteriorImputation(PosteriorClasses, NewRowsOfPosterior, PosteriorPredictions):
    """Completed data."""

    @overload
    def impute(
        self, X: Any, n: None = None, *, point: Point = "auto", random_state: Any = None
    ) -> Any: ...

    @overload
    def impute(
        self, X: Any, n: int, *, point: Point = "auto", random_state: Any = None
    ) -> list[Any]: ...

    def impute(
        self, X: Any, n: int | None = None, *, point: Point = "auto", random_state: Any = None
    ) -> Any:
        """Return data with their holes filled: once by a point, or n times by draws.

        Parameters
        ----------
        X : array_like, masked array, DataFrame or DataArray
            Data with missing entries, with the columns of the fitted data or, by label, some of
            them.  Their rows are those of the fitted data if all labels of rows occur there, or if
            one of the two has no labels and they have as many.  Otherwise all are new rows, which
            are drawn as by `fold_in`; use this for as many new rows without labels.
        n : int, optional
            Number of completed copies, for multiple imputation.  By default there is one result,
            without randomness, for each entry its best guess.
        point : {"auto", "mean", "median", "mode"}, default "auto"
            The best guess.  "auto": the mean of a number, the median of ordered levels (the first
            at which the cumulative probability reaches one half), and the most probable of yes and
            no or of classes.  "mean": of ordered levels that nearest to their mean.  "median": also
            of a number.  "mode": also of ordered levels.
        random_state : int, Generator, RandomState or None, default None
            Seed of the draws and of the noise of copies.

        Returns
        -------
        same type as X, an ndarray for a masked array, or a list of n of them
            Observed entries are kept, and a DataFrame has its columns, index, dtypes and
            categories, as that of `Decomposition.impute`.  The missing entries of a copy are new
            observations, with noise, from one random draw; two copies have different draws as long
            as there are enough.

        Raises
        ------
        ValueError, TypeError
            If X is sparse, has another number of columns or other labels of them, or an argument is
            invalid.

        Examples
        --------
        >>> import numpy as np, pandas as pd, nmd_lab as nmd
        >>> size = np.arange(30.0)
        >>> X = pd.DataFrame({"size": size, "weight": 2 * size + 1, "adult": size > 14})
        >>> X = X.convert_dtypes()
        >>> X.loc[29, "adult"] = pd.NA
        >>> posterior = nmd.sample(X, 1, draws=50, random_state=0)
        >>> bool(posterior.impute(X).loc[29, "adult"])
        True
        >>> len(posterior.impute(X, n=20, random_state=0))
        20
        """
        check_word("point", point, ["auto", "mean", "median", "mode"])
        count = None if n is None else check_integer("n", n, 1)
        posterior, data = self.beside(X)
        if count is None:
            return posterior.filled(X, data, point)
        return posterior.copies(X, data, count, as_generator(random_state))

    def beside(self, X: Any) -> tuple[Self, MatchedData]:
        """Return the posterior of the rows of X, this or that of new ones, and X beside it."""
        refuse_sparse(X)
        rows = match(observe_beside(self.labels, X).labels, self.labels, "rows")
        are_new = rows is None or bool(np.any(rows < 0))
        posterior = self.fold_in(X, unknown="offsets") if are_new else self
        return posterior, data_to_fill(posterior.labels, X, "the posterior")

    def filled(self, X: Any, data: MatchedData, point: Point = "auto") -> Any:
        """Return X, of which `data` has the positions, with its holes filled by best guesses."""

        def numbers(i: Positions, j: Positions) -> Array:
            return summarise(self, entries_at(i, j), lambda p, v, _: p.point(v, point))

        def classes(rows: Positions, positions: Positions) -> Array:
            return np.asarray(self.mean_shares(rows, positions).argmax(axis=1), dtype=np.float64)

        return _filled(X, data, numbers, classes)

    def copies(self, X: Any, data: MatchedData, n: int, rng: np.random.Generator) -> list[Any]:
        """Return X n times with its holes filled by draws, different ones as long as there are."""
        rounds = -(-n // self.n_draws)
        order = np.concatenate([rng.permutation(self.n_draws) for _ in range(rounds)])
        return [self._copy(X, data, int(draw), rng) for draw in order[:n]]

    def _copy(self, X: Any, data: MatchedData, draw: int, rng: np.random.Generator) -> Any:
        """Return X with its holes filled by new observations from one draw."""

        def numbers(i: Positions, j: Positions) -> Array:
            v = self.linear_at(i, j, slice(draw, draw + 1))[0]
            return self.predictive.at(j).draw(v, draw, rng)

        def classes(rows: Positions, positions: Positions) -> Array:
            return self.draw_classes(rows, positions, draw, rng)

        return _filled(X, data, numbers, classes)


def _filled(
    X: Any,
    data: MatchedData,
    numbers: Callable[[Positions, Positions], Array],
    classes: Callable[[Positions, Positions], Array],
) -> Any:
    """Return X filled by numbers at entries, and by the positions of classes of rows."""
    array = data.observations.to_array()
    i, j = np.nonzero(np.isnan(array))
    array[i, j] = numbers(data.rows[i], data.columns[j])
    if not is_frame(X):
        return dense_like(X, data.observations.labels, array)

    def missing(column: TypedColumn, at: NDArray[np.intp]) -> FloatArray:
        if column.has_indicators:
            return classes(data.rows, data.columns[at])
        values = array[:, at[0]].astype(np.float64)
        return values if column.kind == "number" else column.nearest(values)

    return filled_frame(X, data.observations.labels, missing)
