"""The way of X: which functions of the library receive X, or data made of it, in one call.

A place is a function of a file that has X, observations, a problem, or a record or an array of
the size of X that holds them, among its arguments.  Calls inside a loop of iterations, and
methods of the data themselves, are left out.  ``python benchmarks/way_of_x.py`` prints the places
of `nmd.complete(X)` and of `nmd.sample(frame)` in their order, and how many there are.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import nmd_lab as nmd
from nmd_lab.data.observations import Observations

HOME = Path(nmd.__file__).parent
LOOP = "solver/loop.py", "loop"
DEPTH = 2  # records within records


def holds_data(value: Any, X: Any, depth: int = DEPTH) -> bool:
    """Return whether a value is X, data made of it, or a record of them."""
    if value is X or isinstance(value, Observations):
        return True
    if isinstance(value, np.ndarray):
        return bool(value.size == X.size)
    if depth and dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    elif depth and isinstance(value, tuple | list):
        fields = list(value)
    elif depth and isinstance(value, dict):
        fields = list(value.values())
    else:
        return False
    return any(holds_data(each, X, depth - 1) for each in fields)


def way_of(call: Callable[[Any], Any], X: Any) -> list[tuple[str, str]]:
    """Return the places that receive X or data made of it, in the order of their first call."""
    places: dict[tuple[str, str], None] = {}
    loops = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal loops
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(str(HOME)):
            return
        place = str(Path(code.co_filename).relative_to(HOME)), code.co_qualname
        if place == LOOP:
            loops += 1 if event == "call" else -1
        if event == "return" or loops or place in places or "<" in code.co_qualname.split(".")[-1]:
            return
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x0C)
        names = code.co_varnames[:count]
        values = [
            frame.f_locals[name] for name in names if name in frame.f_locals and name != "self"
        ]
        if any(holds_data(value, X) for value in values):
            places[place] = None

    sys.setprofile(profile)
    try:
        call(X)
    finally:
        sys.setprofile(None)
    return list(places)


def main() -> None:
    """Print the places of both calls."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40)) + 0.1 * rng.normal(size=(60, 40))
    X[rng.random(X.shape) < 0.3] = np.nan
    frame = pd.DataFrame(X[:, :6]).rename(columns=str).assign(a=pd.array(X[:, 0] > 0, "boolean"))
    calls = {
        "complete(X)": (lambda X: nmd.complete(X, random_state=0), X),
        "complete(X, 2, alpha=1)": (lambda X: nmd.complete(X, 2, alpha=1.0, random_state=0), X),
        "sample(frame)": (lambda X: nmd.sample(X, draws=20, tune=20, random_state=0), frame),
    }
    for name, (call, data) in calls.items():
        places = way_of(call, data)
        print(f"{name}: {len(places)} places")
        print("".join(f"    {file}: {function}\n" for file, function in places))


if __name__ == "__main__":
    main()
