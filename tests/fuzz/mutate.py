"""Damaged copies of files: bits, bytes, pieces and numbers, also inside of archives."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
from collections.abc import Callable

import numpy as np

EXTREMES = (
    b"\x00",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\xff\xff\xff\x7f",
    b"\xff" * 8,
    b"\x00" * 8,
    b"\n",
)
NUMBERS = (
    *(b"-1", b"0", b"1e999", b"nan", b"2147483648", b"99999999999999999999", b"1e-400", b"", b"x"),
    *(b"4294967296", b'"', b",", b"1,1", b"inf", b"null", b"[]", b"{}", b"1" * 400, b"true"),
)


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a damaged copy of the content of a file.

    Half of the gzip files and zip archives are damaged inside, and packed again with the right
    checksums, so that the damage reaches the reader behind them.

    Parameters
    ----------
    data : bytes
        Content of an intact file.
    rng : Generator
        Random numbers.
    """
    if data[:2] == b"\x1f\x8b" and rng.random() < 0.5:
        return gzip.compress(mutated(gzip.decompress(data), rng), 1, mtime=0)
    if data[:2] == b"PK" and rng.random() < 0.7:
        return _inside_zip(data, rng)
    for _ in range(int(rng.choice([1, 1, 2, 4, 8]))):
        data = CHANGES[rng.integers(len(CHANGES))](data, rng)
    return data


def _inside_zip(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a zip archive with one damaged, missing or renamed member."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    k = int(rng.integers(len(members)))
    name, content = members[k]
    fate = rng.random()
    if fate < 0.05:
        members.pop(k)
    elif fate < 0.1:
        members[k] = (f"_{name}", content)
    elif fate < 0.15:
        members.append((name[:-4] + "2.npy", content))
    elif fate < 0.2:
        members[k] = (name, members[int(rng.integers(len(members)))][1])
    else:
        members[k] = (name, mutated(content, rng))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as new:
        for name, content in members:
            new.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    if changed:
        changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _extreme(data: bytes, rng: np.random.Generator) -> bytes:
    value = EXTREMES[rng.integers(len(EXTREMES))]
    at = int(rng.integers(len(data) + 1))
    return data[:at] + value + data[at + len(value) :]


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def _delete(data: bytes, rng: np.random.Generator) -> bytes:
    at, size = int(rng.integers(len(data) + 1)), int(rng.integers(1, 40))
    return data[:at] + data[at + size :]


def _insert(data: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] + rng.bytes(int(rng.integers(1, 20))) + data[at:]


def _repeat(data: bytes, rng: np.random.Generator) -> bytes:
    at, size = int(rng.integers(len(data) + 1)), int(rng.integers(1, 200))
    return data[:at] + data[at : at + size] * int(rng.integers(2, 5)) + data[at + size :]


def _swap(data: bytes, rng: np.random.Generator) -> bytes:
    a, b = sorted(int(i) for i in rng.integers(len(data) + 1, size=2))
    size = min(b - a, 16)
    return (
        data[:a] + data[b : b + size] + data[a + size : b] + data[a : a + size] + data[b + size :]
    )


def _number(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace a number in a text."""
    found = [match.span() for match in re.finditer(rb"-?\d+(\.\d+)?", data[:20_000])]
    if not found:
        return _flip(data, rng)
    start, end = found[rng.integers(len(found))]
    return data[:start] + NUMBERS[rng.integers(len(NUMBERS))] + data[end:]


def _near_the_start(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a byte of the header."""
    changed = bytearray(data)
    if changed:
        changed[rng.integers(min(len(changed), 256))] = int(rng.integers(256))
    return bytes(changed)


CHANGES: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    *(_flip, _flip, _flip, _extreme, _cut, _delete, _insert, _repeat, _swap),
    *(_number, _number, _near_the_start),
)
"""The kinds of damage; the frequent ones several times."""
