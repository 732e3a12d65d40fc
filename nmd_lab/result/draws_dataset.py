"""Draws with the labels of X as one Dataset, in memory and for a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import logsumexp

from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.data.observations import Observations

from .convergence import PosteriorDiagnostics, moments_in_draws
from .draws import CHAIN, CUT, DRAW, GROUP, LIMIT, LIMITS, PART, PROBE, SWEEP, TINY, Drawn
from .entries import entries_of
from .serialization import Description, Known, described, fields_of_result

VARIABLES = (
    *("W", "H", "row_offsets", "column_offsets", "rho", "beta", "cut_points"),
    *("row_mean", "row_precision", "row_share", "row_group", "member"),
    *("spread", "temperature", "frequency"),
)
"""Variables of the draws; offsets, beta, cut points and groups where the model has them."""

TRACE = ("log_likelihood", "prediction")
"""Variables of the trace."""

PROBES = ("probe_row", "probe_column")
"""Coordinates of the trace: positions of the entries whose predictions it has."""

TAKEN = {
    CHAIN,
    DRAW,
    SWEEP,
    PROBE,
    CUT,
    PART,
    PART + "_",
    GROUP,
    LIMIT,
    COMPONENT,
    *LIMITS,
    *VARIABLES,
    *TRACE,
    *PROBES,
}
"""Names that dimensions and coordinates of X do not have in the draws."""


def label_draws(labels: Labels, arrays: dict[str, Any], *, by_column: bool) -> xr.Dataset:
    """Return the draws as a Dataset with the labels of X, without copies of the factors.

    Noise levels, if there are several, are those of the columns.
    """
    renamed = labels.rename(labels.clashes(TAKEN))
    sizes = dict(zip(renamed.dims, renamed.shape, strict=True))
    shares = arrays.get("row_share")
    sizes[GROUP] = 1 if shares is None else shares.shape[-1]
    outer = arrays["W"].shape[:2]
    of_levels = renamed.columns if by_column else ()
    dims = {
        "W": (*renamed.rows, COMPONENT),
        "H": (*renamed.columns, COMPONENT),
        "row_offsets": renamed.rows,
        "column_offsets": renamed.columns,
        "rho": of_levels,
        "beta": of_levels,
        "cut_points": (*of_levels, CUT),
        "row_mean": (GROUP, PART),
        "row_precision": (GROUP, PART, PART + "_"),
        "row_share": (GROUP,),
        "row_group": renamed.rows,
        "member": (),
        "spread": (),
        "temperature": of_levels,
        "frequency": of_levels,
    }
    variables = {}
    for name in VARIABLES:
        if (array := arrays.get(name)) is None:
            continue
        along = dims.get(name, ())
        shape = [sizes.get(dim, array.shape[-1]) for dim in along]
        variables[name] = (CHAIN, DRAW, *along), array.reshape(*outer, *shape)
    dataset = xr.Dataset(variables)
    dataset["H"] = dataset["H"].transpose(CHAIN, DRAW, COMPONENT, *renamed.columns)
    counts = {dim: np.arange(dataset.sizes[dim]) for dim in (CHAIN, DRAW, COMPONENT)}
    return dataset.assign_coords(renamed.coords_along(*map(str, dataset.dims))).assign_coords(
        counts
    )


def label_trace(
    log_likelihood: Any, predictions: Any, probe_rows: Any, probe_columns: Any
) -> xr.Dataset:
    """Return what was recorded at each sweep, (chain, sweep) and (chain, sweep, probe)."""
    trace = xr.Dataset({"log_likelihood": ((CHAIN, SWEEP), np.asarray(log_likelihood))})
    if predictions is not None:
        trace["prediction"] = (CHAIN, SWEEP, PROBE), np.asarray(predictions)
        positions = (np.asarray(probe_rows), np.asarray(probe_columns))
        trace = trace.assign_coords(
            {name: (PROBE, at) for name, at in zip(PROBES, positions, strict=True)}
        )
    return trace.assign_coords({dim: np.arange(trace.sizes[dim]) for dim in (CHAIN, SWEEP)})


def limits_of(observations: Observations) -> xr.Dataset | None:
    """Return the entries with limits, None without any."""
    sparse = observations.as_sparse()
    if sparse.limits is None:
        return None
    at = np.flatnonzero(sparse.limits.codes)
    limits, x = sparse.limits.at(at), sparse.values[at]
    uppers = x if limits.uppers is None else limits.uppers
    arrays = sparse.rows[at], sparse.indices[at], limits.codes, x, uppers
    return xr.Dataset({name: (LIMIT, array) for name, array in zip(LIMITS, arrays, strict=True)})


POSTERIOR = "posterior"
"""Value of "kind" in the description of a posterior."""


def to_dataset(posterior: Drawn) -> xr.Dataset:
    """Return all fields as one Dataset; ``attrs["nmd_lab"]`` has the plain values, as JSON."""
    labels = posterior._labels
    renamed = labels.clashes(TAKEN)
    labels = labels.rename(renamed)
    # As in memory, where a row of H is a column of X.
    H = posterior.draws["H"].transpose(CHAIN, DRAW, *labels.columns, COMPONENT)
    dataset = posterior.draws.assign(H=H).merge(posterior.trace)
    dataset = dataset if posterior._limits is None else dataset.merge(posterior._limits)
    about = {"kind": POSTERIOR, "noise": posterior.noise, "levels": posterior.levels}
    return described(posterior, dataset, labels, renamed, mean=posterior.mean, **about)


def fields_of_posterior(
    dataset: xr.Dataset, description: Description, known: Known
) -> dict[str, Any]:
    """Return the fields of a `Posterior` from a Dataset of `to_dataset`."""
    counts = [CHAIN, DRAW, SWEEP, COMPONENT, *PROBES]
    common = fields_of_result(dataset, counts, description, known)
    labels, kinds = common.pop("labels"), common.pop("kinds")
    plain = dataset.drop_attrs(deep=False)
    draws = plain[["W", "H", "rho", *(name for name in VARIABLES[2:] if name in dataset)]]
    columns = labels.rename(labels.clashes(TAKEN)).columns
    draws["H"] = draws["H"].transpose(CHAIN, DRAW, COMPONENT, *columns)
    trace = plain[[name for name in TRACE if name in dataset]]
    trace = trace.drop_vars(set(trace.coords) - {CHAIN, SWEEP, *PROBES})
    noise, levels = description["noise"], description["levels"]
    return common | {
        "_labels": labels,
        "_kinds": kinds,
        "_limits": plain[list(LIMITS)] if LIMITS[0] in plain else None,
        "noise": noise if isinstance(noise, str) else tuple(noise),
        "draws": draws,
        "trace": trace,
        "mean": description["mean"],
        "levels": None if levels is None else tuple(levels),
    }


def to_datatree(posterior: PosteriorDiagnostics, held_out: Any, *, factors: bool) -> xr.DataTree:
    """Return the groups that ArviZ expects; see `Posterior.to_datatree`."""
    drawn = _identified(posterior)
    if factors:
        drawn = drawn.merge(posterior.draws[["W", "H"]])
    trace = posterior.trace[["log_likelihood"]].rename({SWEEP: DRAW, "log_likelihood": "lp"})
    groups = {"posterior": drawn, "sample_stats": trace.drop_vars(PROBES, errors="ignore")}
    if held_out is not None:
        groups |= _observed_cells(posterior, held_out)
    return xr.DataTree.from_dict(groups, name=posterior._labels.name)


def _identified(posterior: PosteriorDiagnostics) -> xr.Dataset:
    """Return singular values, predictions, noise levels and cut points, with a label for each."""
    rows, columns = _line_names(posterior._labels)
    probes = [posterior.trace[name].values for name in PROBES if name in posterior.trace.coords]
    i, j = np.unique(np.reshape(probes, (2, -1)).astype(np.intp), axis=1)
    means = np.moveaxis(moments_in_draws(posterior, i, j)[0], -1, 0)
    cells = (f"{rows[a]}, {columns[b]}" for a, b in zip(i, j, strict=True))
    found: dict[str, dict[str, Any]] = {"prediction": dict(zip(cells, means, strict=True))}
    found |= {"noise": {}, "precision": {}, "cut_point": {}}
    names = ["all"] if posterior._kinds is None else columns
    for position, (name, kind) in enumerate(zip(names, posterior._noises, strict=True)):
        noise = posterior._noise_of(position)
        if kind != "ordinal":
            found["noise"][name] = noise.sd
        elif noise.cuts is not None:  # the first one is fixed
            numbered = enumerate(noise.cuts.T, 1)
            found["cut_point"] |= {f"{name}, {k}": cut for k, cut in numbered if np.ptp(cut)}
        if kind == "after" and noise.beta is not None:
            found["precision"][name] = noise.beta
    dataset: xr.Dataset = posterior.singular_values.reset_coords("effective_rank")
    for name, by_label in found.items():
        if by_label:
            draws = [np.reshape(each, posterior.draws.W.shape[:2]) for each in by_label.values()]
            dim = f"{name}_of"
            dataset[name] = (CHAIN, DRAW, dim), np.stack(draws, axis=-1)
            dataset = dataset.assign_coords({dim: list(by_label)})
    return dataset


def _observed_cells(posterior: Drawn, X: Any) -> dict[str, xr.Dataset]:
    """Return the observed cells of data, new observations of them, and their log-likelihood.

    Each column of a table has a variable of its own, since a plot overlays the cells of a variable.
    """
    labels, rng, outer = posterior._labels, np.random.default_rng(0), posterior.draws.W.shape[:2]
    entries = entries_of(labels, X, None, None, posterior._owner)
    assert entries.data is not None
    values = entries.data.observations.entries().values.astype(np.float64)
    (rows, columns), predictives = _line_names(labels), posterior._predictives
    observed, drawn, logs, cells = {}, {}, [], []
    counts, coords = {dim: posterior.draws[dim] for dim in (CHAIN, DRAW)}, {}
    for name, positions in _variables(posterior).items():
        is_class = posterior._has_indicators(positions)
        at = np.flatnonzero(np.isin(entries.j, positions[:1] if is_class else positions))
        i, j, x = entries.i[at], entries.j[at], values[at]
        if not at.size:
            continue
        if is_class:
            x = values[at[:, None] + np.arange(positions.size)].argmax(axis=1)
            shares = posterior._shares_in_draws(i, positions)
            logs.append(np.log(shares[:, np.arange(x.size), x]))
            below = np.cumsum(shares, axis=2)[..., :-1]
            new = np.sum(below < rng.random((*below.shape[:2], 1)), axis=2)
        else:
            linear = posterior._drawn_at(i, j)
            ((predictive, _, v),) = posterior._by_noise(predictives, j, linear)
            each = predictive.log_densities(v, x).reshape(-1, *v.shape)
            logs.append(logsumexp(each, axis=0) - np.log(len(each)))
            new = np.stack([predictive.of_draw(d).draw(u, rng) for d, u in enumerate(v)])
        dim = f"{name}_dim_0"
        coords[dim] = [rows[k] for k in i]
        observed[name], drawn[name] = (dim, x), ((CHAIN, DRAW, dim), new.reshape(*outer, -1))
        cells += [f"{rows[a]}, {columns[b]}" for a, b in zip(i, j, strict=True)]
    likelihood = np.maximum(np.concatenate(logs, axis=1), np.log(TINY)).reshape(*outer, -1)
    of_cells = {"cells": ((CHAIN, DRAW, "cell"), likelihood)}
    return {
        "observed_data": xr.Dataset(observed, coords),
        "posterior_predictive": xr.Dataset(drawn, {**counts, **coords}),
        "log_likelihood": xr.Dataset(of_cells, {**counts, "cell": cells}),
    }


def _line_names(labels: Labels) -> tuple[list[str], list[str]]:
    """Return the labels of rows and columns of the matrix as text."""
    rows, columns = ([str(each) for each in labels.flat(d)] for d in (labels.rows, labels.columns))
    return rows, columns


def _variables(posterior: Drawn) -> dict[str, NDArray[np.intp]]:
    """Return the columns of the matrix of each variable for ArviZ; paths of a tree have a /."""
    labels = posterior._labels
    if posterior._kinds is None:
        return {"X": np.arange(labels.matrix_shape[1])}
    if labels.table is None:
        named = [(name, np.array([k])) for k, name in enumerate(_line_names(labels)[1])]
    else:
        named = [(str(column.name), at) for column, at in labels.table.blocks()]
    return {name.replace("/", " per "): at for name, at in named}
