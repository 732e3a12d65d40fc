"""A decomposition as one Dataset, and a Dataset as one file, both ways."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from .labels import COMPONENT, Labels
from .losses import LOSSES
from .nonlinearities import NONLINEARITIES

if TYPE_CHECKING:
    from .decomposition import Decomposition

SCHEMA = 1
"""Version of the layout of saved files."""


def to_dataset(fit: Decomposition) -> xr.Dataset:
    """Return everything as one Dataset, with the description in ``attrs["nmd_lab"]``."""
    description = {
        "schema": SCHEMA,
        "nonlinearity": [fit.nonlinearity.name, *fit.nonlinearity.parameters],
        "loss": [fit.loss.name, *fit.loss.parameters],
        "stop_reason": fit.stop_reason,
        "parameters": fit.parameters,
        "dims": fit.labels.dims,
        "rows": fit.labels.rows,
        "name": fit.labels.name,
    }
    dataset = xr.Dataset({"W": fit.W, "H": fit.H}).merge(fit.history)
    dataset = dataset.assign_coords(fit.labels.coords.coords)
    return dataset.assign_attrs(nmd_lab=json.dumps(description))


def from_dataset(dataset: xr.Dataset) -> dict[str, Any]:
    """Return the fields of the decomposition that `to_dataset` described.

    Raises
    ------
    ValueError
        If the Dataset is not one of ours, or of a newer layout.
    """
    if "nmd_lab" not in dataset.attrs:
        raise ValueError("dataset holds no decomposition: it has no attribute 'nmd_lab'.")
    description = json.loads(dataset.attrs["nmd_lab"])
    if description["schema"] > SCHEMA:
        raise ValueError(
            f"dataset has the layout {description['schema']}, this version reads up to "
            f"{SCHEMA}: install a newer nmd_lab."
        )
    f_name, *f_parameters = description["nonlinearity"]
    d_name, *d_parameters = description["loss"]
    for kind, name, known in (("nonlinearity", f_name, NONLINEARITIES), ("loss", d_name, LOSSES)):
        if name not in known:
            raise ValueError(f"dataset uses the {kind} {name!r}, which is not one of ours.")
    history = [name for name, v in dataset.data_vars.items() if v.dims == ("iteration",)]
    return {
        "W": dataset["W"].drop_attrs(),
        "H": dataset["H"].drop_attrs(),
        "nonlinearity": NONLINEARITIES[f_name](*f_parameters),
        "loss": LOSSES[d_name](*d_parameters),
        "history": dataset[history].drop_attrs(),
        "stop_reason": description["stop_reason"],
        "parameters": description["parameters"],
        "labels": Labels(
            dims=tuple(description["dims"]),
            shape=tuple(dataset.sizes[dim] for dim in description["dims"]),
            rows=tuple(description["rows"]),
            coords=dataset.coords.to_dataset().drop_vars([COMPONENT, "iteration"]),
            name=description["name"],
        ),
    }


def write(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write one NetCDF file; a crash leaves an older file of that name whole."""
    path = Path(path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        unfinished = Path(folder) / path.name
        dataset.to_netcdf(unfinished, engine=_engine())
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        unfinished.replace(path)


def read(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read a file that `write` wrote."""
    if not Path(path).exists():
        raise FileNotFoundError(f"path={str(path)!r} does not exist: check the name.")
    try:
        with xr.open_dataset(path, engine=_engine()) as dataset:
            return dataset.load()
    except (OSError, KeyError) as error:
        raise ValueError(f"path={str(path)!r} holds no decomposition that can be read.") from error


def _engine() -> Any:
    """Return the NetCDF engine, or say how to get it."""
    try:
        import h5netcdf  # noqa: F401  (only to find out whether it is there)
    except ImportError as error:
        raise ImportError("Saving and loading need h5netcdf: pip install 'nmd-lab[io]'.") from error
    return "h5netcdf"
