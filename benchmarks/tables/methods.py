"""Our posterior and the frequencies, each as a function of a table with hidden cells and a seed."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import nmd_lab as nmd

from .data import Encoding, codes, kind_of
from .scores import LEVEL, Answer, frequencies

DRAWS = 40
"""Completed copies of a table."""

Fill = Callable[[pd.DataFrame, int], Answer]


class Method(NamedTuple):
    """A method, and the packages and programs that it needs beside scikit-learn."""

    fill: Fill
    needs: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether all packages and programs are installed."""
        has_packages = all(importlib.util.find_spec(each) is not None for each in self.needs)
        return has_packages and all(map(shutil.which, self.programs))


def point_of(kind: str, p: np.ndarray) -> np.ndarray:
    """Return the expected level, or the most probable class, of probabilities (n, K)."""
    return p @ np.arange(p.shape[1]) if kind == "level" else p.argmax(axis=1)


def answer_of(
    seen: pd.DataFrame, numbers: dict[str, np.ndarray], p: dict[str, np.ndarray], **more: Any
) -> Answer:
    """Return an answer whose levels and classes are those of the probabilities."""
    points = {name: point_of(kind_of(seen[name]), each) for name, each in p.items()}
    return Answer(numbers | points, p, **more)


def marginal(seen: pd.DataFrame, seed: int) -> Answer:
    """Answer with the mean of each column, and with the frequencies of its classes."""
    kinds = {name: kind_of(seen[name]) for name in seen}
    means = {
        name: np.full(len(seen), np.nanmean(codes(seen[name])))
        for name, kind in kinds.items() if kind == "number"
    }  # fmt: skip
    p = {
        name: np.tile(frequencies(seen[name]), (len(seen), 1))
        for name, kind in kinds.items() if kind != "number"
    }  # fmt: skip
    return answer_of(seen, means, p)


def ours(seen: pd.DataFrame, seed: int, **sweeps: Any) -> Answer:
    """Answer with `nmd.sample(frame)` and its defaults."""
    posterior = nmd.sample(seen, random_state=seed, progress=False, **sweeps)
    filled, ends = posterior.impute(seen), posterior.intervals(seen, LEVEL)
    copies = posterior.impute(seen, n=DRAWS, random_state=seed)
    numbers = {name: codes(filled[name]) for name in seen if kind_of(seen[name]) == "number"}
    p = {name: posterior.probabilities(name).to_numpy() for name in seen if name not in numbers}
    encoding = Encoding(seen)
    return answer_of(
        seen,
        numbers,
        p,
        draws=np.stack([encoding.again(copy) for copy in copies]),
        intervals={name: ends[name].to_numpy(dtype=float) for name in numbers},
    )
