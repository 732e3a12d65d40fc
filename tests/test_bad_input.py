"""Every bad input is refused before any work, in one sentence that names the argument."""

from __future__ import annotations

import re

import numpy as np
import pytest

import nmd_lab
from nmd_lab.solver.selection.trials import Trials

GOOD = np.abs(np.random.default_rng(0).normal(size=(8, 6)))


def changed(value, where=(2, 3), dtype=float):
    X = GOOD.astype(dtype)
    X[where] = value
    return X


BAD = {
    "empty": ("X", {"X": np.empty((0, 0))}),
    "no columns": ("X", {"X": np.empty((5, 0))}),
    "one dimension": ("X", {"X": np.ones(5)}),
    "three dimensions": ("X", {"X": np.ones((5, 4, 3))}),
    "infinite": ("X", {"X": changed(np.inf)}),
    "minus infinite": ("X", {"X": changed(-np.inf)}),
    "nothing observed": ("X|observed", {"X": np.full((5, 4), np.nan), "rank": 2}),
    "nothing observed by a mask": ("X|observed", {"observed": np.zeros((8, 6), dtype=bool)}),
    "negative under KL": ("X", {"X": changed(-1.0), "loss": "kl"}),
    "object dtype": ("X", {"X": changed("a", dtype=object)}),
    "numbers as objects": ("X", {"X": GOOD.astype(object)}),
    "strings": ("X", {"X": GOOD.astype(str)}),
    "complex": ("X", {"X": GOOD + 1j}),
    "None": ("X", {"X": None}),
    "rank zero": ("rank", {"rank": 0}),
    "rank negative": ("rank", {"rank": -1}),
    "rank too large": ("rank", {"rank": 7}),
    "rank fractional": ("rank", {"rank": 2.5}),
    "rank text": ("rank", {"rank": "3"}),
    "rank None": ("rank", {"rank": None}),
    "mask shape": ("observed", {"observed": np.ones((6, 8), dtype=bool)}),
    "mask vector": ("observed", {"observed": np.ones(6, dtype=bool)}),
    "unknown nonlinearity": ("nonlinearity", {"nonlinearity": "rellu"}),
    "nonlinearity None": ("nonlinearity", {"nonlinearity": None}),
    "nonlinearity class": ("nonlinearity", {"nonlinearity": 3.0}),
    "unknown loss": ("loss", {"loss": "l2"}),
    "loss None": ("loss", {"loss": None}),
    "unknown init": ("init", {"init": "svdd"}),
    "init W shape": ("init", {"init": (np.ones((7, 3)), np.ones((3, 6)))}),
    "init H shape": ("init", {"init": (np.ones((8, 3)), np.ones((6, 3)))}),
    "init of another rank": ("init", {"init": (np.ones((8, 2)), np.ones((2, 6)))}),
    "init with NaN": ("init", {"init": (np.full((8, 3), np.nan), np.ones((3, 6)))}),
    "init of one": ("init", {"init": (np.ones((8, 3)),)}),
    "n_init": ("n_init", {"n_init": 0}),
    "n_init fractional": ("n_init", {"n_init": 1.5}),
    "max_iter negative": ("max_iter", {"max_iter": -1}),
    "max_iter fractional": ("max_iter", {"max_iter": 1.5}),
    "tol negative": ("tol", {"tol": -1e-3}),
    "tol NaN": ("tol", {"tol": np.nan}),
    "unknown solver": ("solver", {"solver": "papre"}),
    "solver dict": ("solver", {"solver": {"rho": 1.0}}),
    "solver None": ("solver", {"solver": None}),
    "compute dict": ("compute", {"compute": {"threads": 1}}),
    "compute word": ("compute", {"compute": "cuda"}),
    "alpha negative": ("alpha", {"alpha": -0.1}),
    "alpha NaN": ("alpha", {"alpha": np.nan}),
    "alpha None": ("alpha", {"alpha": None}),
    "unknown alpha": ("alpha", {"alpha": "automatic"}),
    "offset_alpha negative": ("offset_alpha", {"offset_alpha": -0.1}),
    "unknown offset_alpha": ("offset_alpha", {"offset_alpha": "automatic"}),
    "unknown offsets": ("offsets", {"offsets": "row"}),
    "unknown rank": ("rank", {"rank": "automatic"}),
    "time limit negative": ("time_limit", {"time_limit": -1.0}),
    "callback": ("callback", {"callback": 3}),
    "dtype": ("dtype", {"dtype": np.int32}),
    "unknown dtype": ("dtype", {"dtype": "float33"}),
    "random_state": ("random_state", {"random_state": "seed"}),
}


