"""Warm starts of chains: from a fit, or from the end of an earlier posterior."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from .data.entries import FloatArray
from .result.decomposition import Decomposition
from .result.posterior import Posterior
from .solver.sampler.cut_points import put
from .solver.sampler.groups import Groups
from .solver.sampler.problem import SampledProblem
from .solver.sampler.state import ChainState
from .solver.scaling import Scaling


def check_init(init: Any, problem: SampledProblem, chains: int, scaling: Scaling) -> None:
    """Raise an error if a given start does not go with the model."""
    if isinstance(init, str):
        return
    if not isinstance(init, Decomposition | Posterior):
        raise TypeError(f"init is a {type(init).__name__}: give a name, a fit or a Posterior.")
    if init.shape != problem.shape or init.rank != problem.rank:
        raise ValueError(
            f"init has shape {init.shape} and rank {init.rank}: give one of shape {problem.shape} "
            f"and rank {problem.rank}."
        )
    if not isinstance(init, Posterior):
        return
    compared = {
        "noise_by": (init.fitted.noise_by, problem.noise_by),
        "noise": (init.fitted.T_noise, problem.noises if problem.by_column else problem.noises[0]),
        "row offsets": ("row_offsets" in init.draws, problem.row_offsets),
        "column offsets": ("column_offsets" in init.draws, problem.column_offsets),
        "groups": (init.draws.sizes["group"] if "row_group" in init.draws else 1, problem.n_groups),
        "chains": (init.draws.sizes["chain"], chains),
    }
    for name, (theirs, ours) in compared.items():
        if theirs != ours:
            raise ValueError(f"init has {name}={theirs}, and this call {ours}: give the same.")
    if not _has_units_of(init, problem, scaling):
        raise ValueError(
            "init is a posterior of other data, whose units its draws have: give the same data, "
            "or leave init out."
        )


def _has_units_of(before: Posterior, problem: SampledProblem, scaling: Scaling) -> bool:
    """Return whether the draws of a posterior have the mean, the units and levels of a model."""
    ours = [(kind.centre, kind.size, kind.loss.level_values) for kind in problem.model.kinds]
    theirs = [(0.0, 1.0, before.levels or ())]
    if before.kinds is not None:
        theirs = [(kind.centre, kind.size, kind.loss.level_values) for kind in before.kinds.kinds]
    mean = float(np.ldexp(problem.mean, 2 * scaling.exponent))
    return theirs == ours and math.isclose(before.mean, mean, rel_tol=1e-6)


def begin_at(fit: Decomposition, state: ChainState, mean: float, scaling: Scaling) -> None:
    """Put factors and offsets of a fit into the state of a chain with a global offset."""
    W, H = fit.factors
    rows, columns = fit.offsets.rows, fit.offsets.columns
    rest = fit.offsets.mean - np.ldexp(mean, 2 * scaling.exponent)
    if rows is not None:
        rows = rows + rest
    elif columns is not None:
        columns = columns + rest
    _put(state, W, H.T, rows, columns, scaling)


def continue_from(before: Posterior, chain: int, state: ChainState, scaling: Scaling) -> None:
    """Put the last draw of a chain into a state."""
    last = (chain + 1) * before.draws.sizes["draw"] - 1
    W, H, rows, columns = before.fitted.stacked
    _put(
        state,
        W[last],
        H[last],
        None if rows is None else rows[last],
        None if columns is None else columns[last],
        scaling,
    )
    draws = before.draws.isel(chain=chain, draw=-1)
    state.rho[:] = np.ldexp(draws["rho"].values.ravel(), 4 * scaling.exponent)
    if "beta" in draws:
        state.beta[:] = np.ldexp(draws["beta"].values.ravel(), scaling.of_objective)
    if "cut_points" in draws:
        put(state.cuts, draws["cut_points"].values.reshape(len(state.cuts), -1))
    if "row_group" in draws:
        state.groups = Groups(
            draws["row_group"].values.ravel().astype(np.int64),
            draws["group_scale"].values.copy(),
            float(draws["group_strength"]),
        )
    state.sweep = int(before.parameters.get("sweeps", 0))


def _put(
    state: ChainState,
    W: FloatArray,
    H: FloatArray,
    rows: FloatArray | None,
    columns: FloatArray | None,
    scaling: Scaling,
) -> None:
    rank = W.shape[1]
    sides = ((state.rows, W, rows), (state.columns, H, columns))
    for vectors, factor, offsets in sides:
        vectors[:, :rank] = np.ldexp(factor, -scaling.exponent)
        if vectors.shape[1] > rank:
            vectors[:, rank] = 0 if offsets is None else np.ldexp(offsets, -2 * scaling.exponent)


def joined(before: Posterior, after: Posterior) -> Posterior:
    """Return a posterior with the draws of both, the latter of which went on from the former.

    If fewer chains went on, it has these alone.
    """
    chains = slice(after.draws.sizes["chain"])
    draws, trace = (
        xr.concat(
            [getattr(before, name).isel(chain=chains), getattr(after, name)],
            dim,
            combine_attrs="override",
        )
        for name, dim in (("draws", "draw"), ("trace", "sweep"))
    )
    draws = draws.assign_coords(draw=np.arange(draws.sizes["draw"]))
    trace = trace.assign_coords(sweep=np.arange(trace.sizes["sweep"]))
    numbers = {"sweeps": before.parameters.get("sweeps", 0) + after.parameters["sweeps"]}
    parameters = after.parameters | numbers
    return replace(after, draws=draws, trace=trace, parameters=parameters)
