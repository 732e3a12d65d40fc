"""Conversion of a posterior to one Dataset for a file, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import xarray as xr

from nmd_lab.data.labels import COMPONENT, RESULT_ATTRIBUTE
from nmd_lab.result.serialization import (
    Form,
    describe_result,
    description_of,
    fields_of_result,
    refused_as,
)

from .draws import CHAIN, DRAW, SWEEP, DrawnFactors
from .labels import PROBES, TAKEN, TARGETS, TRACE, VARIABLES

KIND = "posterior"
"""Value of "kind" in the description of a posterior."""


def to_dataset(posterior: DrawnFactors) -> xr.Dataset:
    """Return all fields as one Dataset; ``attrs["nmd_lab"]`` has the plain values, as JSON."""
    labels = posterior.labels
    renamed = labels.clashes(TAKEN)
    labels = labels.rename(renamed)
    description = describe_result(posterior, labels, renamed) | {
        "kind": KIND,
        "noise": posterior.noise,
        "mean": posterior.mean,
        "levels": posterior.levels,
    }
    # As in memory, where a row of H is a column of X.
    H = posterior.draws["H"].transpose(CHAIN, DRAW, *labels.columns, COMPONENT)
    dataset = posterior.draws.assign(H=H).merge(posterior.trace)
    dataset = dataset.assign_coords(labels.coords.coords)
    return dataset.assign_attrs({RESULT_ATTRIBUTE: json.dumps(description)})


def is_posterior(dataset: xr.Dataset) -> bool:
    """Return whether a Dataset says that it holds a posterior."""
    try:
        return bool(json.loads(dataset.attrs[RESULT_ATTRIBUTE]).get("kind") == KIND)
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def from_dataset(dataset: xr.Dataset, known: Iterable[type[Form]] = ()) -> dict[str, Any]:
    """Return the arguments of `Posterior.from_arrays` from a Dataset of `to_dataset`."""
    with refused_as("dataset holds no posterior: give one that Posterior.to_dataset() made."):
        description = description_of(dataset)
        if description["kind"] != KIND:
            raise ValueError(description["kind"])
        return _arguments(dataset, description, tuple(known))


def _arguments(
    dataset: xr.Dataset, description: dict[str, Any], known: tuple[type[Form], ...]
) -> dict[str, Any]:
    """Return the arguments, given the description in the Dataset."""
    counts = [CHAIN, DRAW, SWEEP, COMPONENT, *PROBES]
    arrays = {
        name: dataset[name].values if name in dataset else None
        for name in (*VARIABLES, *TRACE, *PROBES)
    }
    targets = {name: dataset[name].values for name in TARGETS if name in dataset}
    chains, draws, rank = (dataset.sizes[dim] for dim in (CHAIN, DRAW, COMPONENT))
    for name in ("W", "H"):
        arrays[name] = dataset[name].values.reshape(chains, draws, -1, rank)
    flat = ["row_offsets", "column_offsets", "row_group"]
    if dataset["rho"].ndim > 2:
        flat += ["rho", "beta"]
    noise: Any = description["noise"]
    if not isinstance(noise, str):
        noise = tuple(noise)
        if arrays["cut_points"] is not None:
            arrays["cut_points"] = arrays["cut_points"].reshape(chains, draws, len(noise), -1)
    for name in flat:
        if name in dataset:
            arrays[name] = dataset[name].values.reshape(chains, draws, -1)
    return fields_of_result(dataset, counts, description, known) | {
        **{name: arrays[name] for name in (*VARIABLES, "log_likelihood")},
        "predictions": arrays["prediction"],
        "probe_rows": arrays["probe_row"],
        "probe_columns": arrays["probe_column"],
        "targets": targets if "target_mean" in dataset else None,
        "noise": noise,
        "mean": description["mean"],
        "levels": description["levels"],
    }


def to_datatree(posterior: DrawnFactors) -> xr.DataTree:
    """Return the groups that ArviZ expects; see `Posterior.to_datatree`."""
    statistics = posterior.trace.rename({SWEEP: DRAW}).rename(log_likelihood="lp")
    groups = {"posterior": posterior.draws, "sample_stats": statistics}
    return xr.DataTree.from_dict(groups, name=posterior.labels.name)
