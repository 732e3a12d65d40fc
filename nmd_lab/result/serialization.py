"""Conversion of a decomposition to one labelled Dataset, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypedDict

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab._numba import is_ours
from nmd_lab._stop_reason import StopReason
from nmd_lab.data.labels import COMPONENT, RESULT_ATTRIBUTE, Labels
from nmd_lab.data.typed_table import TypedTable
from nmd_lab.model.losses import LOSSES, Loss
from nmd_lab.model.mixed import MixedLoss, MixedNonlinearity, MixedPair, Part
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES, Nonlinearity
from nmd_lab.model.offsets import Offsets
from nmd_lab.model.proximal import make_pair

from .netcdf import SCHEMA
from .selection import trials_of

Model = Nonlinearity | Loss


class UnknownModelError(ValueError):
    """Raised for a nonlinearity or a loss whose class is not known."""


class Fields(TypedDict):
    """The fields of a `Decomposition`, which documents them."""

    W: xr.DataArray
    H: xr.DataArray
    nonlinearity: Nonlinearity
    loss: Loss
    history: xr.Dataset
    stop_reason: StopReason
    labels: Labels
    parameters: dict[str, Any]
    offsets: Offsets


ITERATION = "iteration"
OFFSET_NAMES = ("row_offsets", "column_offsets")
PART = "part"
"""Name of the variable that says which part of a mixed pair a column, or an entry, has."""


def to_dataset(fit: Fields) -> xr.Dataset:
    """Return all fields as one Dataset; ``attrs["nmd_lab"]`` has the plain values, as JSON."""
    history, labels, offsets = fit["history"], fit["labels"], fit["offsets"]
    taken = {"W", "H", COMPONENT, PART, *OFFSET_NAMES, *map(str, history.variables)}
    renamed = labels.clashes(taken)
    labels = labels.rename(renamed)
    description = {
        "schema": SCHEMA,
        "nonlinearity": describe(fit["nonlinearity"]),
        "loss": describe(fit["loss"]),
        "table": None if labels.table is None else labels.table.describe(),
        "stop_reason": str(fit["stop_reason"]),
        "stop_code": fit["stop_reason"].code,
        "n_iter": history.sizes[ITERATION],
        "seconds": float(history["seconds"][-1]),
        "parameters": fit["parameters"],
        "start_codes": _start_codes(fit["parameters"]),
        "mean_offset": offsets.mean,
        "dims": labels.dims,
        "rows": labels.rows,
        "name": labels.name,
        "attrs": writable(labels.attrs),
        "renamed": {new: old for old, new in renamed.items()},
    }
    rank = fit["W"].sizes[COMPONENT]
    matrices = fit["W"].values.reshape(-1, rank), fit["H"].values.reshape(rank, -1)
    W, H = labels.label_factors(*matrices)
    dataset = xr.Dataset({"W": W, "H": H}).merge(history)
    for name, factor, values in zip(OFFSET_NAMES, (W, H), offsets[1:], strict=True):
        if values is not None:
            dims = tuple(dim for dim in factor.dims if dim != COMPONENT)
            dataset[name] = dims, values.reshape([factor.sizes[dim] for dim in dims])
    if fit["loss"].pair is not None:
        dataset[PART] = which_part(fit["loss"].pair, labels)
    dataset = dataset.assign_coords(labels.coords.coords)
    return dataset.assign_attrs({RESULT_ATTRIBUTE: json.dumps(description)})


def from_dataset(dataset: xr.Dataset, known: Iterable[type[Model] | Model] = ()) -> Fields:
    """Return the fields of the decomposition that `to_dataset` described.

    Raises
    ------
    ValueError
        If `to_dataset` did not make the Dataset, if its layout is newer than this version, or if
        its nonlinearity or loss is neither of this package nor in `known`.
    """
    refusal = "dataset holds no decomposition: give one that to_dataset() made."
    try:
        description = json.loads(dataset.attrs.get(RESULT_ATTRIBUTE, "{}"))
        is_fit = {"W", "H", ITERATION} <= set(dataset.variables) and "schema" in description
        newer = is_fit and description["schema"] > SCHEMA
    except (TypeError, ValueError) as error:
        raise ValueError(refusal) from error
    if not is_fit:
        raise ValueError(refusal)
    if newer:
        raise ValueError(
            f"dataset has the layout {description['schema']}, this version reads up to "
            f"{SCHEMA}: install a newer nmd_lab."
        )
    try:
        classes = (part if isinstance(part, type) else type(part) for part in known)
        return _fields(dataset, description, tuple(classes))
    except UnknownModelError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(refusal) from error


def _fields(
    dataset: xr.Dataset, description: dict[str, Any], known: tuple[type[Model], ...]
) -> Fields:
    """Return the fields of a decomposition, given the description of it in the Dataset."""
    history = {name: v.variable for name, v in dataset.data_vars.items() if v.dims == (ITERATION,)}
    dims = tuple(description["dims"])
    labels = Labels(
        dims=dims,
        shape=tuple(dataset.sizes[dim] for dim in dims),
        rows=tuple(description["rows"]),
        coords=xr.Dataset().assign_coords(dataset.drop_vars([COMPONENT, ITERATION]).coords),
        name=description["name"],
        attrs=description["attrs"],
        table=None if description["table"] is None else TypedTable.read(description["table"]),
    ).rename(description["renamed"])
    trials_of(description["parameters"])  # raises an error if they are damaged
    rank = dataset.sizes[COMPONENT]
    W = dataset["W"].values.reshape(-1, rank)
    labelled_W, labelled_H = labels.label_factors(W, dataset["H"].values.reshape(rank, -1))
    nonlinearity, loss = _models(dataset, description, labels, known)
    return {
        "W": labelled_W,
        "H": labelled_H,
        "nonlinearity": nonlinearity,
        "loss": loss,
        "history": xr.Dataset(history, {ITERATION: dataset[ITERATION].variable}),
        "stop_reason": StopReason.read(description["stop_code"], description["stop_reason"]),
        "labels": labels,
        "parameters": _with_start_codes(description),
        "offsets": Offsets(
            description["mean_offset"],
            *(dataset[name].values.ravel() if name in dataset else None for name in OFFSET_NAMES),
        ),
    }


def _models(
    dataset: xr.Dataset, description: dict[str, Any], labels: Labels, known: tuple[Any, ...]
) -> tuple[Nonlinearity, Loss]:
    """Return nonlinearity and loss, those of a mixed pair too."""
    if "parts" in description["loss"]:
        which = dataset[PART].values.astype(np.intp)
        of_entries = which.ndim > len(labels.columns)
        which = labels.flatten(which) if of_entries else which.ravel()
        pair = mixed_from(description["loss"]["parts"], which, known)
        return pair.nonlinearity, pair.loss
    return (
        model_from("nonlinearity", description, NONLINEARITY_CLASSES, known),
        model_from("loss", description, LOSSES, known),
    )


def _start_codes(parameters: dict[str, Any]) -> list[str]:
    """Return the code of the stop reason of each start, which JSON would lose."""
    return [StopReason.of(start["stop_reason"]).code for start in parameters.get("starts", [])]


def _with_start_codes(description: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a fit, with the codes of its starts."""
    parameters: dict[str, Any] = description["parameters"]
    if "starts" not in parameters:
        return parameters
    starts, codes = parameters["starts"], description["start_codes"]
    with_codes = [
        start | {"stop_reason": StopReason.read(code, start["stop_reason"])}
        for start, code in zip(starts, codes, strict=True)
    ]
    return parameters | {"starts": with_codes}


