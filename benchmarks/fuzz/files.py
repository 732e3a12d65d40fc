"""Part `readers`: damaged files, each read in a child under limits of memory and time."""

from __future__ import annotations

import faulthandler
import gzip
import io
import os
import re
import resource
import signal
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import mmwrite

import nmd_lab
from nmd_lab.data.readers import read_matrix

from .faults import answered, kind_of
from .matrices import Array, frame, levels

SECONDS = 20
"""Time after which a reader hangs; an intact file takes a hundredth of a second."""

MEMORY = 1 << 30
"""Bytes that a reader may take; an intact file has some kilobytes."""

ALLOWED = (ValueError, OSError, KeyError)
"""What the readers document."""


@cache
def _matrix() -> Array:
    X = np.random.default_rng(0).integers(0, 50, (7, 6)) / 4
    return np.where(X == 1, 0, X)


def _csr() -> sparse.csr_array:
    return sparse.csr_array(_matrix() * (np.random.default_rng(1).random((7, 6)) < 0.4))


def _missing() -> Array:
    return np.where(_matrix() == 0, np.nan, _matrix())


def _written(write: Callable[[Any, Any], Any], *values: Any) -> list[bytes]:
    files = [io.BytesIO() for _ in values]
    for file, value in zip(files, values, strict=True):
        write(file, value)
    return [file.getvalue() for file in files]


def _npy() -> list[bytes]:
    X = _matrix()
    return _written(np.save, X, np.asfortranarray(X.astype("f4")), X.astype(">i2"))


def _npz() -> list[bytes]:
    csr = _csr()
    stored = [csr, csr.tocsc(), csr.tocoo(), csr.tobsr((1, 1)), csr.todia()]
    dense = _written(np.savez, _matrix()) + _written(np.savez_compressed, _matrix())
    return dense + _written(sparse.save_npz, *stored)


def _mtx() -> list[bytes]:
    pattern = b"%%MatrixMarket matrix coordinate pattern general\n3 4 3\n1 1\n2 3\n3 4\n"
    symmetric = b"%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n1 1 4\n2 1 5\n3 2 6\n"
    return [*_written(mmwrite, _matrix(), _csr().tocoo()), pattern, symmetric]


def _csv(separator: str = ",") -> list[bytes]:
    flags = [(True, True), (False, False), (True, False), (False, True)]
    table = frame(_missing())
    return [table.to_csv(sep=separator, index=i, header=h).encode() for i, h in flags]


def _long() -> list[bytes]:
    rows, columns = np.nonzero(_matrix())
    table = {"user": rows, "item": columns, "rating": _matrix()[rows, columns]}
    return [pd.DataFrame(table).to_csv().encode()]


@cache
def _results() -> list[bytes]:
    """Return saved fits, posteriors and a study."""
    fitted = {"max_iter": 3, "tol": 0, "random_state": 0}
    drawn = {"draws": 3, "tune": 2, "chains": 2, "random_state": 0}
    X = frame(_missing())
    dates = pd.date_range("2026-03-28", periods=len(X), tz="Europe/Rome")
    classes = [pd.Categorical([*"abcabca"], ordered=ordered) for ordered in (False, True)]
    labelled = X, levels(_missing()), X.set_axis(dates)
    fits = [nmd_lab.complete(each, 2, offsets="rows", **fitted) for each in labelled]
    tables = [(X.assign(pet=classes[0], grade=classes[1]), {}), (X, {"at_most": X < 2})]
    with pytest.warns(nmd_lab.warnings.NMDWarning):
        fits += [nmd_lab.sample(table, 2, **limits, **drawn) for table, limits in tables]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.nc"
        saved = [fit.save(path) or path.read_bytes() for fit in fits]
    return [*saved, _study_files()[0]]


class _StopError(Exception):
    """Ends a fit."""


