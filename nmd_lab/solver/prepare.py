"""Checks of the arguments, and the problem, starts and refinement plan that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import check_rank
from nmd_lab._threads import all_threads
from nmd_lab.data.base import Observations
from nmd_lab.data.observations import observe
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.offsets import Offsets
from nmd_lab.model.proximal import Pair, make_pair

from .held_out import HeldOut, hold_out
from .memory import check_memory
from .offsets import OffsetColumns, starting_offsets
from .options import Options
from .penalty import RELAXING, PenaltyRule, as_penalty_rule
from .problem import Problem, natural_penalty
from .refinement.plan import RefinementPlan, make_plan
from .restarts import NamedStart, all_starts


@dataclass(frozen=True)
class PreparationOptions:
    """Limits of the preparation.

    Attributes
    ----------
    observed_share : float
        Share of observed entries below which ``constraint="auto"`` means "observed".
    """

    observed_share: float = 1 / 3


PREPARATION = PreparationOptions()


class Prepared(NamedTuple):
    """A checked problem with all that `solve` needs.

    Attributes
    ----------
    problem : Problem
        Problem to solve.
    starts : iterator of NamedStart
        Starting points, each computed when it is requested.
    options : Options
        Options of the fit.
    plan : RefinementPlan
        Refinements to run between the iterations of Algorithm 1.
    held_out : HeldOut or None
        Held-out entries for early stopping; None without validation.
    """

    problem: Problem
    starts: Iterator[NamedStart]
    options: Options
    plan: RefinementPlan
    held_out: HeldOut | None


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
    """Check the arguments of `decompose` or `complete`.

    Parameters
    ----------
    X, rank, nonlinearity, loss, mask, weights, dtype, sample_dims, **options
        As for `decompose`.
    absent_are_zeros : bool
        Meaning of the absent entries of a sparse X: zeros for `decompose`, missing for `complete`.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.
    MemoryError
        If the fit would not fit into memory.
    """
    checked = Options.of(options)
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
    pair.loss.check_data(*_range(observations))
    if absent_are_zeros:
        _refuse_empty_rows_and_columns(observations)
    observations, held_out = hold_out(
        observations, checked.validation, pair.nonlinearity, checked.generator()
    )
    problem, offsets = make_problem(observations, pair, checked)
    plan = make_plan(problem, rank, checked)
    check_memory(problem, rank, checked, plan)
    return Prepared(problem, all_starts(problem, offsets, rank, checked), checked, plan, held_out)


def _range(observations: Observations) -> tuple[float, float]:
    """Return the smallest and the largest observed value."""
    ranges = [(x.min(), x.max()) for x, _ in observations.observed_blocks() if x.size]
    return float(min(low for low, _ in ranges)), float(max(high for _, high in ranges))


def _refuse_empty_rows_and_columns(observations: Observations) -> None:
    """Raise ValueError if a row or a column has no observed entry (`decompose` only)."""
    both = zip(("row", "column"), observations.empty_rows_and_columns(), strict=True)
    for name, empty in both:
        if empty.size:
            raise ValueError(
                f"X has no observed entry in {name} {empty[0]}: drop it, or use complete(), which "
                "lets it fall back to f of the offsets."
            )


def make_problem(
    observations: Observations, pair: Pair, options: Options
) -> tuple[Problem, Offsets]:
    """Return the problem, and the offsets of its starts.

    Raises
    ------
    ValueError
        If the constraint or the offsets do not go with the data.
    """
    if observations.absent_are_zeros and options.offsets != "none":
        raise ValueError(
            f"offsets={options.offsets!r} does not go with a sparse X whose absent entries are "
            "zeros: use complete(), or offsets='none'."
        )
    observed_only = _observed_only(observations, options.constraint)
    if observed_only:
        observations = observations.as_sparse()
    offsets = starting_offsets(observations, pair.nonlinearity, options.offsets, options.alpha)
    problem = Problem(
        observations,
        pair,
        rule=_penalty_rule(observations, pair, options),
        alpha=options.alpha,
        epsilon=options.epsilon_for(observations.values.dtype),
        offset_columns=OffsetColumns(options.offsets, offsets.mean),
        observed_only=observed_only,
        threads=options.threads or all_threads(),
    )
    return problem, offsets


def _penalty_rule(observations: Observations, pair: Pair, options: Options) -> PenaltyRule:
    """Return the rule for ρ, with its initial value."""
    rule = as_penalty_rule(options.penalty)
    # With an even f, ρ must stay free to change until the signs of T are found.
    if options.penalty == "auto" and not pair.loss.smooth and not pair.nonlinearity.even:
        natural = natural_penalty(observations, pair)
        rule = replace(RELAXING, initial=natural, unit=natural)
    if options.initial_penalty is not None:
        rule = replace(rule, initial=float(options.initial_penalty))
    return rule


def _observed_only(observations: Observations, constraint: str) -> bool:
    """Return whether T = WH is imposed on the observed entries alone."""
    m, n = observations.shape
    if constraint == "observed" and observations.absent_are_zeros:
        raise ValueError(
            "constraint='observed' does not go with a sparse X whose absent entries are zeros: "
            "use complete(), or constraint='everywhere'."
        )
    few = observations.n_observed < PREPARATION.observed_share * m * n
    return constraint == "observed" or (constraint == "auto" and few)
