"""Fits and their scores: the default call, and plain calls with numbers."""

from __future__ import annotations

import time
from functools import lru_cache

import numpy as np

import nmd_lab as nmd

from .generated import MAKERS, generate
from .problems import Problem, load
from .store import Answer

PARAMETERS = ("rank", "alpha", "offsets", "offset_alpha")


@lru_cache(maxsize=2)
def problem_of(name: str) -> Problem:
    """Return a real or a generated set."""
    return generate(name) if name in MAKERS else load(name)


def default(*, name: str, seed: int = 0) -> Answer:
    """Score the default call."""
    problem = problem_of(name)
    began = time.process_time()
    fit = nmd.complete(problem.X, random_state=seed, compute=nmd.Compute(threads=1))
    seconds = time.process_time() - began
    table = fit.selection
    answer = {key: fit.parameters[key] for key in PARAMETERS}
    return answer | {
        "nonlinearity": repr(fit.nonlinearity),
        "rmse": problem.rmse(fit.predict(problem.rows, problem.columns)),
        "seconds": seconds,
        "trials": [
            {key: values.item(i) for key, values in table.data_vars.items()}
            for i in range(table.sizes["trial"])
        ],
        "held_out": {key: value for key, value in table.attrs.items() if key != "options"},
    }


def plain(*, name: str, rank: int, nonlinearity: str, alpha: float, offset_alpha: float) -> Answer:
    """Score a plain call; a negative `offset_alpha` means no offsets."""
    problem, with_offsets = problem_of(name), offset_alpha >= 0
    fit = nmd.complete(
        problem.X,
        rank,
        function(nonlinearity, problem),
        alpha=alpha,
        offsets="both" if with_offsets else "none",
        offset_alpha=offset_alpha if with_offsets else "auto",
        random_state=0,
        compute=nmd.Compute(threads=1),
    )
    rmse = problem.rmse(fit.predict(problem.rows, problem.columns))
    return {"rmse": rmse if np.isfinite(rmse) else 1e300, "n_iter": fit._n_iter}


def function(word: str, problem: Problem) -> nmd.nonlinearities.Nonlinearity:
    """Return a nonlinearity by a word; "minmax" is bounded by the least and the largest value."""
    if word == "minmax":
        values = problem.observed()[2]
        return nmd.MinMax(float(values.min()), float(values.max()))
    return {"identity": nmd.Identity(), "relu": nmd.ReLU()}[word]


def timing(*, name: str, repeats: int, seed: int = 0) -> Answer:
    """Time the default call and the one with the chosen parameters, side by side, on one thread.

    The times are those of the processor, which other work on the machine changes little.  The
    first round is not counted: it loads the kernels.
    """
    problem = problem_of(name)
    seconds = []
    for _ in range(1 + repeats):
        began = time.process_time()
        fit = nmd.complete(problem.X, random_state=seed, compute=nmd.Compute(threads=1))
        chosen = time.process_time()
        nmd.complete(
            problem.X,
            fit.parameters["rank"],
            fit.nonlinearity,
            random_state=seed,
            compute=nmd.Compute(threads=1),
            **{key: fit.parameters[key] for key in PARAMETERS[1:]},
        )
        seconds.append((chosen - began, time.process_time() - chosen))
    both = np.median(seconds[1:], axis=0)
    ratio = np.median([default / one for default, one in seconds[1:]])
    return {"default": float(both[0]), "one": float(both[1]), "ratio": float(ratio)}
