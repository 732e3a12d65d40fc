"""A fixed sample of the part `readers`."""

from __future__ import annotations

import io
import os
import signal
import zipfile

import numpy as np
import pytest

from fuzz import readers
from fuzz.ledger import Ledger
from fuzz.mutate import mutated
from fuzz.specimens import KINDS, Kind, intact

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if not kind.optional])
def test_damaged_files_are_read_or_refused(kind, tmp_path):
    ledger = Ledger()
    assert readers.is_read(kind, ledger)
    readers.read_many(kind, 0, range(40), ledger, tmp_path)
    assert ledger.tried.total() == 40
    assert not ledger.unknown


@pytest.mark.parametrize("kind", KINDS)
def test_damage_repeats_and_differs(kind):
    content = intact(kind)[0]
    one, two, other = (mutated(content, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert one == two != other
    several = {mutated(content, np.random.default_rng(seed)) for seed in range(50)}
    assert content not in several or len(several) > 25


def test_some_archives_are_damaged_inside():
    content, whole = intact("npz")[0], 0
    for seed in range(60):
        damaged = mutated(content, np.random.default_rng(seed))
        if damaged[:4] == b"PK\x03\x04" and damaged != content:
            try:
                with zipfile.ZipFile(io.BytesIO(damaged)) as archive:
                    whole += archive.testzip() is None
            except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
                pass
    assert whole > 10


def _kill(path):
    os.kill(os.getpid(), signal.SIGSEGV)


def _print(path):
    os.write(2, b"Traceback")


def _mixed(path):
    raise RuntimeError("raw")


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (_kill, "the process ends with SIGSEGV"),
        (_print, "something is printed"),
        (_mixed, "RuntimeError in outside nmd_lab"),
        (lambda path: bytearray(4 << 30), "MemoryError in outside nmd_lab"),
    ],
)
def test_a_bad_reader_is_found(monkeypatch, tmp_path, read, kind):
    monkeypatch.setitem(KINDS, "npy", Kind("x.npy", KINDS["npy"].specimens, read))
    ledger = Ledger()
    readers.read_many("npy", 0, range(3), ledger, tmp_path)
    assert ledger.tried["readers: npy"] == 3
    assert [(f.kind, f.count) for f in ledger.failures.values()] == [(kind, 3)]
    assert len(list(tmp_path.iterdir())) == 1  # the first file is kept
