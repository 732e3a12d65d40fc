"""Conversion of a decomposition to one labelled Dataset, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

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

from .factors import Factors
from .netcdf import SCHEMA
from .selection import trials_of

Model = Nonlinearity | Loss


class UnknownContentError(ValueError):
    """Raised for a model whose class is not known, and for a layout that is newer."""


ITERATION = "iteration"
OFFSET_NAMES = ("row_offsets", "column_offsets")
PART = "part"
"""Name of the variable that says which part of a mixed pair a column, or an entry, has."""


def to_dataset(fit: Factors) -> xr.Dataset:
    """Return all fields as one Dataset; ``attrs["nmd_lab"]`` has the plain values, as JSON."""
    history, labels, offsets = fit.history, fit.labels, fit.offsets
    taken = {"W", "H", COMPONENT, PART, *OFFSET_NAMES, *map(str, history.variables)}
    renamed = labels.clashes(taken)
    labels = labels.rename(renamed)
    description = describe_result(fit, labels, renamed) | {
        "table": None if labels.table is None else labels.table.describe(),
        "n_iter": history.sizes[ITERATION],
        "seconds": float(history["seconds"][-1]),
        "start_codes": _start_codes(fit.parameters),
        "mean_offset": offsets.mean,
    }
    W, H = labels.label_factors(*fit.factors)
    dataset = xr.Dataset({"W": W, "H": H}).merge(history)
    for name, factor, values in zip(OFFSET_NAMES, (W, H), offsets[1:], strict=True):
        if values is not None:
            dims = tuple(dim for dim in factor.dims if dim != COMPONENT)
            dataset[name] = dims, values.reshape([factor.sizes[dim] for dim in dims])
    if fit.loss.pair is not None:
        dataset[PART] = which_part(fit.loss.pair, labels)
    dataset = dataset.assign_coords(labels.coords.coords)
    return dataset.assign_attrs({RESULT_ATTRIBUTE: json.dumps(description)})


def from_dataset(dataset: xr.Dataset, known: Iterable[type[Model] | Model] = ()) -> dict[str, Any]:
    """Return the fields of the decomposition that `to_dataset` described."""
    with refused_as("dataset holds no decomposition: give one that to_dataset() made."):
        description = description_of(dataset)
        classes = tuple(model if isinstance(model, type) else type(model) for model in known)
        return _fields(dataset, description, classes)


def _fields(
    dataset: xr.Dataset, description: dict[str, Any], known: tuple[type[Model], ...]
) -> dict[str, Any]:
    """Return the fields of a decomposition, given the description of it in the Dataset."""
    history = {name: v.variable for name, v in dataset.data_vars.items() if v.dims == (ITERATION,)}
    common = fields_of_result(dataset, [COMPONENT, ITERATION], description, known)
    trials_of(description["parameters"])  # raises an error if they are damaged
    rank = dataset.sizes[COMPONENT]
    W = dataset["W"].values.reshape(-1, rank)
    H = dataset["H"].values.reshape(rank, -1)
    labelled_W, labelled_H = common["labels"].label_factors(W, H)
    return common | {
        "W": labelled_W,
        "H": labelled_H,
        "history": xr.Dataset(history, {ITERATION: dataset[ITERATION].variable}),
        "parameters": _with_start_codes(description),
        "offsets": Offsets(
            description["mean_offset"],
            *(dataset[name].values.ravel() if name in dataset else None for name in OFFSET_NAMES),
        ),
    }


def describe_result(result: Any, labels: Labels, renamed: dict[str, str]) -> dict[str, Any]:
    """Return what every result has, for JSON; `labels` have the new names of `renamed`."""
    return {
        "schema": SCHEMA,
        "nonlinearity": describe(result.nonlinearity),
        "loss": describe(result.loss),
        "stop_reason": str(result.stop_reason),
        "stop_code": result.stop_reason.code,
        "parameters": result.parameters,
        "dims": labels.dims,
        "rows": labels.rows,
        "name": labels.name,
        "attrs": writable(labels.attrs),
        "renamed": {new: old for old, new in renamed.items()},
    }


def description_of(dataset: xr.Dataset) -> dict[str, Any]:
    """Return the description in a Dataset; its layout must not be newer than this version."""
    description: dict[str, Any] = json.loads(dataset.attrs[RESULT_ATTRIBUTE])
    if description["schema"] > SCHEMA:
        raise UnknownContentError(
            f"dataset has the layout {description['schema']}, this version reads up to "
            f"{SCHEMA}: install a newer nmd_lab."
        )
    return description


def fields_of_result(
    dataset: xr.Dataset,
    counts: Iterable[str],
    description: dict[str, Any],
    known: tuple[type[Model], ...],
) -> dict[str, Any]:
    """Return the fields that every result has; `counts` are no labels of X."""
    labels = labels_from(dataset.drop_vars(counts, errors="ignore").coords, description)
    nonlinearity, loss = _models(dataset, description, labels, known)
    return {
        "labels": labels,
        "nonlinearity": nonlinearity,
        "loss": loss,
        "stop_reason": StopReason.read(description["stop_code"], description["stop_reason"]),
        "parameters": description["parameters"],
    }


def labels_from(coords: Any, description: dict[str, Any]) -> Labels:
    """Return the labels of X, given its coordinates and the description of the result."""
    dims = tuple(description["dims"])
    return Labels(
        dims=dims,
        shape=tuple(coords.sizes[dim] for dim in dims),
        rows=tuple(description["rows"]),
        coords=xr.Dataset().assign_coords(coords),
        name=description["name"],
        attrs=description["attrs"],
        table=None if description.get("table") is None else TypedTable.read(description["table"]),
    ).rename(description["renamed"])


@contextmanager
def refused_as(sentence: str) -> Iterator[None]:
    """Turn the errors to which a wrong description leads into one ValueError."""
    try:
        yield
    except UnknownContentError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(sentence) from error


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
    """Return the parameters of a fit, with the codes of its starts if the file has them."""
    parameters: dict[str, Any] = description["parameters"]
    starts, codes = parameters.get("starts", []), description.get("start_codes", [])
    if not starts or len(starts) != len(codes):
        return parameters
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
            remedy = "give known=[its class], or known=[nonlinearities.Smooth(f, name=...)]"
        raise UnknownContentError(
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
