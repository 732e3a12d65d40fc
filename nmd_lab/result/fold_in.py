"""New rows: W of a fit for them, also for blocks of a Dask array, and the draws of a posterior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._runtime.checks import as_generator, many
from nmd_lab.data.entries import EntryLimits, FloatArray
from nmd_lab.data.folds import labels_of_new_rows
from nmd_lab.data.inputs import NO_LIMITS, GivenLimits, observe_dense, with_limits
from nmd_lab.data.labels import COMPONENT, Labels, index_labels, pandas_of
from nmd_lab.data.matching import (
    MatchedData,
    RowPlaces,
    first_few,
    is_default,
    known_positions,
    match,
    matched,
    names_of,
    observe_like,
    row_keys,
    row_places,
)
from nmd_lab.data.observations import Observations
from nmd_lab.data.typed_table import plain_label
from nmd_lab.model.column_model import LimitModel
from nmd_lab.model.fitted_values import RowModel
from nmd_lab.model.losses import Loss
from nmd_lab.model.model import Model

from .draws import LIMITS, N_FILLING_DRAWS, Draws, Positions
from .entries import check_unknown, index_of, refuse_sparse


def fold_in(
    labels: Labels, model: RowModel, X: Any, unknown: str, limits: GivenLimits, **options: Any
) -> xr.DataArray:
    """Return the labelled rows of W for new rows of X; see `Decomposition.fold_in`."""
    check_unknown(unknown)
    if type(X).__module__.startswith("dask.array"):
        if limits or any(each is not None for each in options.values()):
            raise ValueError("X is an array of Dask: give NaN where an entry is missing.")
        return fold_in_blocks(model, X)
    options |= {"limits": limits, "absent_are_zeros": model.absent_are_zeros}
    observed = observe_rows(labels, X, **options)
    observations, columns = match_rows(labels, observed, unknown)
    W, offsets = fold_rows(model, observations, columns)
    labelled = observed.labels.label_rows(W)
    if offsets is None:
        return labelled
    return labelled.assign_coords(offset=observed.labels.labelled(offsets, observed.labels.rows))


def row_model(fit: Any) -> RowModel:
    """Return the parts of a fit that determine W for new rows."""
    alpha = fit.parameters.get("alpha", 0.0)
    offset_alpha = fit.parameters.get("offset_alpha", alpha)
    extra = fit.parameters.get("constraint_ridges", (0.0, 0.0))[0]
    _, H = fit._factors
    smallest = fit.parameters.get("smallest_value", LimitModel().smallest)
    limits = LimitModel(float(smallest), float(fit.parameters.get("limit_noise", 0.0)))
    return RowModel(
        fit._model.with_limits(limits),
        H,
        fit.offsets,
        alpha=float(alpha + extra),
        offset_alpha=float(offset_alpha),
        epsilon=float(fit.parameters.get("epsilon", 0.0)),
        constraint=fit.parameters.get("w_constraint"),
        absent_are_zeros=bool(fit.parameters.get("absent_are_zeros", False)),
    )


def observe_rows(labels: Labels, X: Any, **options: Any) -> Observations:
    """Return the observations of new rows, which have the column dimensions of a fit."""
    X = pandas_of(X)
    if getattr(X, "ndim", 2) == 1 and hasattr(X, "to_frame"):  # a pandas.Series is one row
        index = index_of(labels, "columns")
        X = X.reindex(index) if X.empty and index is not None else X
        X = X.to_frame().T
    return observe_like(labels, X, may_be_empty=True, **options)


def match_rows(
    labels: Labels, observations: Observations, unknown: str
) -> tuple[Observations, NDArray[np.intp]]:
    """Return new rows without unknown columns, and the position in the fit of each other column."""
    of_rows = observations.labels
    columns = known_positions(observations.labels, labels, "columns", unknown=unknown)
    in_fit = columns >= 0
    if not in_fit.all():
        rows = observations.as_sparse()
        known = rows.select(in_fit[rows.indices])
        position = (np.cumsum(in_fit) - 1).astype(known.indices.dtype)
        labels = Labels.plain((rows.shape[0], int(in_fit.sum())))
        observations = replace(known, indices=position[known.indices], labels=labels)
    empty = np.flatnonzero(observations.counts(1) == 0)
    if unknown == "error" and empty.size:
        names = first_few(of_rows.flat(of_rows.rows)[empty])
        raise ValueError(
            f"X has no observed entry in the rows {names}: leave them out, or give "
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


def fold_in_blocks(model: RowModel, X: Any) -> xr.DataArray:
    """Return the rows of W for a Dask array of new rows, as a DataArray over a Dask array."""
    rank, n = model.H.shape
    if X.ndim != 2 or X.shape[1] != n:
        raise ValueError(f"X has shape {X.shape}: give rows of the {n} columns of the fit.")
    has_offsets = model.offsets.rows is not None
    width = rank + int(has_offsets)
    blocks = X.rechunk({1: -1})
    rows = blocks.map_blocks(
        rows_of_block, model, width, dtype=model.H.dtype, chunks=(blocks.chunks[0], (width,))
    )
    labelled = xr.DataArray(rows[:, :rank], dims=("row", COMPONENT))
    if has_offsets:
        labelled = labelled.assign_coords(offset=("row", rows[:, rank]))
    return labelled


def rows_of_block(block: Any, model: RowModel, width: int) -> FloatArray:
    """Return the rows of W for a block, with their offsets in a last column if there are any."""
    out = np.zeros((len(block), width), model.H.dtype)
    observations = observe_dense(block, dtype=model.H.dtype, may_be_empty=True)
    if observations.n_observed:
        found = fold_rows(model, observations)
        out[...] = np.column_stack([each for each in found if each is not None])
    return out


def rows_of(
    posterior: Any,
    X: Any,
    limits: GivenLimits = NO_LIMITS,
    enough: int = N_FILLING_DRAWS,
    *,
    numbered: bool = False,
) -> tuple[Labels, Draws, MatchedData]:
    """Return the labels and draws of the rows of X, and X with their positions among these.

    They are all rows of the fitted data, or new ones with so many draws of their own: also for
    equal ones, if they are numbered.
    """
    labels, draws = posterior._labels, posterior._draws
    new, data = data_of(posterior, X, limits)
    if data is not None:
        return labels, draws, data
    of_new = draw_new_rows(labels, draws.evenly(enough), new, numbered=numbered)
    new_labels = labels_of_new_rows(labels, new.labels)
    return new_labels, of_new, matched(new_labels, new, "the posterior")


def data_of(
    posterior: Any, X: Any, limits: GivenLimits = NO_LIMITS
) -> tuple[Observations, MatchedData | None]:
    """Return X as observations, and matched with the rows of a posterior; None for new rows."""
    refuse_sparse(X)
    labels, known = posterior._labels, posterior._limits
    new = observe_like(labels, X, may_be_empty=True)
    try:
        rows = match(new.labels, labels, "rows")
    except ValueError:  # a label comes twice
        rows = None
    if rows is not None and np.all(rows >= 0):
        data = matched(labels, new, "the posterior")
        if limits:
            data = data._replace(observations=with_limits(data.observations, X, limits))
        elif known is not None:
            data = data._replace(observations=_with_known_limits(known, posterior._shape, data))
        return data.observations, data
    if limits:
        raise ValueError(
            "at_most= and at_least= go with rows of the fitted data, and X has new ones: give "
            "new rows NaN there."
        )
    return new, None


def _with_known_limits(
    limits: xr.Dataset, shape: tuple[int, int], data: MatchedData
) -> Observations:
    """Return data with the limits of the fit where they still have these as values."""
    observations, known = data.observations, np.zeros((3, *shape))
    rows, columns, *of_limits = (limits[name].values for name in LIMITS)
    known[:, rows, columns] = of_limits
    codes, values, uppers = known[:, data.rows[:, None], data.columns].reshape(3, -1)
    x = observations.to_array().ravel()
    is_limit = (codes > 0) & (x.astype(of_limits[1].dtype) == values)
    codes, uppers = np.where(is_limit, codes, 0), np.where(is_limit, uppers, x)
    found = EntryLimits(codes.astype(np.int8), uppers.astype(x.dtype))
    return replace(observations, limits=found)  # type: ignore[type-var]


def draw_new_rows(
    labels: Labels,
    draws: Draws,
    new: Observations,
    unknown: str = "offsets",
    random_state: Any = 0,
    *,
    numbered: bool = False,
    places: RowPlaces | None = None,
) -> Draws:
    """Return the draws of new rows; equal ones have draws of their own if they are numbered.

    Rows in an order need no entries of their own.  Their places are those of their labels, unless
    they are given.
    """
    from nmd_lab.sampler.chain import draw_new_rows as draw_rows
    from nmd_lab.sampler.ordered_rows import RowOrder

    if places is None and draws.places is not None:
        places = places_of_new_rows(labels, draws, new)
    observations, columns = match_rows(labels, new, unknown if places is None else "offsets")
    check_values(draws.model, columns, observations)
    m, n = observations.shape[0], draws.shape[1]
    more = 0 if places is None else draws.shape[0]  # fitted rows, behind the new ones
    seen = MatchedData(observations, np.arange(m), columns).as_sparse(Labels.plain((m + more, n)))
    both = "row_offsets" in draws.numbers, "column_offsets" in draws.numbers
    kind = {(True, True): "both", (True, False): "rows", (False, True): "columns"}.get(both)
    vectors = draw_rows(
        seen,
        _draws_of_H(draws, seen.dtype, in_order=places is not None),
        int(as_generator(random_state).integers(2**62)),
        row_keys=row_keys(seen, numbered=numbered or places is not None),
        model=draws.model,
        noises=tuple("gaussian" if noise == "clipped" else noise for noise in draws.noises),
        rank=draws.rank,
        offsets=(kind or "global", draws.mean),
        order=None if places is None else RowOrder.of(places, draws.places),
    )
    return draws.with_rows(np.stack([each.astype(draws.W.dtype) for each in vectors]), places)


def places_of_new_rows(labels: Labels, draws: Draws, new: Observations) -> RowPlaces:
    """Return the places of new rows in the order of the fitted ones, which have these labels.

    Rows without labels are those of the fit again.
    """
    if not draws.is_ordered_by_name:
        raise ValueError(
            "the places of new rows are not known, since order= was an array: give the name of a "
            "dimension, a level of the index or a column, or add empty rows before the fit."
        )
    assert draws.places is not None
    last = names_of(draws.order)[-1]
    sizes = {each.size(each.rows) for each in (labels, new.labels)}
    are_others = len(sizes) > 1 or not _is_unlabelled(labels, last)
    if last in labels.rows and are_others and _is_unlabelled(new.labels, last):
        raise ValueError(
            f"X has no labels along {last!r}, which order= places its rows by: give a DataFrame or "
            "a DataArray with labels."
        )
    period = 0 if draws.season is None else draws.season.shape[1]
    return row_places(new, draws.order).with_phases(draws.places, period)


def _is_unlabelled(labels: Labels, name: str) -> bool:
    """Return whether rows have no labels along a dimension but their positions."""
    index = labels.index(name) if name in labels.rows else None
    return index is None or is_default(name, index)


def unknown_row(draws: Draws) -> Draws:
    """Return the draws of a row of which nothing is observed, from its prior."""
    nothing = observe_dense(np.full((1, draws.shape[1]), np.nan), may_be_empty=True)
    return draw_new_rows(nothing.labels, replace(draws, places=None), nothing)


def _draws_of_H(draws: Draws, dtype: Any, *, in_order: bool) -> Iterator[Any]:
    from nmd_lab.sampler.priors import RowPrior

    numbers, (shares, means, precisions) = draws.numbers, draws.row_prior
    beta, cuts, member = (numbers.get(name) for name in ("beta", "cut_points", "member"))
    vectors, season = draws.row_vectors, draws.season
    n_kinds, of_chain = numbers["rho"].shape[1], len(draws) // draws.n_chains
    for s, columns in enumerate(draws.H):
        if "column_offsets" in numbers:
            columns = np.column_stack([columns, numbers["column_offsets"][s]])
        some = shares[s] > 1e-250  # a member of an ensemble has no share of the groups of others
        prior = RowPrior(means[s, some], precisions[s, some], shares[s, some].astype(np.float64))
        if in_order and numbers["phi"][s].any():
            prior = prior._replace(phi=numbers["phi"][s].astype(np.float64))
        taken = {
            "columns": columns.astype(dtype),
            "rho": numbers["rho"][s].astype(np.float64),
            "beta": np.ones(n_kinds) if beta is None else beta[s].astype(np.float64),
            "row_prior": prior,
            "season": season[s] if in_order and season is not None else None,
        }
        of_member = (s // of_chain, 0 if member is None else int(member[s, 0]))
        rows = vectors[s] if in_order else None
        yield of_member, rows, None if cuts is None else cuts[s].reshape(n_kinds, -1), taken


def at_rows(draws: Draws, positions: Positions, others: Draws | None = None) -> Draws:
    """Return the draws of some rows; where a position is -1, of the next row of others."""
    rows = draws.row_vectors[:, positions]
    places = None if draws.places is None else draws.places.at(positions)
    if others is not None:
        rows[:, positions < 0] = others.row_vectors
        if places is not None and others.places is not None:
            for mine, theirs in zip(places, others.places, strict=True):
                mine[positions < 0] = theirs
    return draws.with_rows(rows, places)


def append(fit: Any, rows: Any, **options: Any) -> Any:
    """Return a fit with new rows in it; see `Decomposition.append`."""
    labels = fit._labels
    if len(labels.rows) > 1:
        raise ValueError(f"the rows have the dimensions {labels.rows}: append() needs rows of one.")
    W = rows
    if not (isinstance(rows, xr.DataArray) and COMPONENT in rows.dims):  # rows of X
        W = fit.fold_in(rows, **options)
    matrix, offsets = _checked_rows(fit, W)
    labels = _with_rows(labels, W)
    own_W, H = fit._factors
    W = np.concatenate([own_W, matrix.astype(own_W.dtype)])
    more = int(fit.parameters.get("appended_rows", 0)) + len(matrix)
    return replace(
        fit,
        W=labels.label_rows(W),
        H=labels.label_columns(H),
        _labels=labels,
        offsets=fit.offsets._replace(rows=offsets),
        parameters={**fit.parameters, "appended_rows": more},
    )


def _checked_rows(
    fit: Any, W: xr.DataArray
) -> tuple[NDArray[np.floating], NDArray[np.floating] | None]:
    """Return new rows of W as a matrix, and all row offsets, None if the fit has none."""
    if W.ndim != 2 or W.sizes[COMPONENT] != fit.rank:
        raise ValueError(
            f"rows has the shape {dict(W.sizes)}: give rows of X, or what fold_in() of this fit "
            f"returned, with {many(fit.rank, 'component')}."
        )
    W = W.transpose(..., COMPONENT)
    if not np.all(np.isfinite(W.values)):
        raise ValueError("rows holds NaN or infinite weights: give what fold_in() returned.")
    if fit.offsets.rows is None:
        return W.values, None
    if "offset" not in W.coords:
        raise ValueError("rows has no coordinate 'offset': give what fold_in() returned.")
    new = W.coords["offset"].values.astype(fit.offsets.rows.dtype)
    return W.values, np.concatenate([fit.offsets.rows, new])


def _with_rows(labels: Labels, W: xr.DataArray) -> Labels:
    """Return the labels of a fit with those of new rows of W."""
    (dim,), (new_dim,) = labels.rows, [str(dim) for dim in W.dims if dim != COMPONENT]
    sizes, k = labels.sizes, W.sizes[new_dim]
    along = {name: c for name, c in labels.coords.coords.items() if dim in c.dims}
    coords = labels.coords.drop_vars(list(along))
    index = labels.coords.indexes.get(dim)
    if index is not None:
        more = index_labels(_more_labels(dim, index, new_dim, W), dim, taken=())[1]
        coords = coords.assign_coords(more)
    for name, coordinate in along.items():
        if coordinate.dims == (dim,) and name not in coords.coords:
            new = W.coords[name].values if name in W.coords else _missing(coordinate.values, k)
            values = np.concatenate([coordinate.values, new])
            coords = coords.assign_coords({name: (dim, values, coordinate.attrs)})
    sizes[dim] += k
    return replace(labels, shape=tuple(sizes.values()), coords=coords)


def _more_labels(dim: str, index: Any, new_dim: str, W: xr.DataArray) -> Any:
    """Return the row labels of a fit and of new rows, as one pandas.Index."""
    new, k = W.indexes.get(new_dim), W.sizes[new_dim]
    if new is None or is_default(new_dim, new):
        if not is_default(dim, index):
            raise ValueError(
                f"rows has no row labels, but the fit has labels along {dim!r}: give a DataFrame "
                "or a DataArray with labels of their own."
            )
        new = pd.RangeIndex(len(index), len(index) + k)
    if new.nlevels != index.nlevels:
        raise ValueError(
            f"rows has row labels of {new.nlevels} index levels: give the "
            f"{index.nlevels} of the fit."
        )
    repeated = new.isin(index) | new.duplicated()
    if repeated.any():
        label = new[int(np.argmax(repeated))]
        raise ValueError(
            f"rows has the row label {plain_label(label)!r}, which is there already: give each row "
            "a new one."
        )
    return index.append(new).set_names(index.names)


def _missing(values: NDArray[Any], size: int) -> NDArray[Any]:
    """Return so many missing values, of the type of these values."""
    if pd.api.types.infer_dtype(values.astype(object)) == "string":
        return np.full(size, "")
    return pd.Series(values[:0]).reindex(range(size)).to_numpy()
