"""How a trial begins with the factors of another one, of another rank or with other offsets."""

from __future__ import annotations

import numpy as np

from nmd_lab.data.entries import FloatArray
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.model import make_model
from nmd_lab.solver.initialization import Start, svd_start
from nmd_lab.solver.problem import Problem
from nmd_lab.solver.split_variable import pseudo_inverses
from nmd_lab.solver.storage import CsrStorage, storage_of


def _with_offsets_of(problem: Problem, start: Start) -> Start:
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


def start_of_rank(problem: Problem, start: Start, rank: int, rng: np.random.Generator) -> Start:
    """Return a start with the largest components of another one, and as many new ones as it needs.

    Both are in the units of the problem.  A component that a strong ridge has removed would grow
    from rounding errors, so that another one takes its place.
    """
    start = _with_offsets_of(problem, start)
    # a rotation would break a constraint
    W, H, sizes = _by_size(start) if problem.is_constrained else _singular_components(start)
    n_alive = min(rank, int(np.count_nonzero(sizes > 1e-4 * problem.size_of_T)))
    alive = start._replace(
        W=np.ascontiguousarray(W[:, :n_alive]), H=np.ascontiguousarray(H[:n_alive])
    )
    return alive if n_alive == rank else _with_more(problem, alive, rank - n_alive, rng)


def _singular_components(start: Start) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the singular components of WH and their sizes, the largest first."""
    Q, R = np.linalg.qr(start.W)
    P, S = np.linalg.qr(start.H.T)
    U, sizes, Vt = np.linalg.svd(R @ S.T)
    root, count = np.sqrt(sizes), sizes.size
    return Q @ (U[:, :count] * root), (root[:, None] * Vt[:count]) @ P.T, sizes


def _by_size(start: Start) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the components as they are and their sizes, the largest first."""
    sizes = np.linalg.norm(start.W, axis=0) * np.linalg.norm(start.H, axis=1)
    order = np.argsort(-sizes, kind="stable")
    return start.W[:, order], start.H[order], sizes[order]


def _with_more(problem: Problem, start: Start, number: int, rng: np.random.Generator) -> Start:
    """Return a start with further components, the largest of the residual under the ridge."""
    model, observations = problem.model, problem.observations
    W_aug, H_aug = problem.offset_columns.extend(start.W, start.H, start.offsets)
    storage = storage_of(observations)
    if isinstance(storage, CsrStorage):
        A = storage.all_products(W_aug, H_aug)
    else:
        A = (W_aug @ H_aug).ravel()
    residual = pseudo_inverses(observations, model) - A
    if not model.is_mixed:
        residual[model.nonlinearity(A) == observations.values.ravel()] = 0
    rest, identity = observations.with_stored(residual), make_model("identity", "frobenius")
    kind = "nndsvd" if problem.constraints.nonnegative else "randomized"
    new = svd_start(rest, identity, number, NO_OFFSETS, rng, kind)
    sizes = np.linalg.norm(new.H, axis=1) ** 2
    shrunk = np.maximum(sizes - problem.alpha, 0.1 * sizes)  # a new one has a tenth at least
    root = np.sqrt(np.divide(shrunk, sizes, out=np.zeros_like(shrunk), where=sizes > 0))
    root = root.astype(start.W.dtype)
    return start._replace(
        W=np.hstack([start.W, new.W * root]), H=np.vstack([start.H, root[:, None] * new.H])
    )
