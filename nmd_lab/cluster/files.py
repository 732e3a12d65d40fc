"""Files of the partitions that belong to the checkpoints of a run.

They are in the folder ``NAME.parts`` with the file of the client, one folder of them for each
checkpoint, and the workers must be able to write there.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path
from typing import Any

from nmd_lab.checkpoint import Classes, Decoder, Encoder, Recipe, read_file, write_file
from nmd_lab.data.entries import FloatArray

from .partitions import Partitions
from .rows import ClusterRows, RowProducts
from .sweeps import ClusterEntries, PartitionSweep


class PartitionFiles:
    """The files of the partitions of a run."""

    def __init__(self, partitions: Partitions, checkpoint: Path) -> None:
        self.partitions = partitions
        self.folder = checkpoint.resolve().with_name(f"{checkpoint.name}.parts")
        self._written: list[str] = []
        self._to_write: list[list[Any]] = []
        self._sweeps: list[Any] | None = None
        self._read: list[list[Any]] = []

    @property
    def recipes(self) -> dict[type, Recipe]:
        """How a checkpoint stores what the files of the partitions hold."""
        return {
            ClusterRows: (self._of_rows, self._rows),
            ClusterEntries: (self._of_entries, self._entries),
        }

    def _of_rows(self, rows: ClusterRows) -> tuple[Any, ...]:
        """Return what makes a matrix again, and note its blocks."""
        known = [each is rows.blocks for each in self._to_write]
        if not any(known):
            self._to_write.append(rows.blocks)
        number = known.index(True) if any(known) else len(known)
        return number, rows.columns, rows.dtype.str, rows.ndim, rows.products

    def _rows(
        self, number: int, columns: Any, dtype: str, ndim: int, products: RowProducts | None
    ) -> ClusterRows:
        """Return a matrix whose rows have been read."""
        blocks = self._read[number + 1]
        return ClusterRows(self.partitions, blocks, columns, dtype, ndim, products)

    def _of_entries(self, entries: ClusterEntries) -> tuple[float]:
        """Return what the client has of T and U, and note them."""
        self._sweeps = entries.sweeps
        return (entries.norm_of_initial_T,)

    def _entries(self, norm_of_initial_T: float) -> ClusterEntries:
        """Return T and U that have been read."""
        return ClusterEntries(norm_of_initial_T, self._read[0])

    def write(self) -> str:
        """Let each partition write what has been noted, and return the name of their folder."""
        name = uuid.uuid4().hex
        folder = self.folder / name
        local = [self._sweeps or [None] * len(self.partitions), *self._to_write]
        self._sweeps, self._to_write, self._read = None, [], []
        folder.mkdir(parents=True)
        self.partitions.answers(write_partition, self._paths(folder), *local)
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
        if found != len(self.partitions):
            raise ValueError(
                f"checkpoint= has {found} partitions in {str(folder)!r}, and X has "
                f"{len(self.partitions)}: give a cluster of as many workers as before."
            )
        self._written.append(name)
        files = self.partitions.map(read_partition, self._paths(folder))
        (most, *_) = self.partitions.answers(len, files)
        self._read = [self.partitions.map(part_of, files, shared=(k,)) for k in range(most)]

    def _paths(self, folder: Path) -> list[str]:
        return [str(folder / f"{number}.part") for number in range(len(self.partitions))]


PLAIN = Classes()
"""The file of a partition has arrays and numbers alone."""


def write_partition(path: str, sweep: PartitionSweep | None, *blocks: FloatArray) -> None:
    """Write T and U of a partition, and its rows of matrices."""
    encoder = Encoder(PLAIN)
    state = encoder.encode([None if sweep is None else vars(sweep.sweep.state), *blocks])
    write_file(Path(path), {"state": state}, encoder.arrays)


def read_partition(path: str) -> list[Any]:
    """Return what `write_partition` has written."""
    header, arrays = read_file(Path(path))
    state: list[Any] = Decoder(PLAIN, arrays).decode(header["state"])
    return state


def part_of(state: list[Any], number: int) -> Any:
    """Return a part of what a file holds."""
    return state[number]
