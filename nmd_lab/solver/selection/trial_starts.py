"""How a trial begins with the factors of another one, of another rank or with other offsets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.problem import Problem

ALIVE = 1e-4
"""Size of a component, as a share of that of T, below which a trial begins with another one in its
place.  A component that a strong ridge has removed would grow from rounding errors."""


def with_offsets_of(problem: Problem, start: Start) -> Start:
    """Return a start in which offsets that the problem does not have are components."""
    columns, offsets = problem.offset_columns, start.offsets
    m, n, dtype = start.W.shape[0], start.H.shape[1], start.W.dtype
    rows = np.zeros(m, dtype) if columns.before else offsets.of_rows(m, dtype)
    cols = np.zeros(n, dtype) if columns.after else offsets.of_columns(n, dtype)
    mean = offsets.mean if columns.kind == "none" else 0.0
    if not rows.any() and not cols.any() and mean == 0:
        return start
    W = np.column_stack([start.W, rows + mean, np.ones(m, dtype)])
    H = np.vstack([start.H, np.ones(n, dtype), cols])
    return start._replace(W=W.astype(dtype), H=H.astype(dtype))


class Components(NamedTuple):
    """Components of a start, the largest first, with the size of each."""

    start: Start
    sizes: FloatArray


def singular_components(start: Start) -> Components:
    """Return the singular components of WH."""
    Q, R = np.linalg.qr(start.W)
    P, S = np.linalg.qr(start.H.T)
    U, sizes, Vt = np.linalg.svd(R @ S.T)
    root, count = np.sqrt(sizes), sizes.size
    W, H = Q @ (U[:, :count] * root), (root[:, None] * Vt[:count]) @ P.T
    return Components(start._replace(W=W, H=H), sizes)


def components(start: Start) -> Components:
    """Return the components as they are, in another order."""
    sizes = np.linalg.norm(start.W, axis=0) * np.linalg.norm(start.H, axis=1)
    order = np.argsort(-sizes, kind="stable")
    return Components(start._replace(W=start.W[:, order], H=start.H[order]), sizes[order])


def alive_components(components: Components, rank: int, size_of_T: float) -> Start:
    """Return a start with the largest components, at most `rank` and none that is zero."""
    (W, H, *_), sizes = components
    n_alive = min(rank, int(np.count_nonzero(sizes > ALIVE * size_of_T)))
    return components.start._replace(
        W=np.ascontiguousarray(W[:, :n_alive]), H=np.ascontiguousarray(H[:n_alive])
    )
