"""The problem that follows from data, model and options."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nmd_lab._threads import all_threads
from nmd_lab.data.base import Observations
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.nonlinearities import Identity

from .constraints.factor_constraints import GivenConstraints
from .devices.choice import device_of, refuse_unsupported
from .devices.files import FileHost
from .devices.host import HOST
from .memory import refuse_fit
from .offsets import OffsetColumns
from .options import Options
from .penalty import BALANCED, RELAXING, PenaltyRule, as_penalty_rule
from .problem import Problem
from .scaling import Scaling
from .starting_data import starting_offsets

OBSERVED_SHARE = 1 / 3  # share of observed entries below which "auto" means "observed"
EVEN_SHARE = 0.1  # ρ for an even f, in natural ones: a larger ρ holds T on its side of zero
COMPONENT = 0.5  # singular value of a usual component over ‖T‖, for the weight of l1 penalties


def make_problem(
    observations: Observations, scaling: Scaling, options: Options, observed_only: bool
) -> tuple[Problem, Offsets]:
    """Return the problem, and the offsets of its starts, in the units of a scaling."""
    device = device_of(options.compute.device)
    refuse_unsupported(device, scaling.model, observed_only=observed_only)
    if observations.scratch is not None and device is HOST:
        device = FileHost(observations.scratch)
    if observed_only:
        observations = observations.as_sparse()
    if scaling.exponent and observations.in_memory:
        three = 3 * observations.n_stored * observations.dtype.itemsize
        refuse_fit(observations, three)  # a copy of the data, T and U
    observations, model = scaling.scaled_observations(observations), scaling.scaled_model()
    plain = Problem(
        observations,
        model,
        alpha=scaling.scaled_alpha(options.alpha),
        epsilon=options.epsilon_for(observations.dtype),
        observed_only=observed_only,
        threads=options.compute.threads or all_threads(),
        device=device,
    )
    ridge = scaling.scaled_offset_alpha(options.offset_alpha, 1.0)
    offsets = starting_offsets(plain, options.offsets, ridge)
    mean = scaling.given_offsets(offsets).mean
    scaling = replace(scaling, columns=OffsetColumns(options.offsets, mean))
    columns = scaling.scaled_columns(offsets.mean)
    problem = plain.changed(
        rule=_penalty_rule(plain, scaling, options),
        offset_alpha=ridge * columns.constant**2,
        offset_columns=columns,
        scaling=scaling,
    )
    return _with_constraints(problem, options), offsets


def _with_constraints(problem: Problem, options: Options) -> Problem:
    """Return the problem with the constraints of the options."""
    W_constraint, H_constraint = options.factor_constraints
    if W_constraint is None and H_constraint is None:
        return problem
    units, rule = problem.units, problem.rule
    constraints = GivenConstraints.of(
        W_constraint,
        H_constraint,
        options.alpha,
        problem.observations.shape,
        natural=math.ldexp(problem.natural_penalty, units.of_penalty),
        size=math.ldexp(COMPONENT * problem.size_of_T, 2 * units.exponent),
    )
    model, weights = problem.model, problem.observations.weight_reader()
    plain = weights is None or weights.dtype == bool
    free = options.solver.rho == "auto" and options.solver.initial_rho is None
    if free and plain and model.is_of(Identity, Frobenius):
        rule = as_penalty_rule(1.0)  # then Z = X at observed entries: alternating minimisation
    return problem.changed(rule=rule, constraints=constraints)


def _penalty_rule(problem: Problem, scaling: Scaling, options: Options) -> PenaltyRule:
    """Return the rule for ρ, with its initial value, for data in the units of the problem."""
    rule = as_penalty_rule(options.solver.rho)
    if options.solver.initial_rho is not None:
        rule = replace(rule, initial=float(options.solver.initial_rho))
    rule = scaling.scaled_rule(rule)
    if options.solver.rho != "auto":
        return rule
    if scaling.rho_has_no_unit:
        if options.solver.initial_rho is not None or problem.observations.weights is None:
            return rule
        count = problem.observations.sum_of(lambda x, weights: np.ones_like(x))
        weight = problem.observations.sum_of(lambda x, weights: weights) / count  # the unit of ρ
        return replace(rule, initial=rule.initial * weight, unit=rule.unit * weight)
    model, natural = problem.model, problem.natural_penalty
    if model.even:
        natural *= EVEN_SHARE
    initial = natural if options.solver.initial_rho is None else rule.initial
    # From a small ρ, `BALANCED` may stay there with an even f and a loss other than a square.
    settles = not model.smooth or (model.even and model.degrees[1] != 2)
    return replace(RELAXING if settles else BALANCED, initial=initial, unit=natural)


def observed_only(observations: Observations, split: str) -> bool:
    """Return whether T = WH is imposed on the observed entries alone."""
    m, n = observations.shape
    few = observations.n_observed < OBSERVED_SHARE * m * n
    return split == "observed" or (split == "auto" and few)
