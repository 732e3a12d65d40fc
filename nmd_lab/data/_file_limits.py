"""Bounds on what a file may unpack to, and errors that name the file."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nmd_lab._checks import check_integer


@dataclass(frozen=True)
class FileLimits:
    """Contents that are in proportion to the size of a file.

    Attributes
    ----------
    free : int
        Number of bytes that any file may take in memory.
    ratio : float
        Largest ratio of the bytes in memory to those on disk, above `free`.
    """

    free: int = 2**25
    ratio: float = 100


FILE_LIMITS = FileLimits()


class FileError(ValueError):
    """A file cannot be read; the message is complete."""


def largest_contents(path: Path, max_bytes: int | str | None) -> float:
    """Return the largest number of bytes that the contents of a file may take in memory.

    Parameters
    ----------
    path : Path
        File.
    max_bytes : int, "auto" or None
        The number itself; "auto" takes `FILE_LIMITS`, None allows any.
    """
    if max_bytes is None:
        return float("inf")
    if max_bytes == "auto":
        return max(FILE_LIMITS.free, FILE_LIMITS.ratio * path.stat().st_size)
    return check_integer("max_bytes", max_bytes, 1)


def check_contents(path: Path, n_bytes: float, largest: float) -> None:
    """Raise ValueError if the contents of a file take more than `largest` bytes."""
    if n_bytes > largest:
        raise FileError(
            f"file={str(path)!r} holds {path.stat().st_size} bytes that unpack to more than "
            f"{largest:.0f}: pass max_bytes=None if you trust it."
        )


def read_bytes(path: Path, largest: float, chunk: int = 2**24) -> bytes:
    """Return the contents of a file, decompressed if its name ends in .gz.

    Raises
    ------
    ValueError
        If there are more than `largest` bytes.
    """
    if path.suffix != ".gz":
        check_contents(path, path.stat().st_size, largest)
        return path.read_bytes()
    parts, size = [], 0
    with gzip.open(path) as stream:
        while part := stream.read(chunk):
            parts.append(part)
            size += len(part)
            check_contents(path, size, largest)
    return b"".join(parts)


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Turn any error of a reader into a ValueError of one sentence that names the file.

    The libraries that read files raise almost any error for a damaged one, zlib.error and KeyError
    among them.  What they warn of is ignored, unless it is an error here.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (FileError, ImportError):
        raise
    except Exception as error:
        text = str(error) if type(error) is not KeyError else f"no {error}"
        text = " ".join(text.split()).removeprefix("Error tokenizing data. C error: ")
        sentence = text.partition(". ")[0].partition(": build it")[0]
        reason = sentence.rstrip(".:") or type(error).__name__
        raise FileError(
            f"file={str(path)!r} cannot be read: {reason}; check it, or write it anew."
        ) from error
