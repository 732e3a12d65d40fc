"""Members of an ensemble with as many components as columns, in which levels are numbers.

Such a member is a Gaussian with a full covariance, or a mixture of them.  It knows exact relations
of columns, such as a column that is the sum of others, which a few components with a noise for each
column do not.  It takes the position of a level, or 0 and 1, for a number with normal noise.  So
does linear regression, while the other members draw T between cut points.  Each kind is ahead on
some tables.

A draw of such a member is one of the other kind with cut points half-way between the levels, in
units in which the noise is 1.  Draws of both kinds are kept in this form, with zeros for the
components that one of the other kind does not have.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmd_lab._runtime.checks import is_auto
from nmd_lab.data.observations import Observations
from nmd_lab.model.kind import make_kind
from nmd_lab.model.model import Model
from nmd_lab.solver.options import SampleOptions
from nmd_lab.solver.scaling import Scaling

from .chain import Draw
from .cut_points import CutPoints
from .latent_sweep import ChainState
from .prepare import problem_of
from .problem import SampledProblem

MOST_COLUMNS = 64
"""Columns of the matrix up to which a member has as many components; with more, as many as
others."""

MOST_WORK = 1 << 30
"""Rows times the cube of the columns up to which the same holds, so that a sweep takes seconds."""


def can_be_full(problem: SampledProblem, options: SampleOptions) -> bool:
    """Return whether a table may have members of full rank: nothing was asked that speaks against.

    Limits, and other noise than the normal one, have no form as numbers.
    """
    asked = not (is_auto(options.rank) and is_auto(options.init))
    plain = problem.by_column and not problem.row_offsets and problem.limits is None
    return plain and not asked and "after" not in problem.noises


def full_rank(
    problem: SampledProblem, observations: Observations, options: SampleOptions
) -> SampledProblem:
    """Return the problem of a table with all components, whose levels are numbers."""
    kinds, noises = list(problem.model.kinds), list(problem.noises)
    for k, (kind, at) in enumerate(zip(kinds, problem.entries_of_kinds, strict=True)):
        if noises[k] == "ordinal":
            x = np.asarray(kind.loss.level_values)[problem.values[at].astype(np.intp)]
            centre, size = (float(x.mean()), float(x.std())) if x.size else (0.0, 1.0)
            numbers = make_kind("identity", "frobenius")
            kinds[k] = numbers._replace(centre=centre, size=size or 1.0)
            noises[k] = "gaussian"
    (m, n), scaling = problem.shape, Scaling(Model(tuple(kinds), problem.model.which))
    is_full = n <= min(MOST_COLUMNS, m) and m * n**3 <= MOST_WORK
    rank = n if is_full else problem.rank
    return problem_of(observations, options, rank, scaling, tuple(noises))


def with_cut_points(problem: SampledProblem, full: SampledProblem, state: ChainState) -> ChainState:
    """Return the state of a member of full rank with cut points for the levels."""
    at = np.flatnonzero(np.array(problem.noises) == "ordinal")
    centres, sizes = full.units_of_kinds[at].T
    roots = np.sqrt(state.rho[at])
    columns, rho, cuts = state.columns.copy(), state.rho.copy(), list(state.cuts)
    rho[at] = 1.0
    columns[at] *= roots[:, None]
    columns[at, -1] += roots * centres / sizes
    for j, root, size in zip(at, roots, sizes, strict=True):
        values = np.asarray(problem.model.kinds[j].loss.level_values)
        inner = 0.5 * (values[1:] + values[:-1]) * root / size
        cuts[j] = CutPoints(np.concatenate([[-np.inf], inner, [np.inf]]), np.ones(inner.size))
    return replace(state, columns=columns, rho=rho, cuts=cuts)


def with_rank(draw: Draw, rank: int, more: int) -> Draw:
    """Return a draw with `more` components after the first `rank`, of which H is zero."""
    names, at, new = ("rows", "columns", "row_means"), [rank] * more, range(rank, rank + more)
    precisions = np.insert(np.insert(draw["row_precisions"], at, 0, axis=1), at, 0, axis=2)
    precisions[:, new, new] = 1.0
    padded = {name: np.insert(draw[name], at, 0, axis=1) for name in names}
    return draw | padded | {"row_precisions": precisions}
