"""A decomposition as one labelled Dataset and back, and the provenance of a result."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from typing import Any

import numba
import numpy as np
import xarray as xr

from nmd_lab._runtime.compiler import is_ours
from nmd_lab._runtime.progress import StopReason
from nmd_lab._version import __version__
from nmd_lab.data.labels import COMPONENT, RESULT_ATTRIBUTE, Labels
from nmd_lab.data.observations import Observations
from nmd_lab.data.typed_table import TypedTable
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.kind import Kind, make_kind
from nmd_lab.model.losses import LOSSES, Loss
from nmd_lab.model.mixed import Mixed
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES, Nonlinearity

from .factors import Factors
from .netcdf import SCHEMA, UnknownContentError
from .selection import trials_of

Form = Nonlinearity | Loss
Known = tuple[type[Form], ...]
Description = dict[str, Any]


ITERATION = "iteration"
OFFSET_NAMES = ("row_offsets", "column_offsets")
KIND = "part"
"""Name of the variable with the kind of each column, or of each entry."""


def to_dataset(fit: Factors) -> xr.Dataset:
    """Return all fields as one Dataset; ``attrs["nmd_lab"]`` has the plain values, as JSON."""
    history, labels, offsets = fit.history, fit._labels, fit.offsets
    starts = fit.parameters.get("starts", [])  # JSON would lose the codes of their stop reasons
    taken = {"W", "H", COMPONENT, KIND, *OFFSET_NAMES, *map(str, history.variables)}
    renamed = labels.clashes(taken)
    labels = labels.rename(renamed)
    W, H = labels.label_factors(*fit._factors)
    dataset = xr.Dataset({"W": W, "H": H}).merge(history)
    for name, factor, values in zip(OFFSET_NAMES, (W, H), offsets[1:], strict=True):
        if values is not None:
            dims = tuple(dim for dim in factor.dims if dim != COMPONENT)
            dataset[name] = dims, values.reshape([factor.sizes[dim] for dim in dims])
    if fit._kinds is not None:
        dataset[KIND] = which_kind(fit._kinds, labels)
    return described(
        fit,
        dataset,
        labels,
        renamed,
        n_iter=history.sizes[ITERATION],
        seconds=float(history["seconds"][-1]),
        start_codes=[StopReason.of(start["stop_reason"]).code for start in starts],
        mean_offset=offsets.mean,
    )


def fields_of_fit(dataset: xr.Dataset, description: Description, known: Known) -> dict[str, Any]:
    """Return the arguments of `Decomposition._from_matrices` from a Dataset of `to_dataset`."""
    history = {name: v.values for name, v in dataset.data_vars.items() if v.dims == (ITERATION,)}
    common = fields_of_result(dataset, [COMPONENT, ITERATION], description, known)
    trials_of(description["parameters"])  # raises an error if they are damaged
    rank = dataset.sizes[COMPONENT]
    return common | {
        "W": dataset["W"].values.reshape(-1, rank),
        "H": dataset["H"].values.reshape(rank, -1),
        "history": history,
        "parameters": _with_start_codes(description),
        "offsets": Offsets(
            description["mean_offset"],
            *(dataset[name].values.ravel() if name in dataset else None for name in OFFSET_NAMES),
        ),
    }


def described(
    result: Any, dataset: xr.Dataset, labels: Labels, renamed: dict[str, str], **more: Any
) -> xr.Dataset:
    """Return a Dataset with the description of its result; `labels` have the names of `renamed`."""
    kinds = {} if result._kinds is None else {"parts": describe_kinds(result._kinds)}
    description = {
        "schema": SCHEMA,
        "nonlinearity": describe(result.nonlinearity),
        "loss": describe(result.loss) | kinds,
        "table": None if labels.table is None else labels.table.describe(),
        "stop_reason": str(result.stop_reason),
        "stop_code": result.stop_reason.code,
        "parameters": result.parameters,
        "dims": labels.dims,
        "rows": labels.rows,
        "name": labels.name,
        "attrs": writable(labels.attrs),
        "renamed": {new: old for old, new in renamed.items()},
        **more,
    }
    dataset = dataset.assign_coords(labels.coords.coords)
    return dataset.assign_attrs({RESULT_ATTRIBUTE: json.dumps(description)})


def fields_of_result(
    dataset: xr.Dataset, counts: Iterable[str], description: Description, known: Known
) -> dict[str, Any]:
    """Return the fields that every result has; `counts` are no labels of X."""
    coords, table = dataset.drop_vars(counts, errors="ignore").coords, description.get("table")
    labels = Labels(
        dims=tuple(description["dims"]),
        shape=tuple(coords.sizes[dim] for dim in description["dims"]),
        rows=tuple(description["rows"]),
        coords=xr.Dataset().assign_coords(coords),
        name=description["name"],
        attrs=description["attrs"],
        table=None if table is None else TypedTable.read(table),
    ).rename(description["renamed"])
    nonlinearity, loss, kinds = _models(dataset, description, labels, known)
    return {
        "labels": labels,
        "kinds": kinds,
        "nonlinearity": nonlinearity,
        "loss": loss,
        "stop_reason": StopReason.read(description["stop_code"], description["stop_reason"]),
        "parameters": description["parameters"],
    }


def _models(
    dataset: xr.Dataset, description: Description, labels: Labels, known: Known
) -> tuple[Any, Any, Model | None]:
    """Return nonlinearity and loss, and the kinds of a mixed table."""
    if "parts" in description["loss"]:
        kinds = kinds_from(description["loss"]["parts"], known)
        which = np.arange(len(kinds))  # in a posterior, which has one for each column
        if KIND in dataset.variables:
            which = dataset[KIND].values.astype(np.intp)
            of_entries = which.ndim > len(labels.columns)
            which = labels.flatten(which) if of_entries else which.ravel()
        model = Model(kinds, which)
        return *model.shown, model
    return (
        model_from("nonlinearity", description, NONLINEARITY_CLASSES, known),
        model_from("loss", description, LOSSES, known),
        None,
    )


def _with_start_codes(description: Description) -> dict[str, Any]:
    """Return the parameters of a fit, with the codes of its starts."""
    parameters: dict[str, Any] = description["parameters"]
    if "starts" not in parameters:
        return parameters
    with_codes = [
        start | {"stop_reason": StopReason.read(code, start["stop_reason"])}
        for start, code in zip(parameters["starts"], description["start_codes"], strict=True)
    ]
    return parameters | {"starts": with_codes}


def writable(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that JSON can hold; arrays become lists, NumPy numbers plain ones."""
    plain = {name: a.tolist() if hasattr(a, "tolist") else a for name, a in attrs.items()}
    return {str(name): a for name, a in plain.items() if isinstance(a, str | int | float | list)}


