"""The error of a decomposition of sparse nonnegative data after some seconds, beside others."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import nmd_lab as nmd
from benchmarks import methods
from benchmarks.common.memory import in_own_process

from .sparse_sets import SETS
from .timing import table

SECONDS = (2, 5, 12)
RANK = 16
RATES = (1e-3, 1e-2, 1e-1)

Method = Callable[..., Any]
OTHERS: dict[str, Method] = {"A-NMD": methods.anmd, "3B": methods.nmd_3b, "eBCD": methods.ebcd}


def best_after(history: Any, reference: float, limits: tuple[float, ...]) -> list[float]:
    """Return the lowest relative error within each number of seconds."""
    done, objective = history["seconds"].values, history["objective"].values
    return [
        math.sqrt(max(float(objective[done <= limit].min(initial=math.inf)), 0) / reference)
        for limit in limits
    ]


def run(name: str, method: str, limits: tuple[float, ...]) -> list[float]:
    """Return the errors of one method on one set; Adam has steps in units of its data."""
    warnings.simplefilter("ignore")
    X = SETS[name]()
    dense, reference = X.toarray(), 0.5 * float(np.sum(X.data**2))
    options: dict[str, Any] = {"time_limit": max(limits), "max_iter": 10**7}
    if method == "nmd_lab":
        fit = nmd.decompose(X, RANK, tol=1e-9, random_state=0, **options)
    elif method.startswith("Adam"):
        rate = float(method.split()[1]) * math.sqrt(dense.max())
        fit = methods.adam(dense, RANK, learning_rate=rate, **options)
    else:
        fit = OTHERS[method](dense, RANK, **options)
    return best_after(fit.history, reference, limits)


def by_time(quick: bool = False) -> str:
    """Return the table of sets and methods."""
    limits = (0.2, 0.5) if quick else SECONDS
    methods = ["nmd_lab", *(f"Adam {rate:g}" for rate in RATES), *OTHERS]
    rows = []
    for name in list(SETS)[1:2] if quick else SETS:
        found = {method: in_own_process(run, name, method, limits) for method in methods}
        for k, limit in enumerate(limits):
            errors = [found[method][k] for method in methods]
            lowest = min(errors)
            rows.append(
                (name, f"{limit:g} s",
                 *(f"**{e:.4f}**" if e <= 1.0001 * lowest else f"{e:.4f}" for e in errors))
            )  # fmt: skip
    return table(("set", "after", *methods), rows)
