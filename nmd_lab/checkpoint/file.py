"""The file of a checkpoint: a header in JSON, arrays as they lie in memory, and a checksum.

The layout is: the mark, the length of the header (8 bytes, little-endian), the header in JSON, the
bytes of each array in C or Fortran order, and the SHA-256 of all that.  A new checkpoint is written
beside the present one, which becomes the earlier one (``NAME.earlier``); so one of both is always
whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._atomic import write_atomically

MARK = b"nmd_lab checkpoint 1\n"
DIGEST = 32
CHUNK = 1 << 24


class Content(NamedTuple):
    """What a checkpoint holds.

    Attributes
    ----------
    header : dict
        Plain values.
    arrays : list of ndarray
        Arrays, in C or Fortran order.
    """

    header: dict[str, Any]
    arrays: list[NDArray[Any]]


class DamagedCheckpointError(ValueError):
    """Raised for a file that is no whole checkpoint."""


def earlier(path: Path) -> Path:
    """Return the path of the checkpoint before the last one."""
    return path.with_name(f"{path.name}.earlier")


def exists(path: Path) -> bool:
    """Return whether there is a checkpoint, or the one before it."""
    return path.exists() or earlier(path).exists()


def write(path: Path, content: Content) -> None:
    """Write a checkpoint; the present one becomes the earlier one."""
    if path.exists():
        _keep(path, earlier(path))
    write_atomically(path, _parts(content))


def read(path: Path) -> Content:
    """Return the last checkpoint that is whole."""
    for candidate in (path, earlier(path)):
        with contextlib.suppress(OSError, DamagedCheckpointError):
            return _read(candidate)
    raise DamagedCheckpointError(
        f"checkpoint={str(path)!r} is damaged, or nmd_lab did not write it, and there is no whole "
        "earlier one: remove it to begin anew."
    )


def _keep(path: Path, name: Path) -> None:
    """Give a file a second name; where a file system has no links, its only one."""
    link = name.with_name(f".{name.name}.link")
    try:
        link.unlink(missing_ok=True)
        os.link(path, link)
        link.replace(name)
    except OSError:
        path.replace(name)


def _parts(content: Content) -> Iterator[bytes | memoryview]:
    about = [
        {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "order": "C" if array.flags.c_contiguous else "F",
        }
        for array in content.arrays
    ]
    header = json.dumps({"arrays": about, "header": content.header}).encode()
    digest = hashlib.sha256()
    part: Any
    for part in (MARK, len(header).to_bytes(8, "little"), header):
        digest.update(part)
        yield part
    for array in content.arrays:
        flat: Any = array.ravel(order="K").view(np.uint8)
        for first in range(0, flat.size, CHUNK):
            part = memoryview(flat[first : first + CHUNK])
            digest.update(part)
            yield part
    yield digest.digest()


def _read(path: Path) -> Content:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.sha256()

        def take(length: int) -> bytes:
            part = file.read(length)
            if len(part) < length:
                raise DamagedCheckpointError(f"{path.name} is cut short")
            digest.update(part)
            return part

        if take(len(MARK)) != MARK:
            raise DamagedCheckpointError(f"{path.name} is no checkpoint")
        length = int.from_bytes(take(8), "little")
        if length > size:
            raise DamagedCheckpointError(f"{path.name} is cut short")
        try:
            content = json.loads(take(length))
            arrays = []
            for about in content["arrays"]:
                dtype, shape = np.dtype(about["dtype"]), tuple(about["shape"])
                count = int(np.prod(shape, dtype=np.int64))
                if dtype.hasobject or not 0 <= count * dtype.itemsize <= size:
                    raise DamagedCheckpointError(f"{path.name} is cut short")
                array = np.empty(count, dtype)
                raw: Any = array.view(np.uint8)
                _fill(memoryview(raw), take)
                arrays.append(array.reshape(shape, order=about["order"]))
            header = content["header"]
        except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise DamagedCheckpointError(f"{path.name} is damaged") from error
        if file.read(DIGEST + 1) != digest.digest():
            raise DamagedCheckpointError(f"{path.name} is damaged")
    return Content(header, arrays)


def _fill(memory: memoryview, take: Any) -> None:
    """Read bytes into memory, part by part."""
    for first in range(0, len(memory), CHUNK):
        part = memory[first : first + CHUNK]
        part[:] = take(len(part))