def describe(model: Nonlinearity | Loss | Mixed) -> dict[str, Any]:
    """Return name and parameters of a nonlinearity or a loss, for JSON."""
    if isinstance(model, Mixed):
        return {"name": model.name}
    return {"name": model.name, "parameters": list(model.settings), "ours": is_ours(type(model))}


def model_from(kind: str, description: Description, ours: dict[str, Any], known: Known) -> Any:
    """Return the nonlinearity or the loss from what `describe` returned."""
    about = description[kind]
    classes = ours if about["ours"] else {cls.name: cls for cls in known}
    if about["name"] not in classes:
        remedy = "install the version that made it"
        if not about["ours"]:
            remedy = "give known=[its class], or known=[nonlinearities.Smooth(f, name=...)]"
        raise UnknownContentError(
            f"The fit uses the {kind} {about['name']!r}, which is unknown: {remedy}."
        )
    return classes[about["name"]](*about["parameters"])


def describe_kinds(model: Model) -> list[dict[str, Any]]:
    """Return the kinds of a mixed table, for JSON."""
    return [
        {
            "nonlinearity": describe(kind.nonlinearity),
            "loss": describe(kind.loss),
            "units": [float(kind.centre), float(kind.size), float(kind.weight)],
        }
        for kind in model.kinds
    ]


def kinds_from(described: list[Description], known: Known) -> tuple[Kind, ...]:
    """Return the kinds from what `describe_kinds` returned."""
    kinds = []
    for each in described:
        f = model_from("nonlinearity", each, NONLINEARITY_CLASSES, known)
        centre, size, weight = each["units"]
        kind = make_kind(f, model_from("loss", each, LOSSES, known))
        kinds.append(kind._replace(centre=centre, size=size, weight=weight))
    return tuple(kinds)


def which_kind(model: Model, labels: Labels) -> xr.DataArray:
    """Return the positions of the kinds, with the dimensions of the columns or of X."""
    assert model.which is not None
    if model.which.ndim == 2:
        return xr.DataArray(labels.label(model.which).variable)
    shape = [labels.sizes[dim] for dim in labels.columns]
    return xr.DataArray(model.which.reshape(shape), dims=labels.columns)


def provenance(observations: Observations) -> dict[str, Any]:
    """Return a description of data and software, in numbers and text."""
    return {
        "shape": list(observations.shape),
        "n_observed": observations.n_observed,
        "dtype": str(observations.dtype),
        "observations_hash": observations.fingerprint(),
        "versions": {
            "nmd_lab": __version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
            "xarray": xr.__version__,
            "python": platform.python_version(),
        },
    }
