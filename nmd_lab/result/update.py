"""A fit that learns from new rows: their W, and an H that serves them and the earlier rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmd_lab._checks import as_generator, check_integer, check_share
from nmd_lab.data.base import FloatArray
from nmd_lab.data.labels import Labels
from nmd_lab.data.limits import GivenLimits
from nmd_lab.data.matched import MatchedData, known_columns
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.data.stacking import stacked

from .append import Appending
from .columns_step import objectives, refuse_mixed, solve_columns
from .fold_in import FittedModel, fold_rows, observe_rows


@dataclass(frozen=True)
class UpdateOptions:
    """Constants of an update.

    Attributes
    ----------
    sweeps : int
        Number of times that W and H are solved for in turn.
    fewest_old : int
        Number of earlier rows that are drawn, or twice the number of new rows if that is more.
    """

    sweeps: int = 4
    fewest_old: int = 500


UPDATE = UpdateOptions()


class Swept(NamedTuple):
    """What alternating steps give.

    Attributes
    ----------
    model : FittedModel
        Model with the new H.
    W : ndarray (k, rank)
        Rows of W for this H.
    row_offsets : ndarray (k,) or None
        Their offsets.
    """

    model: FittedModel
    W: FloatArray
    row_offsets: FloatArray | None


class Updating(Appending):
    """What adapts a result to new rows."""

    def update(
        self,
        rows: Any,
        *,
        old: Any = None,
        mask: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        at_most: ArrayLike | None = None,
        at_least: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        forgetting: float = 0.0,
        sweeps: int = UPDATE.sweeps,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> Self:
        """Return the fit with new rows in it, and with an H that has learned from them.

        W and H are solved for in turn, for the new rows and for some of the earlier ones, which
        stand for all of these.

        Parameters
        ----------
        rows : array_like (k, n), Series, DataFrame, DataArray or sparse data
            New rows of X, as for `fold_in`.
        old : array_like (l, n), optional
            Earlier rows of X, all or some.  By default the fit's own predictions for rows that are
            drawn at random.
        mask, weights, at_most, at_least, upper : array_like (k, n), optional
            As for `fold_in`.
        forgetting : float, default 0
            Share of the weight of the earlier rows that is lost, below 1.
        sweeps : int, default 4
            Number of times that W and H are solved for.
        random_state : int, Generator or None, default 0
            Seed of the drawn rows.
        threads : int, optional
            Number of threads; by default all.

        Returns
        -------
        Decomposition
            Fit with the new rows after its own, as `append` returns it, but with another H and
            other column offsets.  The other rows of W are those whose WH is nearest to what it was;
            history, objective and `relative_error` are those of this fit.

        Raises
        ------
        ValueError, TypeError
            If `append` would refuse the rows, if the columns have losses of their own, or if the
            loss needs `old`, since predictions are no data for it.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 20))
        >>> fit = nmd.complete(X[:20], 3, alpha=1e-3, random_state=0)
        >>> fit = fit.update(X[20:], old=X[:20])
        >>> fit.shape, bool(np.abs(fit.reconstruct().values - X).max() < 0.05)
        ((60, 20), True)
        """
        model = self.model
        refuse_mixed(model)
        check_integer("sweeps", sweeps, 1)
        check_share("forgetting", forgetting)
        if model.absent_are_zeros and forgetting:
            raise ValueError(
                f"forgetting={forgetting} does not go with a fit of sparse zeros, which have no "
                "weights: leave it out."
            )
        given = {"mask": mask, "weights": weights}
        limits = {"at_most": at_most, "at_least": at_least, "upper": upper}
        own_limits = GivenLimits(at_most, at_least, upper)
        new = self._own_columns(rows, **given, limits=own_limits)
        if old is None:
            (m, n), number = self.shape, max(UPDATE.fewest_old, 2 * new.shape[0])
            drawn = as_generator(random_state).choice(m, min(number, m), replace=False)
            share = min(float(self.parameters.get("n_observed", m * n)) / (m * n), 1.0)
            earlier = self.predicted_rows(np.sort(drawn), np.full(n, share))
            weight = m / earlier.shape[0]
        else:
            earlier = self._own_columns(old)
            weight = self.shape[0] / earlier.shape[0]
        weight = 1.0 if model.absent_are_zeros else weight * (1.0 - forgetting)
        row_weights = np.repeat([weight, 1.0], [earlier.shape[0], new.shape[0]])
        swept = sweep(model, stacked([earlier, new]), row_weights, sweeps, threads=threads)
        W, H = self.labels.label_factors(self.moved_rows(swept.model.H), swept.model.H)
        changed = replace(cast(Any, self), W=W, H=H, offsets=swept.model.offsets)
        return cast(Self, changed.append(rows, **given, **limits))

    def moved_rows(self, H: FloatArray) -> FloatArray:
        """Return the W (m, rank) whose WH with another H is nearest to the present one.

        Under a constraint on W it is W itself.

        Parameters
        ----------
        H : ndarray (rank, n)
            Another right factor.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> fit = nmd.decompose(np.outer([1.0, 2.0, 3.0], [1.0, 2.0]), 1, random_state=0)
        >>> W = fit.moved_rows(2 * fit.H.values)
        >>> bool(np.allclose(W, fit.W.values / 2))
        True
        """
        W, own_H = self.factors
        if self.model.constraint is not None:
            return W
        change = np.linalg.lstsq(H.T.astype(np.float64), own_H.T.astype(np.float64), rcond=None)[0]
        return (W @ change.T).astype(W.dtype)

    def _own_columns(self, rows: Any, **given: Any) -> SparseObservations:
        """Return observed entries of rows, with the columns of the fit."""
        observations = observe_rows(
            self.labels, rows, absent_are_zeros=self.model.absent_are_zeros, **given
        )
        m, n = observations.shape[0], self.shape[1]
        columns = known_columns(self.labels, observations)
        matched = MatchedData(observations, np.arange(m), columns)
        own = matched.as_sparse(Labels.plain((m, n)))
        return replace(own, absent_are_zeros=self.model.absent_are_zeros)

    def predicted_rows(
        self, rows: NDArray[np.intp], shares: NDArray[np.float64]
    ) -> SparseObservations:
        """Return the predictions for some rows as data, which stand for what was observed there.

        Parameters
        ----------
        rows : ndarray of int (k,)
            Positions.
        shares : ndarray (n,)
            Share of the rows in which a column was observed: the weight of its predictions.

        Raises
        ------
        ValueError
            If predictions are no data for the loss.

        Examples
        --------
        >>> import numpy as np, nmd_lab as nmd
        >>> fit = nmd.decompose(np.outer([1.0, 2.0, 3.0], [1.0, 2.0]), 1, random_state=0)
        >>> fit.predicted_rows(np.array([1]), np.ones(2)).values.round(6)
        array([2., 4.])
        """
        if not self.loss.smallest_at_x:
            raise ValueError(
                f"loss={self.loss!r} has no prediction that could stand for data: give old=, some "
                "earlier rows of X."
            )
        columns = np.flatnonzero(shares > 0)
        k, n_own = len(rows), columns.size
        values = self.at(np.repeat(rows, n_own), np.tile(columns, k))
        return SparseObservations(
            values.astype(self.W.dtype, copy=False),
            None if self.model.absent_are_zeros else np.tile(shares[columns], k),
            np.arange(k + 1) * n_own,
            np.tile(columns, k),
            Labels.plain((k, self.shape[1])),
            self.model.absent_are_zeros,
        )


def sweep(
    model: FittedModel,
    observations: SparseObservations,
    row_weights: NDArray[np.float64],
    sweeps: int,
    *,
    threads: int | None = None,
) -> Swept:
    """Solve for W and H in turn.

    Parameters
    ----------
    model : FittedModel
        Model with the H to begin with.
    observations : SparseObservations
        Rows, with the columns of the model.
    row_weights : ndarray (k,)
        Factor of the loss of each row in the problem of H.
    sweeps : int
        Number of times.
    threads : int, optional
        Number of threads; by default all.
    """
    own = model._replace(labels=observations.labels)
    W, row_offsets = fold_rows(own, observations, threads=threads)
    for _ in range(sweeps):
        own = solve_columns(own, W, row_offsets, observations, row_weights, threads=threads)
        found = fold_rows(own, observations, threads=threads)
        W, row_offsets = _better_rows(own, (W, row_offsets), found, observations)
    return Swept(own._replace(labels=model.labels), W, row_offsets)


Rows = tuple[FloatArray, FloatArray | None]
"""Rows of W, and their offsets."""


def _better_rows(
    model: FittedModel, before: Rows, found: Rows, observations: SparseObservations
) -> Rows:
    """Return, for each row, that of two with the lower objective."""
    both = [objectives(model, *rows, observations, 1) for rows in (before, found)]
    if both[0] is None or both[1] is None:
        return found
    better = both[1] <= both[0]
    W = np.where(better[:, None], found[0], before[0])
    if found[1] is None or before[1] is None:
        return W, None
    return W, np.where(better, found[1], before[1])
