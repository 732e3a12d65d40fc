"""Checkpoints of a fit on a cluster: each part writes its own file, beside that of the client.

The files lie in the folder ``NAME.parts`` beside the checkpoint, one folder of them for each
checkpoint, and the workers must be able to write there.
"""

from __future__ import annotations

import shutil
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nmd_lab.checkpoint import file
from nmd_lab.checkpoint.encoding import Classes, Decoder, Encoder, Recipe

from .cluster import Cluster
from .part import KEPT, Part, restore, set_arrays, state_of
from .rows import ClusterRows, Column, Named

PLAIN = Classes()
"""The file of a part has arrays and numbers alone."""


class PartFiles:
    """The files of the parts beside the checkpoints of a run."""

    def __init__(self, cluster: Cluster, checkpoint: Path) -> None:
        self.cluster = cluster
        self.folder = checkpoint.resolve().with_name(f"{checkpoint.name}.parts")
        self._written: list[str] = []
        self._read: str | None = None

    @property
    def recipes(self) -> dict[type, Recipe]:
        """How a checkpoint stores matrices whose rows are in the files of the parts."""
        return {ClusterRows: (_settings, self._rows)}

    def _rows(self, name: str, columns: Any, dtype: str, ndim: int) -> ClusterRows:
        """Return a matrix whose rows have been read."""
        own = [Column(position, float(factor)) for position, factor in columns]
        return ClusterRows(Named.again(self.cluster, name), own, np.dtype(dtype), ndim)

    def write(self) -> str:
        """Let each part write its file, and return the name of their folder."""
        name = uuid.uuid4().hex
        folder = self.folder / name
        folder.mkdir(parents=True)
        self.cluster.map(write_part, str(folder))
        self.cluster.settle(partial(read_again, folder=str(folder)))
        self._written.append(name)
        return name

    def clean(self) -> None:
        """Remove what is older than the last two checkpoints."""
        for name in self._written[:-2]:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        del self._written[:-2]

    def read(self, name: str) -> None:
        """Let each part read its file."""
        folder = self.folder / name
        found = len(list(folder.glob("*.part"))) if folder.is_dir() else 0
        if found != len(self.cluster):
            raise ValueError(
                f"checkpoint= has {found} parts in {str(folder)!r}, and X has "
                f"{len(self.cluster)}: give a cluster of as many workers as before."
            )
        self._written.append(name)
        self.cluster.map(read_part, str(folder), changes=True)


def _settings(rows: ClusterRows) -> tuple[Any, ...]:
    """Return what makes a matrix again whose rows have been read."""
    columns = [[column.position, column.factor] for column in rows.columns]
    return rows.name, columns, rows.dtype.str, rows.ndim


def write_part(part: Part, folder: str) -> tuple[()]:
    """Write the file of a part."""
    encoder = Encoder(PLAIN)
    state = encoder.encode(state_of(part))
    file.write(_path(part, folder), {"state": state}, encoder.arrays)
    return ()


def stored_state(part: Part, folder: str) -> dict[str, Any]:
    """Return what the file of a part holds."""
    header, arrays = file.read(_path(part, folder))
    state: dict[str, Any] = Decoder(PLAIN, arrays).decode(header["state"])
    return state


def read_part(part: Part, folder: str) -> tuple[()]:
    """Take the matrices of a file into a part, and keep T and U for the sweeps to come."""
    state = stored_state(part, folder)
    part.objects.update(state["arrays"])
    part.objects |= {KEPT + name: own for name, own in state["sweeps"].items()}
    return ()


def take_sweep(part: Part, name: str, before: str) -> tuple[()]:
    """Set T and U of a sweep to those that were read for an earlier one."""
    set_arrays(part.objects[name], part.objects.pop(KEPT + before))
    return ()


def read_again(part: Part, folder: str) -> None:
    """Set the state of a part that was made again to that of its file."""
    restore(part, stored_state(part, folder))


def _path(part: Part, folder: str) -> Path:
    return Path(folder) / f"{part.place.number}.part"
