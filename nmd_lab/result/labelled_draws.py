"""Draws with the labels of X as one Dataset, and without them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.data.labels import COMPONENT, Labels
from nmd_lab.data.observations import Observations

from .draws import CHAIN, CUT, DRAW, GROUP, LIMIT, LIMITS, PART, PROBE, SWEEP, Draws

ROWS, COLUMNS, NOISES = "rows", "columns", "noises"
"""What stands for the dimensions of rows and of columns, and for those of noise levels."""

VARIABLES: dict[str, tuple[str, ...]] = {
    "W": (ROWS, COMPONENT),
    "H": (COLUMNS, COMPONENT),
    "row_offsets": (ROWS,),
    "column_offsets": (COLUMNS,),
    "rho": (NOISES,),
    "beta": (NOISES,),
    "cut_points": (NOISES, CUT),
    "row_mean": (GROUP, PART),
    "row_precision": (GROUP, PART, f"{PART}_"),
    "row_share": (GROUP,),
    "row_group": (ROWS,),
    "member": (),
    "spread": (),
    "temperature": (NOISES,),
    "frequency": (NOISES,),
}
"""Variables of the draws; offsets, beta, cut points and groups where the model has them."""

TRACE = ("log_likelihood", "prediction")
"""Variables of the trace."""

PROBES = ("probe_row", "probe_column")
"""Coordinates of the trace: positions of the entries whose predictions it has."""

TAKEN = {CHAIN, DRAW, SWEEP, PROBE, CUT, PART, f"{PART}_", GROUP, LIMIT, COMPONENT}
TAKEN |= {*LIMITS, *VARIABLES, *TRACE, *PROBES}
"""Names that dimensions and coordinates of X do not have in the draws."""


def label_draws(labels: Labels, arrays: dict[str, Any], *, by_column: bool) -> xr.Dataset:
    """Return the draws as a Dataset with the labels of X, without copies of the factors.

    Noise levels, if there are several, are those of the columns.
    """
    renamed, outer = labels.rename(labels.clashes(TAKEN)), arrays["W"].shape[:2]
    dims_of = {ROWS: renamed.rows, COLUMNS: renamed.columns}
    dims_of[NOISES] = renamed.columns if by_column else ()
    shares = arrays.get("row_share")
    sizes = renamed.sizes | {GROUP: 1 if shares is None else shares.shape[-1]}
    dataset = xr.Dataset()
    for name, dims in VARIABLES.items():
        if (array := arrays.get(name)) is not None:
            along = [dim for each in dims for dim in dims_of.get(each, (each,))]
            shape = [sizes.get(dim, array.shape[-1]) for dim in along]
            dataset[name] = (CHAIN, DRAW, *along), array.reshape(*outer, *shape)
    dataset["H"] = dataset["H"].transpose(CHAIN, DRAW, COMPONENT, *renamed.columns)
    counts = {dim: np.arange(dataset.sizes[dim]) for dim in (CHAIN, DRAW, COMPONENT)}
    return dataset.assign_coords(renamed.coords_along(*map(str, dataset.dims))).assign_coords(
        counts
    )


def label_trace(arrays: dict[str, Any]) -> xr.Dataset:
    """Return what was recorded at each sweep, (chain, sweep) and (chain, sweep, probe)."""
    nothing = np.empty((len(arrays["W"]), 0))
    trace = xr.Dataset({"log_likelihood": ((CHAIN, SWEEP), arrays.get("log_likelihood", nothing))})
    if arrays.get("predictions") is not None:
        trace["prediction"] = (CHAIN, SWEEP, PROBE), arrays["predictions"]
        positions = {name: (PROBE, np.asarray(arrays[f"{name}s"])) for name in PROBES}
        trace = trace.assign_coords(positions)
    return trace.assign_coords({dim: np.arange(trace.sizes[dim]) for dim in (CHAIN, SWEEP)})


def plain_draws(posterior: Any) -> Draws:
    """Return the draws of a posterior without labels, as views where that is possible."""
    variables, sizes = posterior.draws.variables, posterior.draws.sizes
    n_draws, rank = sizes[CHAIN] * sizes[DRAW], sizes[COMPONENT]
    numbers = {
        str(name): v.values.reshape(n_draws, math.prod(v.shape[2:]))
        for name, v in variables.items()
        if v.dims[:2] == (CHAIN, DRAW) and name not in ("W", "H")
    }
    by_component = variables["H"].values.reshape(n_draws, rank, -1)
    return Draws(
        W=_for_kernels(variables["W"].values.reshape(n_draws, -1, rank)),
        H=_for_kernels(by_component.transpose(0, 2, 1)),
        numbers=numbers,
        n_chains=sizes[CHAIN],
        model=posterior._model,
        noises=posterior._noises,
        mean=posterior.mean,
        dtype=np.dtype(posterior.parameters.get("dtype", "float64")),
        scale=posterior.parameters.get("scale"),
        table=posterior._labels.table,
    )


def _for_kernels(array: Any) -> Any:
    """Return an array for compiled code, which has one version for one kind of arrays."""
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else array.copy()


def with_rows(posterior: Any, draws: Draws, labels: Labels) -> Any:
    """Return a posterior of other rows, given their draws and their labels."""
    outer = posterior.draws["W"].shape[:2]
    shared = [name for name, dims in VARIABLES.items() if ROWS not in dims and name != "H"]
    arrays = {name: each.values for name, each in posterior.draws.items() if name in shared}
    arrays |= {"W": draws.W.reshape(*outer, *draws.W.shape[1:])}
    arrays |= {"H": draws.H.reshape(*outer, *draws.H.shape[1:])}
    if "row_offsets" in draws.numbers:
        arrays["row_offsets"] = draws.numbers["row_offsets"].reshape(*outer, -1)
    return replace(
        posterior,
        _labels=labels,
        _limits=None,
        draws=label_draws(labels, arrays, by_column=draws.model.is_mixed),
        trace=posterior.trace[["log_likelihood"]],
        parameters=posterior.parameters | {"new_rows": draws.shape[0]},
    )


def limits_of(observations: Observations) -> xr.Dataset:
    """Return the entries with limits."""
    sparse = observations.as_sparse()
    at = np.flatnonzero(sparse.limits.codes)
    limits, x = sparse.limits.at(at), sparse.values[at]
    uppers = x if limits.uppers is None else limits.uppers
    arrays = sparse.rows[at], sparse.indices[at], limits.codes, x, uppers
    return xr.Dataset({name: (LIMIT, array) for name, array in zip(LIMITS, arrays, strict=True)})
