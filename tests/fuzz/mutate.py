"""Damage the bytes of a file at random, as disks, transfers and editors do.

>>> import numpy as np
>>> from fuzz.mutate import mutated
>>> mutated(b"1,2,3", np.random.default_rng(0)) == mutated(b"1,2,3", np.random.default_rng(0))
True
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import numpy as np

HEAD = 512
"""Number of first bytes, which hold most headers, and which half of the changes hit."""

NUMBERS = (b"0", b"-1", b"1", b"255", b"2147483647", b"2147483648", b"99999999999999999999", b"nan",
           b"inf", b"1e400")  # fmt: skip
"""Text that a reader may take for a number at a limit."""


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a damaged copy of the contents of a file.

    Parameters
    ----------
    data : bytes
        Contents of a valid file.
    rng : Generator
        Source of randomness; the same state gives the same damage.

    Returns
    -------
    bytes
        Contents after one to four changes: flipped bits, other bytes, runs of one byte, a part that
        is missing, doubled or exchanged, another number, or an end that is cut off.
    """
    out = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        change = CHANGES[int(rng.integers(len(CHANGES)))]
        if out:
            change(out, rng)
    return bytes(out)


def with_mutated_member(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a zip archive one file of which is `mutated`, with checksums that fit."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as damaged:
        names = archive.namelist()
        chosen = names[int(rng.integers(len(names)))]
        for name in names:
            content = archive.read(name)
            damaged.writestr(name, mutated(content, rng) if name == chosen else content)
    return out.getvalue()


def _place(out: bytearray, rng: np.random.Generator) -> int:
    """Return a position, often near the beginning or the end."""
    where = rng.random()
    if where < 0.5:
        return int(rng.integers(min(len(out), HEAD)))
    if where < 0.65:
        return len(out) - 1 - int(rng.integers(min(len(out), HEAD)))
    return int(rng.integers(len(out)))


def _flip_bit(out: bytearray, rng: np.random.Generator) -> None:
    out[_place(out, rng)] ^= 1 << int(rng.integers(8))


def _other_byte(out: bytearray, rng: np.random.Generator) -> None:
    out[_place(out, rng)] = int(rng.integers(256))


def _several_bytes(out: bytearray, rng: np.random.Generator) -> None:
    for _ in range(int(rng.integers(2, 17))):
        _other_byte(out, rng)


def _run(out: bytearray, rng: np.random.Generator) -> None:
    at, size = _place(out, rng), int(rng.choice([4, 8, 64]))
    size = min(size, len(out) - at)
    out[at : at + size] = bytes([int(rng.choice([0, 255, 127, 57]))]) * size


def _cut_end(out: bytearray, rng: np.random.Generator) -> None:
    del out[_place(out, rng) :]


def _cut_part(out: bytearray, rng: np.random.Generator) -> None:
    at = _place(out, rng)
    del out[at : at + int(rng.integers(1, 65))]


def _double_part(out: bytearray, rng: np.random.Generator) -> None:
    at = _place(out, rng)
    out[at:at] = out[at : at + int(rng.integers(1, 257))]


def _exchange(out: bytearray, rng: np.random.Generator) -> None:
    one, other = _place(out, rng), _place(out, rng)
    out[one], out[other] = out[other], out[one]


def _number(out: bytearray, rng: np.random.Generator) -> None:
    """Put another number where digits are, or anywhere in a file without digits nearby."""
    at = _place(out, rng)
    end = at
    while end < len(out) and chr(out[end]).isdigit():
        end += 1
    out[at : max(end, at + 1)] = NUMBERS[int(rng.integers(len(NUMBERS)))]


CHANGES: tuple[Callable[[bytearray, np.random.Generator], None], ...] = (
    _flip_bit, _flip_bit, _other_byte, _several_bytes, _run, _cut_end, _cut_part, _double_part,
    _exchange, _number,
)  # fmt: skip
"""Kinds of damage; a kind that comes twice is as likely as two."""
