"""The way of X: which functions of the library receive X, or data made of it, in one call.

A place is a function of a file that has X, observations, a problem, or a record that holds one of
them among its arguments.  What happens within a loop of iterations, or within the trials of a
choice, is left out; so is `self`.  ``python benchmarks/way_of_x.py`` prints the places of
`nmd.complete(X)` and of `nmd.sample(frame)` in their order, and how many there are.
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
from nmd_lab.kernels.products import StoredEntries
from nmd_lab.sampler.problem import SampledProblem

HOME = Path(nmd.__file__).parent
LOOPS = {
    ("fit/loop.py", "fit_from"),
    ("sampler/run.py", "Chains.run"),
    ("selection/choice.py", "choose"),
    ("sampler/prepare.py", "_errors"),
    ("engines/__init__.py", "iterates"),
}
DEPTH = 2  # records within records
Place = tuple[str, str]


def holds_data(value: Any, X: Any, depth: int = DEPTH) -> bool:
    """Return whether a value is X, data made of it, or a record of them."""
    if value is X or isinstance(value, Observations | SampledProblem | StoredEntries):
        return True
    inside: list[Any] = []
    if depth and dataclasses.is_dataclass(value) and not isinstance(value, type):
        inside = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    elif depth and isinstance(value, tuple | list | dict):
        inside = list(value.values() if isinstance(value, dict) else value)
    return any(holds_data(each, X, depth - 1) for each in inside)


def way_of(call: Callable[[Any], Any], X: Any) -> list[Place]:
    """Return the places that receive X or data made of it, in the order of their first call."""
    places: dict[Place, None] = {}
    depth = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(str(HOME)):
            return
        place = str(Path(code.co_filename).relative_to(HOME)), code.co_qualname
        depth -= event == "return" and place in LOOPS
        if event == "call" and not depth and not code.co_name.startswith("<"):
            count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x0C)
            names = set(code.co_varnames[:count]) - {"self"}
            if any(holds_data(each, X) for name, each in frame.f_locals.items() if name in names):
                places[place] = None
        depth += event == "call" and place in LOOPS

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
    ways = {
        "complete(X)": way_of(lambda X: nmd.complete(X, random_state=0), X),
        "sample(frame)": way_of(lambda X: nmd.sample(X, draws=20, tune=20, random_state=0), frame),
    }
    for name, places in ways.items():
        print(f"{name}: {len(places)} places")
        print("".join(f"    {file}: {function}\n" for file, function in places))


if __name__ == "__main__":
    main()
