"""Our posterior and the frequencies, each as a function of a table with hidden cells and a seed."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import nmd_lab as nmd

from .data import Encoding, codes, kind_of, n_classes
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


def positions(encoding: Encoding, seen: pd.DataFrame, Z: np.ndarray) -> dict[str, np.ndarray]:
    """Return the classes (..., n) nearest to encoded numbers, by column without numbers."""
    found = {}
    for name in seen:
        kind, part = kind_of(seen[name]), encoding.back(Z, name)
        if kind == "class":
            found[name] = part.argmax(axis=-1)
        elif kind != "number":
            found[name] = np.clip(np.rint(part[..., 0]), 0, n_classes(seen[name]) - 1).astype(int)
    return found


def numbers(encoding: Encoding, seen: pd.DataFrame, Z: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns of numbers of an encoded table."""
    return {n: encoding.back(Z, n)[:, 0] for n in seen if kind_of(seen[n]) == "number"}


def from_draws(seen: pd.DataFrame, Z: np.ndarray, point: np.ndarray | None = None) -> Answer:
    """Answer with completed copies (n_draws, n, p), and with points beside them if there are."""
    encoding = Encoding(seen)
    shares = {
        name: np.stack([np.mean(each == k, axis=0) for k in range(n_classes(seen[name]))], axis=1)
        for name, each in positions(encoding, seen, Z).items()
    }
    mean = Z.mean(axis=0) if point is None else point
    answer = answer_of(seen, numbers(encoding, seen, mean), shares, draws=Z)
    return answer if point is None else answer._replace(points=points(encoding, seen, point))


def points(encoding: Encoding, seen: pd.DataFrame, Z: np.ndarray) -> dict[str, np.ndarray]:
    """Return points of all columns: a level is a number between the first and the last."""
    points = numbers(encoding, seen, Z) | positions(encoding, seen, Z)
    for name in seen:
        if kind_of(seen[name]) == "level":
            last = n_classes(seen[name]) - 1
            points[name] = np.clip(encoding.back(Z, name)[:, 0], 0, last)
    return points


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
