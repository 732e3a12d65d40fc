"""Fits whose options were chosen, with made-up trials."""

from dataclasses import replace
from typing import Any

import numpy as np

import nmd_lab

MODEL = {"nonlinearity": "MinMax(0, 16)", "loss": "frobenius", "offsets": "both"}

OPTIONS = ["rank", "alpha", "offset_alpha", "offsets", "nonlinearity"]


def trials(ranks: Any, alphas: Any, **model: Any) -> list[dict[str, Any]]:
    """Return trials for all ranks and alphas; the error is lowest at rank 8 and alpha 3."""
    rows = []
    for rank in ranks:
        for alpha in alphas:
            excess = abs(np.log2(rank / 8)) + np.log10(max(alpha, 0.01) / 3) ** 2
            numbers = {"error": 2.5 + excess / 8, "spread": excess / 100}
            rows.append(
                {**MODEL, "rank": rank, "alpha": alpha, "offset_alpha": alpha / 2, **numbers,
                 "n_iter": 5 + rank, "seconds": 0.1 * rank, **model}
            )  # fmt: skip
    return rows


def selection(rows: list[dict[str, Any]], chosen: int | None = None, **others: Any) -> Any:
    """Return the item "selection" of the parameters of a fit; the lowest error is chosen."""
    lowest = int(np.nanargmin([row["error"] for row in rows]))
    return {
        "trials": rows,
        "chosen": lowest if chosen is None else chosen,
        "reason": "the smallest rank whose error is within one standard error of the lowest",
        "measure": "root mean squared error",
        "held_out": {"entries": 7900, "parts": 1, "drawn": "at random"},
        "options": OPTIONS,
        **others,
    }


def with_selection(fit: nmd_lab.Decomposition, chosen: Any) -> nmd_lab.Decomposition:
    """Return a fit as if its options had been chosen."""
    return replace(fit, parameters={**fit.parameters, "selection": chosen})
