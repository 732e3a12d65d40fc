"""The paper's printed T-updates against the exact minimiser, on random inputs.

Each follows its list of cases, with the thresholds of s = ρa - λ that the list
gives.  Where no case holds the update is undefined; where its objective is above that of the exact
minimiser it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import nmd_lab as nmd

from .cells import Cell, Scores, run_cells
from .fits import NAME, SIGN
from .report import prose, table

TITLE = "The printed T-updates"
P, Q = 0.5, 1.0  # the bounds of MinMax, those of the Poisson experiment
Array = NDArray[np.float64]


def run(folder: Path) -> xr.Dataset:
    """Return the fractions of inputs on which each printed update is wrong or undefined."""
    options = {"count": 200_000}
    cells = [Cell({"model": model}, options) for model in PRINTED]
    return run_cells(folder / "printed_updates", cells, work, attrs=options)


def work(*, model: str, count: int) -> Scores:
    """Compare one update with `nmd.prox` on random x, a, λ and ρ."""
    nonlinearity, loss = model.split("+")
    rng = np.random.default_rng(0)
    x = rng.uniform(P, Q, count) if model == "minmax+l1" else rng.uniform(0, 3, count)
    if model != "minmax+l1":  # which the paper derives for x within the bounds
        x[rng.random(count) < 0.2] = 0
    a, multiplier = 2 * rng.standard_normal((2, count))
    rho = 10 ** rng.uniform(-1, 1, count)
    f = nmd.MinMax(P, Q) if nonlinearity == "minmax" else nmd.ReLU()
    exact = nmd.prox(a - multiplier / rho, x, rho, nonlinearity=f, loss=loss)

    def g(t: Array) -> Array:
        y = np.clip(t, P, Q) if nonlinearity == "minmax" else np.maximum(t, 0)
        return LOSS[loss](x, y) + multiplier * t + rho / 2 * (t - a) ** 2

    t = PRINTED[model](x, a, multiplier, rho, g)
    undefined = np.isnan(t)
    wrong = ~undefined & (g(np.where(undefined, exact, t)) > g(exact) + 1e-9)
    return {"wrong": wrong.mean(), "undefined": undefined.mean()}


def kl(x: Array, y: Array) -> Array:
    """Return KL without its constant, with 0 log 0 = 0 and infinity where y = 0 < x."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(x > 0, y - x * np.log(y), y)


LOSS: dict[str, Callable[[Array, Array], Array]] = {
    "frobenius": lambda x, y: (x - y) ** 2 / 2,
    "l1": lambda x, y: np.abs(x - y),
    "kl": kl,
}


def best_of(g: Callable[[Array], Array], *candidates: Array | float) -> Array:
    """Return the candidate of lowest objective."""
    shape = np.broadcast_shapes(*(np.shape(candidate) for candidate in candidates))
    stacked = np.stack([np.broadcast_to(candidate, shape) for candidate in candidates])
    lowest = np.argmin([g(candidate) for candidate in stacked], axis=0)
    return np.take_along_axis(stacked, lowest[None], axis=0)[0]


def first_case(cases: list[tuple[Array, Array | float]]) -> Array:
    """Return the value of the first case that holds, NaN where none does."""
    return np.select([case for case, _ in cases], [value for _, value in cases], default=np.nan)


def relu_frobenius(x: Array, a: Array, multiplier: Array, rho: Array, g: Callable) -> Array:
    """Algorithm 2 of the paper."""
    y = multiplier - rho * a
    t1, t2 = (x - y) / (1 + rho), a - multiplier / rho
    return first_case([(y <= 0, t1), (y >= x, t2), ((y > 0) & (y < x), best_of(g, t1, t2))])


def relu_l1(x: Array, a: Array, multiplier: Array, rho: Array, g: Callable) -> Array:
    """The appendix on ReLU with the l1 norm."""
    s = rho * a - multiplier
    t1, t2 = s / rho, np.maximum(np.minimum((s + 1) / rho, x), (s - 1) / rho)
    return first_case(
        [
            (s > 1, t2),
            (s < -1, t1),
            ((s > 0) & (s < 1), 0.0),
            ((s > -1) & (s < 0), best_of(g, t1, t2)),
        ]
    )


