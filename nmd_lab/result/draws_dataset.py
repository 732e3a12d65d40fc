"""Draws with the labels of X as one Dataset, in memory and for a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.data.labels import COMPONENT, Labels

from .draws import CHAIN, CUT, DRAW, GROUP, PART, PROBE, SWEEP, Drawn
from .serialization import Description, Known, UnknownContentError, described, fields_of_result

VARIABLES = (
    *("W", "H", "row_offsets", "column_offsets", "rho", "beta", "cut_points"),
    *("row_mean", "row_precision", "row_share", "row_group", "group_scale", "group_strength"),
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
    COMPONENT,
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
        "group_scale": (PART, PART + "_"),
        "group_strength": (),
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
    about = {"kind": POSTERIOR, "noise": posterior.noise, "levels": posterior.levels}
    return described(posterior, dataset, labels, renamed, mean=posterior.mean, **about)


def fields_of_posterior(
    dataset: xr.Dataset, description: Description, known: Known
) -> dict[str, Any]:
    """Return the fields of a `Posterior` from a Dataset of `to_dataset`."""
    counts = [CHAIN, DRAW, SWEEP, COMPONENT, *PROBES]
    common = fields_of_result(dataset, counts, description, known)
    labels, kinds = common.pop("labels"), common.pop("kinds")
    if kinds is None and dataset["rho"].ndim > 2:
        raise UnknownContentError(
            "rho has noise levels of rows (noise_by='rows'), which are read no longer."
        )
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
        "noise": noise if isinstance(noise, str) else tuple(noise),
        "draws": draws,
        "trace": trace,
        "mean": description["mean"],
        "levels": None if levels is None else tuple(levels),
    }


def to_datatree(posterior: Drawn) -> xr.DataTree:
    """Return the groups that ArviZ expects; see `Posterior.to_datatree`."""
    statistics = posterior.trace.rename({SWEEP: DRAW}).rename(log_likelihood="lp")
    groups = {"posterior": posterior.draws, "sample_stats": statistics}
    return xr.DataTree.from_dict(groups, name=posterior._labels.name)
