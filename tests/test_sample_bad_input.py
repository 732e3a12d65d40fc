"""`sample` refuses bad arguments before any work, in one sentence that names the argument."""

from __future__ import annotations

import re

import numpy as np
import pytest

import nmd_lab as nmd

QUICK = {"draws": 3, "tune": 1, "random_state": 0, "progress": False}
GOOD = np.abs(np.random.default_rng(0).normal(size=(8, 6)))
OTHER = GOOD[:7]
ONE_FIT = {"alpha": 0.1, "max_iter": 2, "progress": False}


def changed(value):
    data = GOOD.copy()
    data[2, 3] = value
    return data


BAD = {
    "empty": ("X", {"X": np.empty((0, 0))}),
    "infinite": ("X", {"X": changed(np.inf)}),
    "nothing observed": ("X|observed", {"X": np.full((8, 6), np.nan)}),
    "strings": ("X", {"X": GOOD.astype(str)}),
    "negative under KL": ("X", {"X": changed(-1.0), "loss": "kl"}),
    "rank zero": ("rank", {"rank": 0}),
    "rank too large": ("rank", {"rank": 7}),
    "rank fractional": ("rank", {"rank": 2.5}),
    "mask shape": ("observed", {"observed": np.ones((6, 8), bool)}),
    "weights negative": ("weights", {"weights": -GOOD}),
    "unknown nonlinearity": ("nonlinearity", {"nonlinearity": "rellu"}),
    "unknown loss": ("loss", {"loss": "l2"}),
    "loss None": ("loss", {"loss": None}),
    "draws zero": ("draws", {"draws": 0}),
    "draws fractional": ("draws", {"draws": 1.5}),
    "tune negative": ("tune", {"tune": -1}),
    "chains zero": ("chains", {"chains": 0}),
    "keep zero": ("keep", {"keep": 0}),
    "compute dict": ("compute", {"compute": {"threads": 1}}),
    "client": ("client", {"compute": nmd.Compute(client="active")}),
    "device": ("device", {"compute": nmd.Compute(device="cpu")}),
    "memory limit": ("memory_limit", {"compute": nmd.Compute(memory_limit=1)}),
    "folder": ("work_dir", {"compute": nmd.Compute(work_dir=".")}),
    "time limit negative": ("time_limit", {"time_limit": -1.0}),
    "time limit NaN": ("time_limit", {"time_limit": np.nan}),
    "callback": ("callback", {"callback": 3}),
    "unknown noise": ("noise", {"noise": "befor"}),
    "noise None": ("noise", {"noise": None}),
    "noise before and L1": ("noise", {"noise": "before", "loss": "l1"}),
    "noise before and values below 0": (
        "noise",
        {"noise": "before", "X": changed(-1.0), "nonlinearity": "relu"},
    ),
    "unknown offsets": ("offsets", {"offsets": "row"}),
    "progress": ("progress", {"progress": "yes"}),
    "unknown init": ("init", {"init": "svdd"}),
    "init array": ("init", {"init": GOOD}),
    "init None": ("init", {"init": None}),
    "init of another shape": ("init", {"init": nmd.complete(OTHER, 3, **ONE_FIT)}),
    "init of another rank": ("init", {"init": nmd.complete(GOOD, 2, **ONE_FIT)}),
    "random_state": ("random_state", {"random_state": "a"}),
    "ordinal and relu": ("nonlinearity", {"loss": "ordinal", "nonlinearity": "relu"}),
    "ordinal with another level": ("X", {"loss": nmd.losses.Ordinal([1, 2])}),
    "ordinal with one level": ("X", {"X": np.ones((8, 6)), "loss": "ordinal"}),
    "dtype": ("dtype", {"dtype": np.int32}),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused_in_one_sentence(case):
    named, options = BAD[case]
    worked = []
    arguments = {"X": GOOD, "rank": 3} | QUICK | {"callback": worked.append} | options
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        nmd.sample(**arguments)
    assert not worked
    message = str(caught.value)
    assert re.search(rf"\b({named})\b", message), message
    assert "\n" not in message
    assert not re.search(r"[.!?] +[A-Z]", message), f"more than one sentence: {message}"


def test_an_array_of_dask_is_refused():
    lazy = pytest.importorskip("dask.array").from_array(GOOD)
    with pytest.raises(ValueError, match=r"X of Dask does not go with sample\(\): give X, or some"):
        nmd.sample(lazy, 3, **QUICK)