def minmax_l1(x: Array, a: Array, multiplier: Array, rho: Array, g: Callable) -> Array:
    """The appendix on MinMax with the l1 norm; three of its cases contradict themselves."""
    s = rho * a - multiplier
    t1, t2 = s / rho, np.maximum(np.minimum((s + 1) / rho, x), (s - 1) / rho)
    inside = (rho * P < s) & (s < rho * Q)
    above = (rho * P + 1 < s) & (s < rho * Q + 1)
    below = (rho * P - 1 < s) & (s < rho * Q - 1)
    return first_case(
        [
            (s > rho * Q + 1, t1),
            (inside & above & below, t2),
            (s < rho * P - 1, t1),
            (above & below & (s < rho * P), best_of(g, t2, t1)),
            (inside & (s > rho * Q - 1) & (s > rho * Q + 1), Q),
            (above & (s > rho * Q), best_of(g, t2, t1)),
            (inside & (s < rho * P - 1) & (s < rho * P + 1), P),
        ]
    )


def minmax_kl(x: Array, a: Array, multiplier: Array, rho: Array, g: Callable) -> Array:
    """The appendix on MinMax with the KL divergence."""
    s = rho * a - multiplier
    D = np.sqrt((1 - s) ** 2 + 4 * rho * x)
    t1, t2, t2_zero = s / rho, (s - 1 + D) / (2 * rho), (s - 1) / rho
    inside, above, below = (rho * P < s) & (s < rho * Q), s > rho * Q, s < rho * P
    t2_inside = (2 * rho * P + 1 - D < s) & (s < 2 * rho * Q + 1 - D)
    positive = first_case(
        [
            (above & (s > 2 * rho * Q + 1 - D), best_of(g, t1, Q)),
            (above & t2_inside, best_of(g, t1, t2, Q, P)),
            (inside & t2_inside, best_of(g, t2, Q, P)),
            (inside & (s < 2 * rho * P + 1 - D), P),
            (below & t2_inside, best_of(g, t1, P)),
            (inside & (s > 2 * rho * Q + 1 - D), Q),
        ]
    )
    zero = first_case(
        [
            (below, t1),
            (inside & (s < rho * P + 1), P),
            (inside & (rho * P + 1 < s) & (s < rho * Q + 1), t2_zero),
            (above & (rho * P + 1 < s) & (s < rho * Q + 1), best_of(g, t2_zero, t1)),
            (s > rho * Q + 1, t1),
        ]
    )
    return np.where(x > 0, positive, zero)


PRINTED = {
    "relu+frobenius": relu_frobenius,
    "relu+l1": relu_l1,
    "minmax+l1": minmax_l1,
    "minmax+kl": minmax_kl,
}


def section(results: xr.Dataset, figures: Path) -> str:
    """Return the page's section."""
    rows = []
    for model in PRINTED:
        f, d = model.split("+")
        here = results.sel(model=model)
        shares = [f"{float(here.wrong):.1%}", f"{float(here.undefined):.1%}"]
        rows.append([f"{NAME[f]} + {SIGN[d]}", *shares])
    about = prose(ABOUT, count=results.attrs["count"])
    return "\n\n".join([about, table(["model", "wrong", "undefined"], rows), FINDINGS])


ABOUT = """
    The printed lists of cases are taken literally on {count} random inputs (a and λ normal with
    standard deviation 2, ρ from 0.1 to 10, bounds 0.5 and 1, x between them for ℓ1 and from 0 to 3
    otherwise). The table has how often the printed t has a higher objective than ours, and how
    often no case applies. ReLU + Frobenius is shown for comparison.
"""

FINDINGS = prose("""
    - For ReLU + ℓ1 the list gives t = 0 for 0 < ρa − λ < 1; with x = 3, a = 7.2, λ = 0 and ρ =
      0.095 the minimiser is 3.
    - For MinMax + ℓ1 no possible case covers the inputs near a bound.
    - For MinMax + KL no case covers both minimisers below the lower bound, and where only the outer
      one is there, the inner one is not tried.
    - All other results of this page use the exact minimiser, including those with the paper's
      settings.
""")
