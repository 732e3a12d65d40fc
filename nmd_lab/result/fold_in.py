"""New rows: W of a fit for them, also for blocks of a Dask array, and the draws of a posterior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self, TypeVar, cast

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from nmd_lab._runtime.checks import as_generator, check_no_fit
from nmd_lab.data.entries import FloatArray
from nmd_lab.data.inputs import NO_LIMITS, GivenLimits, observe, observe_dense
from nmd_lab.data.labels import COMPONENT, Labels, pandas_of
from nmd_lab.data.matching import MatchedData, first_few, known_columns, row_keys
from nmd_lab.data.observations import Observations
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.data.split import labels_of_new_rows, without_rows
from nmd_lab.model.fitted_values import RowModel
from nmd_lab.model.losses import Loss
from nmd_lab.model.model import Model, make_model
from nmd_lab.model.ordinal import Ordinal
from nmd_lab.problem.scaling import OffsetColumns, Scaling

from .draws import CHAIN, DRAW
from .draws_dataset import label_draws
from .entries import Unknown, check_unknown, index_of
from .intervals import PosteriorPredictions


def fold_in(
    labels: Labels, model: RowModel, X: Any, unknown: str, **arguments: Any
) -> xr.DataArray:
    """Return the labelled rows of W for new rows of X; see `Decomposition.fold_in`."""
    observed = observe_rows(labels, X, absent_are_zeros=model.absent_are_zeros, **arguments)
    observations, columns = match_rows(labels, observed, unknown)
    W, offsets = fold_rows(model, observations, columns)
    labelled = observed.labels.label_rows(W)
    if offsets is None:
        return labelled
    per_row = observed.labels.label_rows(offsets[:, None]).isel({COMPONENT: 0}, drop=True)
    return labelled.assign_coords(offset=per_row)


def observe_rows(
    labels: Labels,
    X: Any,
    *,
    observed: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    limits: GivenLimits = NO_LIMITS,
    absent_are_zeros: bool = False,
) -> Observations:
    """Return the observations of new rows, which have the column dimensions of a fit."""
    check_no_fit("X", X)
    X = pandas_of(X)
    if getattr(X, "ndim", 2) == 1 and hasattr(X, "to_frame"):  # a pandas.Series is one row
        index = index_of(labels, "columns")
        X = X.reindex(index) if X.empty and index is not None else X
        X = X.to_frame().T
    sample_dims = None
    if isinstance(X, xr.DataArray):
        others = [str(dim) for dim in X.dims if dim not in labels.columns]
        if X.ndim > 2 or len(others) == 1:
            sample_dims = others
    return observe(
        X,
        observed=observed,
        weights=weights,
        sample_dims=sample_dims,
        table=labels.table,
        limits=limits,
        absent_are_zeros=absent_are_zeros,
        may_be_empty=True,
    )


def match_rows(
    labels: Labels, observations: Observations, unknown: str
) -> tuple[Observations, NDArray[np.intp]]:
    """Return new rows without unknown columns, and the position in the fit of each other column."""
    of_rows = observations.labels
    columns = known_columns(labels, observations, unknown)
    in_fit = columns >= 0
    if not in_fit.all():
        rows = observations.as_sparse()
        known = rows.select(in_fit[rows.indices])
        position = (np.cumsum(in_fit) - 1).astype(known.indices.dtype)
        labels = Labels.plain((rows.shape[0], int(in_fit.sum())))
        observations = replace(known, indices=position[known.indices], labels=labels)
    empty = np.flatnonzero(observations.counts(1) == 0)
    if unknown == "error" and empty.size:
        places = of_rows.at_positions(of_rows.rows, empty).values()
        names = next(iter(places)) if len(places) == 1 else zip(*places, strict=True)
        raise ValueError(
            f"X has no observed entry in the rows {first_few(names)}: leave them out, or give "
            "unknown='offsets'."
        )
    return observations, columns[in_fit]


def fold_rows(
    model: RowModel,
    observations: Observations,
    columns: NDArray[np.intp] | None = None,
    *,
    threads: int | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    """Return W (m, rank) of new rows, and their offsets (m,) if the fit has row offsets."""
    from nmd_lab.fit.new_rows import solve_new_rows

    columns = np.arange(model.H.shape[1]) if columns is None else columns
    check_values(model.model, columns, observations)
    return solve_new_rows(model, observations, columns, threads=threads)


def check_values(model: Model, columns: NDArray[np.intp], observations: Observations) -> None:
    """Raise ValueError for values that the loss, or that of their column, does not define."""
    x, weights = observations.observed()
    if not model.is_mixed:
        _check(model.loss, x, weights)
        return
    if not model.of_columns:
        raise ValueError(
            "The fit has a loss for each entry, so that new rows have none: fit with one for each "
            "column."
        )
    _, j, x = observations.entries()
    which, x = model.index_at(0, columns[j]), x.astype(np.float64)
    for position in np.unique(which):
        at = which == position
        _check(model.column_models[position].loss, x[at], weights[at])


def _check(loss: Loss, x: FloatArray, weights: FloatArray) -> None:
    """Raise ValueError for values that a loss does not define."""
    if x.size:
        loss.check_data(float(x.min()), float(x.max()))
        loss.for_data(x, weights)


def is_dask_array(X: Any) -> bool:
    """Return whether X is an array of Dask."""
    return type(X).__module__.startswith("dask.array")


def fold_in_blocks(model: RowModel, X: Any) -> xr.DataArray:
    """Return the rows of W for a Dask array of new rows, as a DataArray over a Dask array."""
    rank, n = model.H.shape
    if X.ndim != 2 or X.shape[1] != n:
        raise ValueError(f"X has shape {X.shape}: give rows of the {n} columns of the fit.")
    has_offsets = model.offsets.rows is not None
    width = rank + int(has_offsets)
    lean = model._replace(offsets=model.offsets._replace(rows=np.zeros(0) if has_offsets else None))
    blocks = X.rechunk({1: -1})
    rows = blocks.map_blocks(
        rows_of_block, lean, width, dtype=model.H.dtype, chunks=(blocks.chunks[0], (width,))
    )
    labels = Labels.plain((X.shape[0], n))
    labelled = xr.DataArray(rows[:, :rank], dims=(*labels.rows, COMPONENT))
    if has_offsets:
        labelled = labelled.assign_coords(offset=(labels.rows, rows[:, rank]))
    return labelled


def rows_of_block(block: Any, model: RowModel, width: int) -> FloatArray:
    """Return the rows of W for a block, with their offsets in a last column if there are any."""
    out = np.zeros((len(block), width), model.H.dtype)
    observations = observe_dense(block, dtype=model.H.dtype, may_be_empty=True)
    if observations.n_observed:
        W, offsets = fold_rows(model, observations)
        out[:, : W.shape[1]] = W
        if offsets is not None:
            out[:, -1] = offsets
    return out


SHARED = {"rho", "beta", "cut_points", "row_mean", "row_precision", "row_share"}
SHARED |= {"member", "spread", "temperature", "frequency"}
"""Draws that are the same for new rows."""

NO_ROWS = 1e-250
"""Largest share of a group that a member of an ensemble does not have."""


class NewRowsOfPosterior(PosteriorPredictions):
    """Rows that the chains have not seen."""

    def fold_in(
        self,
        X: Any,
        *,
        observed: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        unknown: Unknown = "error",
        random_state: Any = 0,
    ) -> Self:
        """Return the posterior of new rows, given the draws of H; these do not learn from them.

        The draws of a row depend on its entries, and not on its place or on the other rows: equal
        rows have equal draws.

        Parameters
        ----------
        X : array_like, DataFrame, DataArray, Series or scipy.sparse matrix
            New rows, with the columns of this posterior: all, or with labels some.
        observed, weights : array_like, optional
            Mask of the observed entries, and weights.
        unknown : {"error", "offsets"}, default "error"
            What is done with rows without entries and with columns that the fit does not have.
            "error": a sentence names them.  "offsets": the row is drawn from its prior, and
            unknown columns are left out.
        random_state : int, Generator or None, default 0
            Seed.

        Returns
        -------
        Posterior
            Draws of the new rows; a draw has the same H as that of this posterior.

        Raises
        ------
        ValueError, TypeError
            If X is invalid, or has rows without entries or other columns.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine[:150], 3, draws=50, random_state=0)
        >>> new = posterior.fold_in(wine[150:].assign(alcohol=float("nan")))
        >>> low, high = new.predict_interval(177, "alcohol")[0]
        >>> (
        ...     bool(low < 13.5 < high),
        ...     bool(new.predict_std(177, "alcohol") > new.predict_std(177, "ash")),
        ... )
        (True, True)
        """
        check_unknown(unknown)
        new_data = observe_rows(self._labels, X, observed=observed, weights=weights)
        return self._of_new_rows(new_data, unknown, random_state)

    def _of_new_rows(
        self,
        new_data: Observations,
        unknown: Unknown = "offsets",
        random_state: Any = 0,
        *,
        numbered: bool = False,
    ) -> Self:
        """Return the posterior of new rows; equal ones have draws of their own if numbered."""
        observations, columns = match_rows(self._labels, new_data, unknown)
        check_values(self._model, columns, observations)
        m, n = observations.shape[0], self._shape[1]
        seen = MatchedData(observations, np.arange(m), columns).as_sparse(Labels.plain((m, n)))
        seed = int(as_generator(random_state).integers(2**62))
        rows = self._draw_rows(seen, row_keys(seen, numbered=numbered), seed)
        labels = labels_of_new_rows(self._labels, new_data.labels)
        return self._with_rows(labels, rows, new_rows=m)

    def _with_rows(self, labels: Labels, vectors: FloatArray, **parameters: Any) -> Self:
        """Return the posterior of other rows, given their vectors (draws, m, rank [+ 1])."""
        outer = self.draws.sizes[CHAIN], self.draws.sizes[DRAW]
        rows = vectors.reshape(*outer, *vectors.shape[1:])
        _, H, _, column_offsets = self._stacked()
        arrays = {name: self.draws[name].values for name in SHARED & set(self.draws)}
        arrays |= {"W": rows[..., : self.rank], "H": H.reshape(*outer, *H.shape[1:])}
        if "row_offsets" in self.draws:
            arrays["row_offsets"] = rows[..., self.rank]
        if column_offsets is not None:
            arrays["column_offsets"] = column_offsets.reshape(*outer, -1)
        posterior: Self = replace(
            cast(Any, self),
            _labels=labels,
            _limits=None,
            draws=label_draws(labels, arrays, by_column=self._kinds is not None),
            trace=self.trace[["log_likelihood"]],
            parameters=self.parameters | parameters,
        )
        return posterior

    def _unknown_row(self) -> Self:
        """Return the posterior of a row of which nothing is observed, drawn from its prior."""
        nothing = observe_dense(np.full((1, self._shape[1]), np.nan), may_be_empty=True)
        return self._of_new_rows(replace(nothing, labels=without_rows(self._labels, 1)))

    @property
    def _model(self) -> Model:
        """The model of the columns."""
        if self.noise == "ordinal":
            return make_model("identity", Ordinal(cast(Any, self.levels)))
        return super()._model

    def _draw_rows(
        self, observations: SparseObservations, keys: NDArray[np.int64], seed: int
    ) -> FloatArray:
        """Return draws of new rows."""
        from nmd_lab.sampler.new_rows import draw_new_rows

        both = "row_offsets" in self.draws, "column_offsets" in self.draws
        kind = {(True, True): "both", (True, False): "rows", (False, True): "columns"}.get(both)
        drawn = draw_new_rows(
            observations,
            self._H_draws(observations.dtype),
            seed,
            row_keys=keys,
            scaling=Scaling(self._model),
            noises=tuple("gaussian" if noise == "clipped" else noise for noise in self._noises),
            rank=self.rank,
            offset_columns=OffsetColumns(kind or "global", self.mean),
        )
        return np.stack([vectors.astype(self.draws["W"].dtype) for vectors in drawn])

    def _H_draws(self, dtype: Any) -> Iterator[Any]:
        from nmd_lab.sampler.new_rows import DrawOfH
        from nmd_lab.sampler.priors import RowPrior

        _, H, _, of_columns = self._stacked()
        rho, beta, cuts = (self._flat(name) for name in ("rho", "beta", "cut_points"))
        shares, means, precisions = self._row_prior
        assert rho is not None
        n_kinds, member = rho.shape[1], self._flat("member")
        for s in range(self._n_draws):
            some = shares[s] > NO_ROWS
            columns = H[s] if of_columns is None else np.column_stack([H[s], of_columns[s]])
            yield DrawOfH(
                columns.astype(dtype),
                rho[s].astype(np.float64),
                np.ones(n_kinds) if beta is None else beta[s].astype(np.float64),
                RowPrior(means[s, some], precisions[s, some], shares[s, some].astype(np.float64)),
                None if cuts is None else cuts[s].reshape(n_kinds, -1),
                (s // self.draws.sizes[DRAW], 0 if member is None else int(member[s, 0])),
            )


def at_rows(posterior: P, positions: NDArray[np.integer], others: P | None = None) -> P:
    """Return the posterior of some rows; where a position is -1, of the next row of others."""
    rows = posterior._row_vectors[:, positions]
    if others is not None:
        rows[:, positions < 0] = others._row_vectors
    return posterior._with_rows(without_rows(posterior._labels, positions.size), rows)


P = TypeVar("P", bound=NewRowsOfPosterior)
