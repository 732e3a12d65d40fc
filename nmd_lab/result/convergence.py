"""Convergence of chains, singular values, effective rank, and draws as ArviZ expects them.

Split R-hat and effective sample size are the rank-normalised versions: A. Vehtari et al.,
"Rank-normalization, folding, and localization", Bayesian Analysis, 2021, as ArviZ has them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri
from scipy.stats import entropy, rankdata

from nmd_lab.data.labels import COMPONENT, Labels

from .draws import CHAIN, DRAW, PROBE, PROBES, SWEEP, Draws
from .entries import entries_of
from .predict import TINY, choose, shares_in_draws
from .predictive import Array

MIN_DRAWS = 4
"""Smallest length of a chain for these measures; shorter ones give NaN."""


def split_rhat(chains: Any) -> float:
    """Return the split R-hat, near 1 if all halves of all chains have the same distribution.

    It is the larger one of those of ranks and of ranks of distances from the median.
    """
    halves, found = _halves(chains), []
    for numbers in (halves, np.abs(halves - np.median(halves))):
        within, total = _variances(_normal_scores(numbers))
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.where((within == 0) & (total == 0), 1.0, np.sqrt(total / within)))
    return float(np.maximum(*found))


def effective_sample_size(chains: Any) -> float:
    """Return the number of independent draws whose mean of ranks would be as exact (bulk ESS)."""
    scores = _normal_scores(_halves(chains))
    size, n = scores.size, scores.shape[1]
    within, total = _variances(scores)
    if not total > 0:
        return np.nan
    spectrum = np.fft.rfft(scores - scores.mean(axis=1, keepdims=True), 2 * n)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, 2 * n)[:, :n].mean(axis=0) / n
    correlation = 1 - (within - covariance) / total
    correlation[0] = 1
    even, odd = correlation[: 2 * max((n - 1) // 2, 1)].reshape(-1, 2).T
    pairs = even + odd
    # A sum of two neighbours is positive and falls; what comes after the first that is not
    # positive is noise (Geyer, 1992).
    end = np.append(np.flatnonzero(pairs <= 0), pairs.size - 1).min()
    time = 2 * np.minimum.accumulate(pairs[:end]).sum() - 1 + max(even[end], 0)
    return float(size / max(time, 1 / np.log10(size)))


def _halves(chains: Any) -> Array:
    """Return the two halves of each chain as chains; NaN if they are too short."""
    array = np.asarray(chains, dtype=np.float64)
    n = array.shape[1] // 2
    if array.shape[1] < MIN_DRAWS:
        return np.full((2, MIN_DRAWS), np.nan)
    return np.concatenate([array[:, :n], array[:, -n:]])


def _normal_scores(halves: Array) -> Array:
    """Return normal numbers with the ranks of all draws (Blom, 1958)."""
    ranks = rankdata(halves).reshape(halves.shape)
    return np.asarray(ndtri((ranks - 0.375) / (ranks.size + 0.25)))


def _variances(halves: Array) -> tuple[Array, Array]:
    """Return the variance within chains, and the estimate that has the one between them too."""
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return within, within * (n - 1) / n + between


MAX_RHAT = 1.05
"""Largest split R-hat of a new observation that has converged."""

MAX_UNSETTLED = 0.05
"""Largest fraction of the probed predictions that may exceed it."""


def moments_in_draws(draws: Draws, i: Any, j: Any) -> tuple[Array, Array]:
    """Return mean and variance of new observations in each draw, (chain, draw, entries)."""
    v = draws.linear_at(i, j)
    mean, variance = np.empty_like(v), np.zeros_like(v)
    for predictive, at, u in draws.by_noise(j, v):
        mean[:, at] = predictive.mean(u)
        with suppress(ValueError):  # a loss of your own may have no noise
            variance[:, at] = predictive.mean_and_variance(u)[1]
    shape = draws.n_chains, len(draws) // draws.n_chains, i.size
    return mean.reshape(shape), variance.reshape(shape)


def of_trace(trace: xr.Dataset, measure: Callable[[Any], float]) -> xr.Dataset:
    """Return a measure of the chains for each variable of the trace."""
    chains = [[CHAIN, SWEEP]]
    found: xr.Dataset = xr.apply_ufunc(measure, trace, input_core_dims=chains, vectorize=True)
    return found


def unsettled(draws: Draws, trace: xr.Dataset) -> float:
    """Return the fraction of the probed predictions that have not converged; NaN if unknown."""
    if PROBE not in trace.dims or len(draws) // draws.n_chains < MIN_DRAWS:
        return np.nan
    mean, variance = moments_in_draws(draws, *(trace[name].values for name in PROBES))
    within, total = _variances(_halves(mean))
    noise = variance.mean(axis=(0, 1))
    return float(np.mean(total + noise > MAX_RHAT**2 * (within + noise)))


def labelled_singular_values(draws: Draws, dataset: xr.Dataset) -> xr.DataArray:
    """Return the singular values of WH in each draw; see `Posterior.singular_values`."""
    values, dims = singular_values(draws), (CHAIN, DRAW, COMPONENT)
    coords: dict[str, Any] = {dim: dataset[dim] for dim in dims}
    coords["effective_rank"] = dims[:2], effective_rank(values).reshape(draws.n_chains, -1)
    by_chain = values.reshape(draws.n_chains, -1, draws.rank)
    return xr.DataArray(by_chain, coords, dims, "singular_values")


def singular_values(draws: Draws) -> Array:
    """Return the singular values of WH in each draw (draws, rank), largest first.

    Their squares are the eigenvalues of products of the size of the rank.
    """
    products = [
        (W.T @ W.astype(np.float64)) @ (H.T @ H.astype(np.float64))
        for W, H in zip(draws.W, draws.H, strict=True)
    ]
    squares = np.sort(np.linalg.eigvals(np.stack(products)).real, axis=1)[:, ::-1]
    return np.asarray(np.sqrt(np.maximum(squares, 0)))


def effective_rank(values: Array) -> Array:
    """Return the exponential of the entropy of normalised singular values (draws, rank)."""
    return np.asarray(np.exp(entropy(values, axis=1)))


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
        noise = draws.predictive_of(position)
        if kind != "ordinal":
            spread = 1.0 if kind == "after" else draws.numbers.get("spread", 1.0)
            found["noise"][name] = noise.sd / spread
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
    labels, draws, rng = posterior._labels, posterior._draws, np.random.default_rng(0)
    entries = entries_of(labels, X, None, None, posterior._owner)
    values = entries.values
    rows, columns = _line_names(labels)
    observed, drawn, logs, cells = {}, {}, [], []
    outer = [(dim, posterior.draws[dim].values) for dim in (CHAIN, DRAW)]
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
        of_rows = f"{name}_dim_0", [rows[k] for k in i]
        observed[name] = xr.DataArray(x, [of_rows])
        drawn[name] = xr.DataArray(new.reshape(draws.n_chains, -1, i.size), [*outer, of_rows])
        cells += [f"{rows[a]}, {columns[b]}" for a, b in zip(i, j, strict=True)]
    likelihood = np.maximum(np.concatenate(logs, axis=1), np.log(TINY))
    by_chain = likelihood.reshape(draws.n_chains, -1, len(cells))
    return {
        "observed_data": xr.Dataset(observed),
        "posterior_predictive": xr.Dataset(drawn),
        "log_likelihood": xr.Dataset({"cells": xr.DataArray(by_chain, [*outer, ("cell", cells)])}),
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
