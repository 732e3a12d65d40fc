"""Checks of the arguments, and the problem, starts and refinement plan that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import check_rank, check_size
from nmd_lab._threads import all_threads
from nmd_lab.data.base import Observations
from nmd_lab.data.observations import observe
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.model.offsets import Offsets
from nmd_lab.model.proximal import make_pair

from .bounds import with_bounds
from .held_out import HeldOut, hold_out
from .memory import check_memory
from .offsets import OffsetColumns, starting_offsets
from .options import Options
from .penalty import BALANCED, RELAXING, PenaltyRule, as_penalty_rule
from .problem import Problem, natural_penalty
from .refinement.plan import RefinementPlan, make_plan
from .scaling import Scaling, scaling_for
from .starts import NamedStart, all_starts


@dataclass(frozen=True)
class PreparationOptions:
    """Limits of the preparation.

    Attributes
    ----------
    observed_share : float
        Share of observed entries below which ``constraint="auto"`` means "observed".
    even_share : float
        ρ and its unit under ``penalty="auto"``, as a share of the natural penalty, for an even f.
        A larger ρ holds entries of T on their side of zero, so that their signs are not found.
    """

    observed_share: float = 1 / 3
    even_share: float = 0.1


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
    f = with_bounds(nonlinearity, observations)
    pair = make_pair(f, pair.loss)
    smallest, largest = observations.range()
    pair.loss.check_data(smallest, largest)
    size = check_size("X", max(-smallest, largest), observations.values.dtype)
    observed_only = _observed_only(observations, checked.constraint)
    rng = checked.generator()
    observations, held_out = hold_out(observations, checked, pair.nonlinearity, rng)
    if absent_are_zeros:
        _refuse_empty_rows_and_columns(observations)
    problem, offsets = make_problem(observations, scaling_for(pair, size), checked, observed_only)
    plan = make_plan(problem, rank, checked)
    check_memory(problem, rank, checked, plan)
    starts = all_starts(problem, offsets, rank, checked, rng)
    return Prepared(problem, starts, checked, plan, held_out)


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
    observations: Observations, scaling: Scaling, options: Options, observed_only: bool
) -> tuple[Problem, Offsets]:
    """Return the problem, and the offsets of its starts, in the units of a scaling.

    Parameters
    ----------
    observations : Observations
        Data without the held-out entries.
    scaling : Scaling
        Nonlinearity and loss, and the units of the problem.
    options : Options
        Options of the fit.
    observed_only : bool
        Whether T = WH is imposed on the observed entries alone.

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
    if observed_only:
        observations = observations.as_sparse()
    observations, pair = scaling.scaled_observations(observations), scaling.scaled_pair()
    offsets = starting_offsets(observations, pair.nonlinearity, options.offsets, options.alpha)
    mean = scaling.given_offsets(offsets).mean
    scaling = replace(scaling, columns=OffsetColumns(options.offsets, mean))
    problem = Problem(
        observations,
        pair,
        rule=_penalty_rule(observations, scaling, options),
        alpha=scaling.scaled_alpha(options.alpha),
        epsilon=options.epsilon_for(observations.values.dtype),
        offset_columns=scaling.scaled_columns(offsets.mean, ridge=options.alpha > 0),
        observed_only=observed_only,
        threads=options.threads or all_threads(),
        scaling=scaling,
    )
    return problem, offsets


def _penalty_rule(observations: Observations, scaling: Scaling, options: Options) -> PenaltyRule:
    """Return the rule for ρ, with its initial value, for data in the units of the problem."""
    rule = as_penalty_rule(options.penalty)
    if options.initial_penalty is not None:
        rule = replace(rule, initial=float(options.initial_penalty))
    rule = scaling.scaled_rule(rule)
    if options.penalty != "auto" or scaling.rho_has_no_unit:
        return rule
    pair = scaling.scaled_pair()
    natural = natural_penalty(observations, pair)
    if pair.nonlinearity.even:
        natural *= PREPARATION.even_share
    initial = natural if options.initial_penalty is None else rule.initial
    # From a small ρ, `BALANCED` may stay there with an even f and a loss other than a square.
    settles = not pair.loss.smooth or (pair.nonlinearity.even and pair.loss.degree != 2)
    return replace(RELAXING if settles else BALANCED, initial=initial, unit=natural)


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
