"""Before a fit and after it: everything checked and ready to go, and the labels back on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import check_rank
from nmd_lab.data.base import Observations
from nmd_lab.data.observations import observe
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.proximal import make_pair
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.provenance import provenance
from nmd_lab.solver.refinement.acceleration import Plan
from nmd_lab.solver.refinement.stages import optimality

from .admm import Problem
from .held_out import Validation, take_validation
from .options import Settings
from .problem import make_plan, make_problem
from .restarts import Point, starts
from .stopping import Outcome


class Prepared(NamedTuple):
    """A fit that is checked and ready to go.

    Attributes
    ----------
    problem : Problem
        What is to be solved.
    points : iterator of Point
        Where from; each is worked out when it is asked for.
    settings : Settings
        When to stop, and the like.
    plan : Plan
        What is done beside Algorithm 1.
    validation : Validation or None
        Held-out entries.
    """

    problem: Problem
    points: Iterator[Point]
    settings: Settings
    plan: Plan
    validation: Validation | None


def prepare(
    X: Any,
    rank: int,
    nonlinearity: str | Nonlinearity,
    loss: str | Loss,
    *,
    mask: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    sample_dims: str | Sequence[str] | None = None,
    absent_are_zeros: bool,
    **options: Any,
) -> Prepared:
    """Check everything that `decompose` or `complete` was given.

    Parameters
    ----------
    X, rank, nonlinearity, loss, mask, weights, dtype, sample_dims, **options
        As for `decompose`.
    absent_are_zeros : bool
        True for `decompose`, False for `complete`.

    Raises
    ------
    ValueError, TypeError
        In one sentence, if an argument makes no sense.
    """
    settings = Settings.of(options)
    pair = make_pair(nonlinearity, loss)
    observations = observe(
        X,
        mask=mask,
        weights=weights,
        dtype=dtype,
        sample_dims=sample_dims,
        absent_are_zeros=absent_are_zeros,
    )
    rank = check_rank(rank, observations.shape)
    values, _ = observations.observed()
    pair.loss.check_data(float(values.min()), float(values.max()))
    if absent_are_zeros:
        _check_lines(observations)
    observations, validation = take_validation(
        observations, settings.validation, pair.nonlinearity, settings.generator()
    )
    problem, offsets = make_problem(observations, pair, settings)
    plan = make_plan(problem, rank, settings)
    points = starts(problem, offsets, rank, settings)
    return Prepared(problem, points, settings, plan, validation)


def _check_lines(observations: Observations) -> None:
    """Refuse rows and columns about which nothing is known, where every entry is to count."""
    for line, empty in zip(("row", "column"), observations.empty_rows_and_columns(), strict=True):
        if empty.size:
            raise ValueError(
                f"X has no observed entry in {line} {empty[0]}: drop it, or use complete(), which "
                "lets it fall back to f of the offsets."
            )


def labelled(
    problem: Problem,
    outcome: Outcome,
    settings: Settings,
    starts: Sequence[dict[str, Any]] = (),
) -> Decomposition:
    """Put the labels back on the chosen state.

    Parameters
    ----------
    problem : Problem
        What was solved.
    outcome : Outcome
        How the run ended.
    settings : Settings
        What was asked for.
    starts : sequence of dict
        What became of each start.
    """
    state, observations = outcome.state, problem.observations
    W, H = state.W.copy(), state.H.copy()
    rows, columns = observations.empty_rows_and_columns()
    W[rows], H[:, columns] = 0, 0
    labelled_W, labelled_H = observations.labels.label_factors(W, H)
    iterations = np.arange(1, len(outcome.history["seconds"]) + 1)
    history = xr.Dataset(
        {name: ("iteration", numbers) for name, numbers in outcome.history.items()},
        coords={"iteration": iterations},
    )
    return Decomposition(
        W=labelled_W,
        H=labelled_H,
        offsets=state.offsets,
        nonlinearity=problem.pair.nonlinearity,
        loss=problem.pair.loss,
        history=history,
        stop_reason=outcome.stop_reason,
        labels=observations.labels,
        parameters={
            "rank": W.shape[1],
            "iteration": state.iteration,
            **settings.describe(W.dtype),
            "constraint": "observed" if problem.observed_only else "everywhere",
            "optimality": optimality(problem, state.left, state.right),
            "starts": list(starts),
            **provenance(observations),
        },
    )