@cache
def _checkpoint() -> tuple[bytes, nmd_lab.Decomposition]:
    """Return a checkpoint of a fit in the middle, and the whole fit."""

    def stop(state: nmd_lab.State) -> None:
        if state.iteration == 5:
            raise _StopError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.nc"
        kept = nmd_lab.Compute(checkpoint=path, checkpoint_every=0)
        options = {"max_iter": 8, "tol": 0, "random_state": 0, "alpha": 1}
        try:
            nmd_lab.complete(_missing(), 2, "relu", **options, compute=kept, callback=stop)
        except _StopError:
            return path.read_bytes(), nmd_lab.complete(_missing(), 2, "relu", **options)
    raise AssertionError("a callback's exception is lost")


def _study() -> nmd_lab.Study:
    return nmd_lab.Study(_matrix(), method=["svd"], rank=[1, 2], n_splits=1)


@cache
def _study_files() -> tuple[bytes, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.nc"
        _study().run(path, progress=False)
        return path.read_bytes(), next(Path(f"{path}.fits").iterdir()).read_bytes()


def _sound(path: Path, **options: Any) -> None:
    X = read_matrix(path, **options)
    for index, size in zip(X.tocoo().coords, X.shape, strict=True) if sparse.issparse(X) else ():
        inside = not index.size or 0 <= index.min() <= index.max() < size
        assert inside, "a sparse matrix with positions outside its shape is read"


def _load(path: Path) -> None:
    nmd_lab.load(path)
    assert path.read_bytes() in _results(), "a damaged result is read"


def _go_on(path: Path) -> None:
    fit = nmd_lab.resume(path, _missing())
    assert fit.W.identical(_checkpoint()[1].W), "a damaged checkpoint gives another fit"


def _resume(path: Path) -> None:
    (path.parent / "study.nc.fits").mkdir()
    path.rename(path.parent / "study.nc.fits" / path.name)
    _study().run(path.with_name("study.nc"), progress=False)


def _read_long(path: Path) -> None:
    _sound(path, row="user", column="item", value="rating")


def _forked(work: Callable[[], None], output: Path) -> int:
    """Run a function in a child, in a session of its own; return its process number."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(120)
            stream = os.open(output, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            work()
        finally:
            os._exit(0)
    return child


Kind = tuple[str, Callable[[], list[bytes]], Callable[[Path], None]]
KINDS: dict[str, Kind] = {
    "npy": ("x.npy", _npy, _sound),
    "npz": ("x.npz", _npz, _sound),
    "mtx": ("x.mtx", _mtx, _sound),
    "mtx.gz": ("x.mtx.gz", lambda: list(map(gzip.compress, _mtx())), _sound),
    "csv": ("x.csv", _csv, _sound),
    "tsv": ("x.tsv", lambda: _csv("\t"), _sound),
    "txt": ("x.txt", lambda: _written(np.savetxt, _matrix()), _sound),
    "csv.gz": ("x.csv.gz", lambda: list(map(gzip.compress, _csv())), _sound),
    "long csv": ("x.csv", _long, _read_long),
    "result": ("fit.nc", _results, _load),
    "checkpoint": ("run.nc", lambda: [_checkpoint()[0]], _go_on),
    "record": ("x.json", lambda: [_study_files()[1]], _resume),
}
"""The kinds of files: the name of one, the contents of intact ones, and how it is read."""

PIECES = (
    *(b"", b"\x00", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\x7f", b"\xff" * 8, b"\x00" * 8),
    *(b"\n", b"-1", b"0", b"1e999", b"nan", b"2147483648", b"99999999999999999999", b"1e-400"),
    *(b"x", b"4294967296", b'"', b",", b"1,1", b"inf", b"null", b"[]", b"{}", b"1" * 400, b"true"),
)
"""What is put in place of bytes."""


REST, NUMBER = -1, -2
"""Counts of bytes: all that follow, and those of the next number in a text."""

FLIPS, SWAP = 8, 11
"""Changes of bytes: below the first, the bit that is flipped; below the second, repetitions."""


@dataclass(frozen=True)
class Damage:
    """A damaged file.

    Attributes
    ----------
    kind : str
        One of KINDS.
    specimen : int
        Which of the intact files.
    inside : int or None
        Member of an archive that is damaged and packed again with the right checksums, so that
        the damage reaches the reader behind them; None damages the file itself.
    changes : tuple of tuple
        Where, as a fraction of the file; how many bytes, or REST or NUMBER; and what takes their
        place: other bytes, or themselves with a bit flipped, repeated, or after the next ones.
    """

    kind: str
    specimen: int = 0
    inside: int | None = None
    changes: tuple[tuple[float, int, bytes | int], ...] = ()

    @property
    def part(self) -> str:
        """The kind of file."""
        return f"readers: {self.kind}"

    def content(self) -> bytes:
        """Return the damaged file."""
        specimens = KINDS[self.kind][1]()
        data = specimens[self.specimen % len(specimens)]
        if self.inside is None or self.kind == "checkpoint":
            return self._changed(data)
        if data[:2] == b"\x1f\x8b":
            return gzip.compress(self._changed(gzip.decompress(data)), 1, mtime=0)
        return self._packed_again(data) if data[:2] == b"PK" else self._changed(data)

    def _changed(self, data: bytes) -> bytes:
        for share, count, new in self.changes:
            at = int(share * len(data))
            number = re.compile(rb"-?\d+(\.\d+)?").search(data, at) if count == NUMBER else None
            start, end = number.span() if number else (at, at + max(count, 0))
            end, piece = len(data) if count == REST else end, data[start:end]
            if isinstance(new, bytes):
                piece = new
            elif new < FLIPS and piece:
                piece = bytes([piece[0] ^ 1 << new]) + piece[1:]
            elif new < SWAP:
                piece *= new - FLIPS + 2
            else:
                end = end + len(piece)
                piece = data[start + len(piece) : end] + piece
            data = data[:start] + piece + data[end:]
        return data

    def _packed_again(self, data: bytes) -> bytes:
        """Return a zip archive with one damaged member: missing, renamed, doubled or changed."""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
        k, fate = divmod(self.inside or 0, 8)
        name, content = members.pop(k % len(members))
        new = [(name, self._changed(content))]
        fates = {0: [], 1: [(f"_{name}", content)], 2: [(name, content), (f"2{name}", content)]}
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as packed:
            for name, content in members + fates.get(fate, new):
                packed.writestr(zipfile.ZipInfo(name), content)
        return file.getvalue()

    def check(self) -> None:
        """Raise if the file is neither read right nor refused with a sentence."""
        content = self.content()
        with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
            said, found = Path(folder) / "said", Path(folder) / "found"
            status = os.waitpid(_forked(lambda: self._read(Path(folder), content), said), 0)[1]
            name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else ""
            hangs = name in ("SIGALRM", "SIGXCPU")
            assert not hangs, f"a reader takes more than {SECONDS} s"
            assert found.exists(), f"a reader ends its process, {name}"
            assert not found.read_text(), found.read_text()
            assert not said.read_text(), f"a reader prints: {said.read_text()[:200]}"

    def _read(self, folder: Path, content: bytes) -> None:
        """Read the file under limits, and write what is wrong with the answer; run in a child."""
        faulthandler.disable()
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(SECONDS)
        name, _, read = KINDS[self.kind]
        inner, found = folder / "files", ""
        inner.mkdir()
        (inner / name).write_bytes(content)
        tempfile.tempdir = str(inner)
        try:
            with answered(ALLOWED):
                read(inner / name)
        except Exception as error:
            found = f"{kind_of(error)}: {str(error).replace(str(inner), '')}"
        sys.stdout.flush()
        sys.stderr.flush()
        (folder / "found").write_text(found)


def damages(*kinds: str) -> st.SearchStrategy[Damage]:
    """Return damaged files of some kinds."""
    where = st.floats(0, 1) | st.floats(0, 0.05)
    count = st.integers(NUMBER, 20) | st.integers(1, 200)
    new = st.integers(0, SWAP) | st.sampled_from(PIECES) | st.binary(max_size=20)
    changes = st.lists(st.tuples(where, count, new), min_size=1, max_size=4)
    inside = st.none() | st.integers(0, 63)
    return st.builds(Damage, st.sampled_from(kinds), st.integers(0, 6), inside, changes.map(tuple))