@pytest.mark.parametrize("verb", ["decompose", "complete"])
@pytest.mark.parametrize("case", BAD)
def test_bad_input(case, verb, monkeypatch):
    named, options = BAD[case]
    if verb == "complete" and case == "nonlinearity None":
        pytest.skip("it is the default of complete()")
    worked, run = [], Trials.run
    monkeypatch.setattr(Trials, "run", lambda *given: worked.append("trial") or run(*given))
    arguments = {"X": GOOD, "rank": 3, "nonlinearity": "relu", "loss": "frobenius"}
    arguments |= {"callback": lambda state: worked.append("iteration") or True} | options
    if isinstance(arguments["X"], np.ndarray):
        arguments["X"].flags.writeable = False
    with pytest.raises((ValueError, TypeError)) as caught:
        getattr(nmd_lab, verb)(**arguments)
    assert not worked
    is_one_sentence(str(caught.value), named)


def is_one_sentence(message, named):
    assert re.search(rf"\b({named})\b", message), message
    assert "\n" not in message
    assert not re.search(r"[.!?] +[A-Z]", message), f"more than one sentence: {message}"


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        *((nmd_lab.ADMM, "rho", value) for value in ("balance", 0.0, -1.0, np.nan, np.inf, None)),
        *((nmd_lab.ADMM, "epsilon", value) for value in (-1e-9, np.nan)),
        *((nmd_lab.ADMM, "initial_rho", value) for value in (0, "1")),
        (nmd_lab.ADMM, "split", "observd"),
        (nmd_lab.ADMM, "refine", "auto"),
        (nmd_lab.ADMM, "homotopy", None),
        (nmd_lab.ADMM, "polish", "yes"),
        (nmd_lab.ADMM, "patience", 0),
        *((nmd_lab.ADMM, "limit_noise", value) for value in (-1.0, "automatic")),
        *((nmd_lab.Compute, "threads", value) for value in (0, 1.5)),
        (nmd_lab.Compute, "device", 3),
        (nmd_lab.Compute, "memory_limit", 0),
        (nmd_lab.Compute, "checkpoint_every", -1),
        (nmd_lab.Compute, "work_dir", "no such folder"),
    ],
)
def test_bad_settings_are_refused_when_they_are_made(settings, name, value):
    with pytest.raises((ValueError, TypeError, OSError)) as caught:
        settings(**{name: value})
    is_one_sentence(str(caught.value), name)


@pytest.mark.parametrize("bounds", [(np.nan, 1), (0, np.nan), (1, 0)])
def test_bad_bounds(bounds):
    with pytest.raises(ValueError, match=r"\b[ab]\b"):
        nmd_lab.decompose(GOOD, 3, nmd_lab.MinMax(*bounds))


def test_the_value_and_the_choices_are_in_the_message():
    with pytest.raises(ValueError, match="rellu") as caught:
        nmd_lab.decompose(GOOD, 3, "rellu")
    assert "relu" in str(caught.value).replace("rellu", "")
    with pytest.raises(ValueError, match="9"):
        nmd_lab.decompose(GOOD, 9)
    with pytest.raises(ValueError, match="-1"):
        nmd_lab.decompose(GOOD, 3, alpha=-1.0)


def test_unknown_and_positional_options_are_refused():
    with pytest.raises(TypeError):
        nmd_lab.decompose(GOOD, 3, max_iters=3)
    with pytest.raises(TypeError):
        nmd_lab.decompose(GOOD, 3, "relu", "frobenius", np.ones((8, 6), dtype=bool))
