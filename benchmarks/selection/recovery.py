"""Table 4: how often the true rank is found, within one, in low rank and noise with holes."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import nmd_lab as nmd
from benchmarks.paper.report import prose, pyplot, save, table

from .compared import listed
from .problems import hide_share
from .store import Answer, Store

TITLE = "The true rank"
SHAPES = ((100, 80), (200, 60), (300, 200))
HOLES = (0.1, 0.3, 0.6)
SNRS = (1, 2, 3, 5, 10)
DRAWS = 10
GOAL = 80


def run(store: Store, quick: bool = False, names: tuple[str, ...] = ()) -> list[Answer]:
    """Return one record a draw."""
    shapes, draws = (SHAPES[:1], 2) if quick else (SHAPES, DRAWS)
    cells = [
        {"m": m, "n": n, "holes": holes, "snr": snr, "draw": draw}
        for (m, n), holes, snr, draw in product(shapes, HOLES, SNRS, range(draws))
    ]
    return [cell | store.get(recover, **cell) for cell in cells]


def recover(*, m: int, n: int, holes: float, snr: float, draw: int) -> Answer:
    """Return the true rank (2 to 8), the visible and the chosen one, and what was chosen."""
    rng = np.random.default_rng([m, n, round(100 * holes), round(10 * snr), draw])
    rank = 2 + (draw * 3 + round(snr)) % 7
    signal = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))
    noise = rng.normal(size=(m, n)) * signal.std() / snr
    problem = hide_share(signal + noise, holes, seed=draw)
    fit = nmd.complete(problem.X, random_state=draw, compute=nmd.Compute(threads=1))
    threshold = signal.std() / snr * (m * n) ** 0.25 / np.sqrt(1 - holes)
    table = fit.selection
    return {
        "true": rank,
        "visible": int(np.count_nonzero(np.linalg.svd(signal, compute_uv=False) > threshold)),
        "chosen": int(fit.parameters["rank"]),
        "alpha": fit.parameters["alpha"],
        "offsets": fit.parameters["offsets"],
        "rmse": float(np.sqrt(np.mean((fit.reconstruct().values - signal) ** 2)) / signal.std()),
        "trials": {
            name: table[name].values.tolist()
            for name in ("rank", "alpha", "offsets", "error", "spread")
        },
    }


def share(records: list[Answer], truth: str = "true", off: int = 1) -> float:
    """Return the per cent of the draws in which the rank is at most `off` away from the truth."""
    hits = [abs(record["chosen"] - record[truth]) <= off for record in records]
    return 100 * float(np.mean(hits)) if hits else float("nan")


def section(records: list[Answer], figures: Path) -> str:
    """Return the section of the page."""
    shapes = list(dict.fromkeys((record["m"], record["n"]) for record in records))
    shares = {shape: _shares(records, shape, 1) for shape in shapes}
    exact = {shape: _shares(records, shape, 0) for shape in shapes}
    text = prose(
        """
        Products of Gaussian factors of rank 2 to 8 with noise; the signal-to-noise ratio (SNR) is
        that of the standard deviations. The figure and the table have the fraction of the {draws}
        draws in which the chosen rank is at most one off, and that in which it is exactly right.
        Over all cells these are {all:.1f} % and {exact:.1f} %; the goal is {goal} % for the former.
        A component is *visible* if its singular value in the signal is above σ (mn)^¼ / √p, with
        noise of size σ and a fraction p of observed entries. Below that, the leading singular
        vectors of the observed entries contain no information about it. The chosen rank is within
        one of the number of visible components in {visible:.1f} % of the draws. Cells below the
        goal: {missed}.

        Draws in which the rank is not exactly right, by the true one: {inexact}. The choice tries
        ranks of a list first (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, ...). Then it tries ranks between
        the chosen one and the one below it, until these are about 10 % apart. These tables end at
        rank 8.
        """,
        all=share(records),
        exact=share(records, off=0),
        draws=len(records) // (len(shapes) * len(HOLES) * len(SNRS)),
        goal=GOAL,
        visible=share(records, "visible"),
        inexact=_inexact(records),
        missed=listed(
            f"{m} × {n}, {100 * holes:.0f} % missing, SNR {snr}"
            for (m, n), values in shares.items()
            for holes, line in zip(HOLES, values, strict=True)
            for snr, value in zip(SNRS, line, strict=True)
            if value < GOAL
        ),
    )
    rows = [
        (
            f"{m} × {n}, {100 * holes:.0f} % missing",
            *(f"{near:.0f} % ({same:.0f} %)" for near, same in zip(*lines, strict=True)),
        )
        for m, n in shapes
        for holes, *lines in zip(HOLES, shares[m, n], exact[m, n], strict=True)
    ]
    header = ("data", *(f"SNR {snr}" for snr in SNRS))
    caption = "Fraction of draws in which the rank is found within one, and exactly."
    shown = save(_figure(shares, exact), figures, "rank_recovery", caption)
    return "\n\n".join([text, shown, table(header, rows)])


def _inexact(records: list[Answer]) -> str:
    """Return how many draws of each true rank are not exactly right."""
    wrong = Counter(record["true"] for record in records if record["chosen"] != record["true"])
    drawn = Counter(record["true"] for record in records)
    return listed(f"{n} of {drawn[rank]} of rank {rank}" for rank, n in sorted(wrong.items()))


def _shares(records: list[Answer], shape: tuple[int, int], off: int) -> np.ndarray:
    """Return the fractions (holes, SNR) of a shape in which the rank is at most `off` away."""

    def of_cell(holes: float, snr: float) -> float:
        cell = [record for record in records if _cell(record) == (*shape, holes, snr)]
        return share(cell, off=off)

    return np.array([[of_cell(holes, snr) for snr in SNRS] for holes in HOLES])


def _cell(record: Answer) -> tuple[int, int, float, float]:
    return record["m"], record["n"], record["holes"], record["snr"]


def _figure(*shares: dict[tuple[int, int], np.ndarray]) -> object:
    """Return a heat map for each shape: a row for "within one", and one for "exactly"."""
    shapes = list(shares[0])
    figure, axes = pyplot().subplots(
        2, len(shapes), squeeze=False, figsize=(1 + 3 * len(shapes), 4.4), layout="constrained"
    )
    for i, word in enumerate(("within one", "exactly")):
        for j, (m, n) in enumerate(shapes):
            _heat_map(axes[i, j], shares[i][m, n])
            axes[i, j].set_title(f"{m} × {n}, {word}")
        axes[i, 0].set_ylabel("missing")
    for ax in axes[1]:
        ax.set_xlabel("signal-to-noise ratio")
    return figure


def _heat_map(ax: Any, values: np.ndarray) -> None:
    """Draw the fractions (holes, SNR) of a shape."""
    ax.imshow(values, vmin=0, vmax=100, cmap="viridis", aspect="auto")
    ax.set_xticks(range(len(SNRS)), [str(snr) for snr in SNRS])
    ax.set_yticks(range(len(HOLES)), [f"{100 * holes:.0f} %" for holes in HOLES])
    ax.grid(False)
    for (i, j), value in np.ndenumerate(values):
        color = "white" if value < 60 else "black"
        ax.text(j, i, f"{value:.0f} %", ha="center", va="center", color=color)
