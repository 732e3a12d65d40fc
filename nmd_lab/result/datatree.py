"""The draws of a posterior as the groups of a tree, as ArviZ expects them."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import logsumexp

from nmd_lab.data.labels import Labels

from .classes import TINY, choose, shares_in_draws
from .convergence import moments_in_draws
from .draws import CHAIN, DRAW, SWEEP, Draws
from .entries import entries_of
from .labelled_draws import PROBES


def to_datatree(posterior: Any, held_out: Any, *, factors: bool) -> xr.DataTree:
    """Return the groups that ArviZ expects; see `Posterior.to_datatree`."""
    drawn = _identified(posterior)
    if factors:
        drawn = drawn.merge(posterior.draws[["W", "H"]])
    trace = posterior.trace[["log_likelihood"]].rename({SWEEP: DRAW, "log_likelihood": "lp"})
    groups = {"posterior": drawn, "sample_stats": trace.drop_vars(PROBES, errors="ignore")}
    if held_out is not None:
        groups |= _observed_cells(posterior, held_out)
    return xr.DataTree.from_dict(groups, name=posterior._labels.name)


def _identified(posterior: Any) -> xr.Dataset:
    """Return singular values, predictions, noise levels and cut points, with a label for each."""
    (rows, columns), draws = _line_names(posterior._labels), posterior._draws
    probes = [posterior.trace[name].values for name in PROBES if name in posterior.trace.coords]
    i, j = np.unique(np.reshape(probes, (2, -1)).astype(np.intp), axis=1)
    means = np.moveaxis(moments_in_draws(draws, i, j)[0], -1, 0)
    cells = (f"{rows[a]}, {columns[b]}" for a, b in zip(i, j, strict=True))
    found: dict[str, dict[str, Any]] = {"prediction": dict(zip(cells, means, strict=True))}
    found |= {"noise": {}, "precision": {}, "cut_point": {}}
    names = columns if draws.model.is_mixed else ["all"]
    for position, (name, kind) in enumerate(zip(names, draws.noises, strict=True)):
        noise = draws.noise_of(position)
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
            each = [np.reshape(one, (draws.n_chains, -1)) for one in by_label.values()]
            dim = f"{name}_of"
            dataset[name] = (CHAIN, DRAW, dim), np.stack(each, axis=-1)
            dataset = dataset.assign_coords({dim: list(by_label)})
    return dataset


def _observed_cells(posterior: Any, X: Any) -> dict[str, xr.Dataset]:
    """Return the observed cells of data, new observations of them, and their log-likelihood.

    Each column of a table has a variable of its own, since a plot overlays the cells of a variable.
    """
    labels, rng, outer = posterior._labels, np.random.default_rng(0), posterior.draws.W.shape[:2]
    entries, draws = entries_of(labels, X, None, None, posterior._owner), posterior._draws
    assert entries.data is not None
    values = entries.data.observations.entries().values.astype(np.float64)
    rows, columns = _line_names(labels)
    observed, drawn, logs, cells = {}, {}, [], []
    counts, coords = {dim: posterior.draws[dim] for dim in (CHAIN, DRAW)}, {}
    for name, positions in _variables(labels, draws).items():
        is_class = draws.has_indicators(positions)
        at = np.flatnonzero(np.isin(entries.j, positions[:1] if is_class else positions))
        i, j, x = entries.i[at], entries.j[at], values[at]
        if not at.size:
            continue
        if is_class:
            x = values[at[:, None] + np.arange(positions.size)].argmax(axis=1)
            shares = shares_in_draws(draws, i, positions)
            logs.append(np.log(shares[:, np.arange(x.size), x]))
            new = choose(shares, rng)
        else:
            ((predictive, _, v),) = draws.by_noise(j, draws.drawn_at(i, j))
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


def _variables(labels: Labels, draws: Draws) -> dict[str, NDArray[np.intp]]:
    """Return the columns of the matrix of each variable for ArviZ; paths of a tree have a /."""
    if not draws.model.is_mixed:
        return {"X": np.arange(labels.matrix_shape[1])}
    if labels.table is None:
        named = [(name, np.array([k])) for k, name in enumerate(_line_names(labels)[1])]
    else:
        named = [(str(column.name), at) for column, at in labels.table.blocks()]
    return {name.replace("/", " per "): at for name, at in named}