def writable(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that JSON can hold; arrays become lists, NumPy numbers plain ones."""
    plain = {name: a.tolist() if hasattr(a, "tolist") else a for name, a in attrs.items()}
    return {str(name): a for name, a in plain.items() if isinstance(a, str | int | float | list)}


def describe(model: Model) -> dict[str, Any]:
    """Return name and parameters of a nonlinearity or a loss, for JSON."""
    if isinstance(model, MixedLoss):
        return {"name": model.name, "parts": describe_parts(model.pair)}
    if isinstance(model, MixedNonlinearity):
        return {"name": model.name}
    return {
        "name": model.name,
        "parameters": list(model.settings),
        "ours": is_ours(type(model)),
    }


def model_from(
    kind: str, description: dict[str, Any], ours: dict[str, Any], known: Iterable[type[Model]]
) -> Any:
    """Return the nonlinearity or the loss from what `describe` returned."""
    about = description[kind]
    classes = ours if about["ours"] else {cls.name: cls for cls in known}
    if about["name"] not in classes:
        remedy = "install the version that made it"
        if not about["ours"]:
            remedy = "give known=[its class], or known=[nmd.Smooth(f, name=...)] for a function"
        raise UnknownModelError(
            f"The fit uses the {kind} {about['name']!r}, which is unknown: {remedy}."
        )
    return classes[about["name"]](*about["parameters"])


def describe_parts(pair: MixedPair) -> list[dict[str, Any]]:
    """Return the parts of a mixed pair, for JSON."""
    return [
        {
            "nonlinearity": describe(part.pair.nonlinearity),
            "loss": describe(part.pair.loss),
            "units": [float(number) for number in part[1:]],
        }
        for part in pair.parts
    ]


def mixed_from(
    parts: list[dict[str, Any]], which: NDArray[np.intp], known: tuple[type[Model], ...]
) -> MixedPair:
    """Return the mixed pair from what `describe_parts` returned."""
    read = []
    for part in parts:
        f = model_from("nonlinearity", part, NONLINEARITY_CLASSES, known)
        read.append(Part(make_pair(f, model_from("loss", part, LOSSES, known)), *part["units"]))
    return MixedPair(tuple(read), which)


def which_part(pair: MixedPair, labels: Labels) -> xr.DataArray:
    """Return the positions of the parts, with the dimensions of the columns or of X."""
    if pair.which.ndim == 2:
        return xr.DataArray(labels.label(pair.which).variable)
    shape = [labels.shape[labels.dims.index(dim)] for dim in labels.columns]
    return xr.DataArray(pair.which.reshape(shape), dims=labels.columns)
