"""Checkpoints of the partitions, which each writes into a file of its own.

The files are in the folder ``NAME.parts`` with the file of the client, one folder of them for each
checkpoint, and the workers must be able to write there.
"""

from __future__ import annotations

import shutil
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nmd_lab.checkpoint.checkpoint import read_file, write_file
from nmd_lab.checkpoint.encoding import Classes, Decoder, Encoder, Recipe

from .cluster import Cluster
from .partition import Partition
from .rows import ClusterRows, Column, Named

READ = "read "
"""Beginning of the name of a state that was read for a sweep to come."""


def state_of(partition: Partition) -> dict[str, Any]:
    """Return T, U and the like of the sweeps, the matrices, and the names of all objects."""
    objects = partition.objects
    sweeps = {name: arrays_of(each) for name, each in objects.items() if hasattr(each, "now")}
    arrays = {name: each for name, each in objects.items() if isinstance(each, np.ndarray)}
    read = {name: each for name, each in objects.items() if name.startswith(READ)}
    return {"sweeps": sweeps, "arrays": arrays, "read": read, "names": list(objects)}


def arrays_of(sweep: Any) -> dict[str, Any]:
    """Return T, U and the like of a sweep."""
    get = sweep.split_variable.device.get
    numbers = {name: each for name, each in vars(sweep.now).items() if isinstance(each, float)}
    arrays = {name: each for name, each in vars(sweep.now).items() if name not in numbers}
    return numbers | {name: None if each is None else get(each) for name, each in arrays.items()}


def set_arrays(sweep: Any, arrays: dict[str, Any]) -> None:
    """Set what `arrays_of` has returned."""
    vars(sweep.now).update(arrays)
    sweep.now.on(sweep.split_variable.device)


def restore(partition: Partition, state: dict[str, Any]) -> None:
    """Set what `state_of` has returned."""
    for name, arrays in state["sweeps"].items():
        set_arrays(partition.objects[name], arrays)
    partition.objects |= state["arrays"] | state["read"]
    partition.objects = {
        name: partition.objects[name] for name in state["names"] if name in partition.objects
    }


PLAIN = Classes()
"""The file of a partition has arrays and numbers alone."""


class PartitionFiles:
    """The files of the partitions that belong to the checkpoints of a run."""

    def __init__(self, cluster: Cluster, checkpoint: Path) -> None:
        self.cluster = cluster
        self.folder = checkpoint.resolve().with_name(f"{checkpoint.name}.parts")
        self._written: list[str] = []
        self._read: str | None = None

    @property
    def recipes(self) -> dict[type, Recipe]:
        """How a checkpoint stores matrices whose rows are in the files of the partitions."""
        return {ClusterRows: (_settings, self._rows)}

    def _rows(self, name: str, columns: Any, dtype: str, ndim: int) -> ClusterRows:
        """Return a matrix whose rows have been read."""
        all_columns = [Column(position, float(factor)) for position, factor in columns]
        return ClusterRows(Named.again(self.cluster, name), all_columns, np.dtype(dtype), ndim)

    def write(self) -> str:
        """Let each partition write its file, and return the name of their folder."""
        name = uuid.uuid4().hex
        folder = self.folder / name
        folder.mkdir(parents=True)
        self.cluster.map(write_partition, str(folder))
        self.cluster.settle(partial(read_again, folder=str(folder)))
        self._written.append(name)
        return name

    def clean(self) -> None:
        """Remove what is older than the last two checkpoints."""
        for name in self._written[:-2]:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        del self._written[:-2]

    def read(self, name: str) -> None:
        """Let each partition read its file."""
        folder = self.folder / name
        found = len(list(folder.glob("*.part"))) if folder.is_dir() else 0
        if found != len(self.cluster):
            raise ValueError(
                f"checkpoint= has {found} partitions in {str(folder)!r}, and X has "
                f"{len(self.cluster)}: give a cluster of as many workers as before."
            )
        self._written.append(name)
        self.cluster.map(read_partition, str(folder), changes=True)


def _settings(rows: ClusterRows) -> tuple[Any, ...]:
    """Return what makes a matrix again whose rows have been read."""
    columns = [[column.position, column.factor] for column in rows.columns]
    return rows.name, columns, rows.dtype.str, rows.ndim


def write_partition(partition: Partition, folder: str) -> tuple[()]:
    """Write the file of a partition."""
    encoder = Encoder(PLAIN)
    state = encoder.encode(state_of(partition))
    write_file(_path(partition, folder), {"state": state}, encoder.arrays)
    return ()


def stored_state(partition: Partition, folder: str) -> dict[str, Any]:
    """Return what the file of a partition holds."""
    header, arrays = read_file(_path(partition, folder))
    state: dict[str, Any] = Decoder(PLAIN, arrays).decode(header["state"])
    return state


def read_partition(partition: Partition, folder: str) -> tuple[()]:
    """Take the matrices of a file into a partition, and keep T and U for the sweeps to come."""
    state = stored_state(partition, folder)
    partition.objects.update(state["arrays"])
    partition.objects |= {READ + name: arrays for name, arrays in state["sweeps"].items()}
    return ()


def read_again(partition: Partition, folder: str) -> None:
    """Set the state of a partition that was made again to that of its file."""
    restore(partition, stored_state(partition, folder))


def _path(partition: Partition, folder: str) -> Path:
    return Path(folder) / f"{partition.place.number}.part"


def take_sweep(partition: Partition, name: str, before: str) -> tuple[()]:
    """Set T and U of a sweep to those that were read for an earlier one."""
    set_arrays(partition.objects[name], partition.objects.pop(READ + before))
    return ()
