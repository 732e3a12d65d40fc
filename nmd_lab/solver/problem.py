"""From checked arguments to a problem: constraint, offsets, and whether it fits into memory."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

from nmd_lab._threads import all_threads
from nmd_lab.data.base import Observations
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Identity
from nmd_lab.model.proximal import Pair
from nmd_lab.solver.refinement.acceleration import Plan
from nmd_lab.solver.refinement.lagrangian import FEW
from nmd_lab.solver.refinement.lbfgs import MEMORY
from nmd_lab.solver.refinement.moreau_envelope import natural_penalty

from .admm import Problem
from .offsets import Extension, Offsets, starting_offsets
from .options import Settings
from .penalty import SETTLING, PenaltyRule, as_penalty_rule

OBSERVED_SHARE = 1 / 3
"""Below this share of observed entries, ``constraint="auto"`` constrains the observed ones only."""


def make_problem(
    observations: Observations, pair: Pair, settings: Settings
) -> tuple[Problem, Offsets]:
    """Return the problem and the offsets that it starts from.

    Raises
    ------
    ValueError
        If the constraint or the offsets do not go with the data.
    MemoryError
        If the state would not fit into memory.
    """
    zeros_count = observations.absent_are_zeros
    if zeros_count and settings.offsets != "none":
        raise ValueError(
            f"offsets={settings.offsets!r} does not go with a sparse X whose absent entries are "
            "zeros: use complete(), or offsets='none'."
        )
    observed_only = _observed_only(observations, settings.constraint, zeros_count)
    if observed_only:
        observations = observations.as_sparse()
    _check_memory(observations)
    kind = settings.offsets
    offsets = starting_offsets(observations, pair.nonlinearity, kind, settings.alpha)
    problem = Problem(
        observations,
        pair,
        rule=_penalty_rule(observations, pair, settings),
        alpha=settings.alpha,
        epsilon=settings.epsilon_for(observations.values.dtype),
        extension=Extension(kind, offsets.mean),
        observed_only=observed_only,
        threads=settings.threads or all_threads(),
    )
    return problem, offsets


def make_plan(problem: Problem, rank: int, settings: Settings) -> Plan:
    """Return what is done beside Algorithm 1.

    "auto" leaves a fit as it stands that asks for a fixed ρ, the paper's rule, or in full for the
    plain algorithm (given factors, a rule with a name and tol=0); that is alternating least squares
    anyway; whose data are so few that the memory of the quasi-Newton steps would outgrow them; or
    whose data are sparse and so many that a second pass and another array of them are not welcome.

    Parameters
    ----------
    problem : Problem
        What is to be solved.
    rank : int
        Number of components.
    settings : Settings
        What was asked for.

    Raises
    ------
    ValueError
        If a homotopy is asked for and the nonlinearity has no interval.
    """
    pair, observations = problem.pair, problem.observations
    can_widen = pair.nonlinearity.widened(1.0, pair.loss.domain) is not None
    if settings.homotopy is True and not can_widen:
        raise ValueError(
            f"homotopy=True does not go with nonlinearity={pair.nonlinearity!r}, which has no "
            "interval to widen: use MinMax, or homotopy='auto'."
        )
    adaptive = math.isfinite(problem.rule.factor) and not problem.rule.projected
    least_squares = pair.structure[:2] == (Identity, Frobenius) and problem.observed_only
    m, n = observations.shape
    remembered = 2 * MEMORY * (m + n) * rank
    small = remembered <= max(4 * observations.values.size, FEW)
    small &= not (problem.sparse and observations.values.size > FEW)
    in_full = (
        settings.tol == 0 and settings.penalty != "auto" and not isinstance(settings.init, str)
    )
    auto = adaptive and small and not least_squares and not in_full
    refine = auto and settings.acceleration == "auto"
    return Plan(
        refine=refine,
        homotopy=("auto" if refine and can_widen else False)
        if settings.homotopy == "auto"
        else settings.homotopy,
        polish=auto if settings.polish == "auto" else bool(settings.polish),
        fitted=settings.tol / 100,
    )


def _penalty_rule(observations: Observations, pair: Pair, settings: Settings) -> PenaltyRule:
    """Return the rule for ρ, and where it starts."""
    rule = as_penalty_rule(settings.penalty)
    # An even f has signs to find, for which ρ must not settle early.
    if settings.penalty == "auto" and not pair.loss.smooth and not pair.nonlinearity.even:
        natural = natural_penalty(observations, pair)
        rule = replace(SETTLING, initial=natural, unit=natural)
    if settings.initial_penalty is not None:
        rule = replace(rule, initial=float(settings.initial_penalty))
    return rule


def _observed_only(observations: Observations, constraint: str, zeros_count: bool) -> bool:
    """Choose where T = WH is imposed."""
    m, n = observations.shape
    if constraint == "observed" and zeros_count:
        raise ValueError(
            "constraint='observed' does not go with a sparse X whose absent entries are zeros: "
            "use complete(), or constraint='everywhere'."
        )
    few = observations.n_observed < OBSERVED_SHARE * m * n
    return constraint == "observed" or (constraint == "auto" and few)


def _check_memory(observations: Observations) -> None:
    """Refuse a problem whose T and U are larger than the memory that is free."""
    m, n = observations.shape
    needed = 2 * observations.n_stored * observations.values.dtype.itemsize
    free = _free_memory()
    if free is None or needed < 0.9 * free:
        return
    rows = int(0.9 * free / needed * m)
    remedy = f"about {rows} rows of {n} columns would fit"
    if observations.values.dtype.itemsize == 8:
        remedy += ", or twice as many with dtype='float32'"
    raise MemoryError(
        f"X of shape {(m, n)} needs {needed / 2**30:.3g} GiB for T and U, "
        f"{free / 2**30:.3g} GiB are free: {remedy}."
    )


def _free_memory() -> int | None:
    """Return the bytes that can be had without swapping, or None where that cannot be told."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
