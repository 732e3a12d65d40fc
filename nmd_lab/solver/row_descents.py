"""Descents of single rows of W with H fixed: Newton steps for rows without missing entries.

The rows of sparse zeros have many flat entries, on which Algorithm 1 halts far from a minimum.
Levenberg steps descend on the Moreau envelope with U = 0 (`.refinement.moreau_envelope`), first for
a small ρ and then for ever larger ones.  The w of lowest objective is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from nmd_lab._runtime.compiler import compile_kernel
from nmd_lab.model.entry import compile_entry
from nmd_lab.model.kind import Structure
from nmd_lab.model.model import Model

from .row_kernel import add_multiple, dot, put
from .row_updates import factorize, substitute

PENALTIES = (10.0, 1e3, 1e5, 1e7, 1e9)  # ρ of each stage, in natural ones of a row
N_STARTS = 5  # of a row; convex problems have one
STEPS = 20  # largest number of steps of a stage
DECREASE = 1e-4  # relative decrease of the envelope at or below which a stage ends
DAMPING = 1e-5  # first damping, relative to ρ times the Gram matrix of H
SUCCESS, FAILURE = 0.2, 10.0  # factors of the damping after a step that lowers the envelope or not
MOST = 1e6  # damping from which a row ends its stage
SHIFT = 1e-4  # of WH, relative, for the slope of the T-update


def can_descend(model: Model) -> bool:
    """Return whether Newton steps suit a model: one smooth loss, and an f within its domain."""
    if model.is_mixed or not model.smooth:
        return False
    if model.only.pieces:
        return model.only.pieces == model.nonlinearity.pieces()
    (low, high), (smallest, largest) = model.loss.domain, model.nonlinearity.range
    return low <= smallest and largest <= high


def descent_kernel(model: Model) -> Callable[..., None]:
    """Return the compiled descents of rows X from starts (n_rows, copies, width) to the best W."""
    structure, degree = model.only.structure, model.degrees[0] or 1
    return _kernel(structure, degree, f"descend_{model.only.name}", model.is_ours)


@cache
def _kernel(structure: Structure, degree: int, name: str, cached: bool) -> Callable[..., None]:
    solve, loss = compile_entry(structure, False)

    def descend(X, H, base, starts, gram, natural, ridge, alpha, best, model):  # type: ignore[no-untyped-def]
        width, n = H.shape
        a, s, scaled = np.empty(n), np.empty(n), np.empty(n)
        w, trial, step, damping = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
        normal, L = np.empty((width, width)), np.empty((width, width))
        for i in range(len(X)):
            x, lowest = X[i], math.inf
            for copy in range(starts.shape[1]):
                put(trial, 1.0, starts[i, copy])
                for factor in PENALTIES:
                    rho, extent, value = factor * natural[i], DAMPING, math.inf
                    for k in range(STEPS + 1):
                        put(a, 1.0, base)
                        for c in range(width):
                            add_multiple(a, trial[c], H[c])
                        penalty, data_term, envelope = 0.5 * alpha * dot(trial, trial), 0.0, 0.0
                        for j in range(n):
                            t = solve(a[j], x[j], rho, 0, x[j], model)
                            s[j] = t - a[j]
                            data_term += loss(x[j], a[j], 0, x[j], model)
                            envelope += loss(x[j], t, 0, x[j], model) + 0.5 * rho * s[j] * s[j]
                        if data_term + penalty < lowest:
                            lowest = data_term + penalty
                            put(best[i], 1.0, trial)
                        gain, little = value - (envelope + penalty), False
                        if gain > 0.0:
                            little = gain <= DECREASE * (envelope + penalty)
                            value = envelope + penalty
                            put(w, 1.0, trial)
                        if k > 0:
                            extent *= SUCCESS if gain > 0.0 else FAILURE
                        if little or extent >= MOST or k == STEPS:
                            break
                        if gain > 0.0:
                            for j in range(n):  # the slope of the envelope and its curvature
                                size = abs(x[j]) if degree == 1 else abs(x[j]) ** (1.0 / degree)
                                shift = SHIFT * (abs(a[j]) + size + 1e-100)
                                rise = solve(a[j] + shift, x[j], rho, 0, x[j], model)
                                rise -= a[j] + s[j]
                                a[j] = min(max(1.0 - rise / shift, 0.0), 1.0)
                            for c in range(width):
                                step[c] = dot(s, H[c]) - alpha / rho * w[c]
                                for j in range(n):
                                    scaled[j] = a[j] * H[c, j]
                                for other in range(c + 1):
                                    normal[c, other] = dot(scaled, H[other])
                        for c in range(width):
                            damping[c] = ridge + alpha / rho
                            trial[c] = step[c]
                            for other in range(c + 1):
                                L[c, other] = normal[c, other] + extent * gram[c, other]
                        factorize(L, damping, L)
                        substitute(L, trial)
                        add_multiple(trial, 1.0, w)
                    put(trial, 1.0, w)

    return compile_kernel(descend, name, cached=cached)
