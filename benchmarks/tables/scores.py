"""How well hidden cells of a table are foretold.

A probability p of a class from a method is taken as (40 p + q) / 41, where q is the frequency of
the class among the known cells, half a cell added to each: no method is ruined by a zero, such as
that of fractions of forty draws.  Draws for the energy score are in the units of `Encoding`.
Where a method has draws and no intervals, their ends are quantiles of the m draws: the k-th
smallest is that of k / (m + 1).  Fewer than 19 draws have no such quantiles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nmd_lab.metrics import energy_score

from .data import Encoding, codes, kind_of, n_classes

Array = np.ndarray

WEIGHT = 40
"""Number of cells that a method's probability counts for, beside one of the frequencies."""
BINS = 10
"""Of probabilities, in a reliability diagram."""
LEVEL, FEWEST_DRAWS = 0.9, 19
"""Of intervals, and the fewest draws whose smallest and largest have that level."""


class Answer(NamedTuple):
    """Predictions of a method for all cells of a table.

    Attributes
    ----------
    points : dict
        Expected number or position of the level (n,) by column; 1 for yes; position of the class.
    probabilities : dict
        Probabilities (n, K) of yes and no, levels or classes, of the columns for which it has some.
    draws : ndarray (n_draws, n, p) or None
        Completed copies, encoded.
    intervals : dict
        Ends (n, 2) by column of numbers.
    """

    points: dict[str, Array]
    probabilities: dict[str, Array]
    draws: Array | None = None
    intervals: dict[str, Array] | None = None


def frequencies(seen: pd.Series) -> Array:
    """Return the fractions of the classes among the known cells of a column, half a cell added."""
    values = codes(seen)
    counts = np.bincount(values[~np.isnan(values)].astype(int), minlength=n_classes(seen)) + 0.5
    return counts / counts.sum()


def score(frame: pd.DataFrame, seen: pd.DataFrame, hidden: Array, answer: Answer) -> dict[str, Any]:
    """Return errors, log, energy and continuous scores, coverage and width at the hidden cells."""
    by_kind: dict[str, list[float]] = {"number": [], "level": [], "class": []}
    logs, columns, bins, encoding = [], {}, np.zeros((3, BINS)), Encoding(seen)
    crps: list[float] = []
    widths: list[float] = []
    for k, name in enumerate(frame):
        at, kind = hidden[:, k], kind_of(frame[name])
        if not at.any():
            continue
        truth, point = codes(frame[name])[at], answer.points[name][at]
        size = float(np.nanstd(codes(seen[name])))
        if kind in ("number", "level"):
            by_kind[kind].append(float(np.sqrt(np.mean((point - truth) ** 2)) / size))
        else:
            by_kind["class"].append(float(np.mean(point == truth)))
        if name in answer.probabilities:
            p = answer.probabilities[name][at]
            smooth = (WEIGHT * p + frequencies(seen[name])) / (WEIGHT + 1)
            logs.append(float(np.mean(np.log(smooth[np.arange(truth.size), truth.astype(int)]))))
            bins += in_bins(p, truth.astype(int))
        if kind != "number":
            continue
        draws = None
        if answer.draws is not None:
            draws = encoding.back(answer.draws, name)[..., 0][:, at]
            crps.append(continuous_score(draws, truth) / size)
        ends = answer.intervals[name][at] if answer.intervals else ends_of(draws)
        if ends is not None:
            low, high = ends.T
            columns[name] = [int(np.sum((low <= truth) & (truth <= high))), int(truth.size)]
            widths.append(float(np.mean(high - low)) / size)
    return {
        **{kind: float(np.mean(found)) for kind, found in by_kind.items() if found},
        **({"log": float(np.mean(logs)), "bins": bins.tolist()} if logs else {}),
        **({"columns": columns, "width": float(np.mean(widths))} if columns else {}),
        **({"crps": float(np.mean(crps))} if crps else {}),
        **({} if answer.draws is None else {"energy": energy(frame, seen, hidden, answer.draws)}),
    }


def ends_of(draws: Array | None) -> Array | None:
    """Return the ends (n, 2) of intervals by the quantiles of draws (m, n)."""
    if draws is None or len(draws) < FEWEST_DRAWS:
        return None
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    return np.quantile(draws, tails, axis=0, method="weibull").T


def continuous_score(draws: Array, truth: Array) -> float:
    """Return the mean continuous ranked probability score of draws (m, n) of numbers (n,)."""
    m = len(draws)
    weights = (2 * np.arange(1, m + 1) - m - 1) / (m * (m - 1))  # of sorted draws: unbiased
    spread = np.sort(draws, axis=0).T @ weights
    return float(np.mean(np.abs(draws - truth).mean(axis=0) - spread))


def in_bins(p: Array, truth: Array) -> Array:
    """Return number, sum of probabilities and right ones (3, BINS) of the most probable classes."""
    best = p.argmax(axis=1)
    sure, right = p.max(axis=1), best == truth
    where = np.minimum((sure * BINS).astype(int), BINS - 1)
    return np.array([np.bincount(where, w, BINS) for w in (np.ones(sure.size), sure, right)])


def calibration_error(bins: Array) -> float:
    """Return the mean distance of probability and fraction, weighted by the cells of the bins."""
    _, sure, right = np.asarray(bins)
    return float(np.abs(sure - right).sum() / np.asarray(bins)[0].sum())


def error_by_luck(bins: Array) -> float:
    """Return about the mean of the calibration error where all probabilities are right."""
    number, sure, _ = np.asarray(bins)
    p = sure / np.maximum(number, 1)
    return float(np.sqrt(2 / np.pi * number * p * (1 - p)).sum() / number.sum())


def energy(frame: pd.DataFrame, seen: pd.DataFrame, hidden: Array, draws: Array) -> float:
    """Return the mean energy score of the hidden cells of a row, over the root of their number."""
    encoding = Encoding(seen)
    of_table = {name: k for k, name in enumerate(frame)}
    at = hidden[:, [of_table[name] for name in encoding.names]]
    return energy_score(np.where(at, encoding.again(frame), np.nan), draws)
