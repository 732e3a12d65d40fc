"""A checked problem: data, model, penalty rule, ridge, offsets and constraint, in units of its own.

**Units.**  For a loss of degree q and an f of degree p, d(s x, f(t)) = s^q d(x, f(t / s^(1/p))).  A
problem for X is therefore the same as one for X / s, with these units:

    X, T = WH     s, s^(1/p)            objective     s^q
    W, H          s^(1/2p) each         ρ             s^q / s^(2/p)
    offsets       s^(1/p)               alpha         s^q / s^(1/p)

The solver works in them if the data are very large or very small, and `Scaling` alone converts.
Every unit is a power of two, so that nothing is rounded.

**Offsets** are additional columns of W and rows of H: the model X ≈ f(WH + mean + b_i + c_j) is
written as X ≈ f(W_aug H_aug) with extended factors:

    W_aug = [ b | W | 1 | 1    ]
    H_aug = [ 1 | H | c | mean ]   (row by row)

The column b of W_aug multiplies a row of ones in H_aug, and the row c of H_aug multiplies a column
of ones in W_aug.  The factor steps solve for b and c as for any component, with the same ridge.
The ones and the mean stay constant.  A problem in units of its own has another constant in their
place, and b, c and the mean are divided by it (`OffsetColumns.constant`).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.devices import HOST, Device
from nmd_lab.kernels.envelope import MoreauEnvelope, SparseEnvelope, Tiles
from nmd_lab.kernels.products import StoredEntries, pseudo_inverses, starting_entries
from nmd_lab.kernels.row_steps import ConstrainedColumns, Ridge
from nmd_lab.kernels.sweep import EverywhereSweep, ObservedSweep, Sweep
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.losses import Loss
from nmd_lab.model.model import Model, make_model
from nmd_lab.request.constraints import NO_CONSTRAINTS, GivenConstraints
from nmd_lab.request.penalty import BALANCED, PenaltyRule, as_penalty_rule, automatic_rule

from .initialization import Start

Data = TypeVar("Data", bound=Observations)


@dataclass(frozen=True)
class OffsetColumns:
    """The positions of components and offsets in the extended factors."""

    kind: str
    mean: float = 0.0
    constant: float = 1.0

    @property
    def before(self) -> int:
        """Number of columns of W_aug for row offsets, before the components: 1 or 0."""
        return int(self.kind in ("rows", "both"))

    @property
    def after(self) -> int:
        """Number of rows of H_aug for column offsets, after the components: 1 or 0."""
        return int(self.kind in ("columns", "both"))

    @property
    def width(self) -> int:
        """Number of columns of W_aug in addition to the components."""
        return self.before + self.after + int(self.kind != "none")

    def components(self, width: int) -> slice:
        """Return the position of the components among all `width` columns of W_aug."""
        return slice(self.before, self.before + width - self.width)

    def solved(self, rank: int) -> tuple[slice, slice]:
        """Return the columns of W_aug and the rows of H_aug that are solved for."""
        first, last = self.before, self.before + rank
        return slice(0, last), slice(first, last + self.after)

    def extend(
        self, W: FloatArray, H: FloatArray, offsets: Offsets
    ) -> tuple[list[FloatArray | float], FloatArray]:
        """Return the pieces of W_aug, which stand side by side, and H_aug."""
        (m, n), one, has_mean = (len(W), H.shape[1]), float(self.constant), self.kind != "none"
        rows, columns = offsets.of_rows(m, float) / one, offsets.of_columns(n, float) / one
        ones, means = np.full((1, n), one), np.full((1, n), self.mean / one)
        left: list[FloatArray | float] = [rows] * self.before
        left += [W, *[one] * (has_mean + self.after)]
        right = [ones] * self.before + [H] + [columns[None]] * self.after + [means] * has_mean
        return left, np.vstack(right, dtype=H.dtype)

    def split(self, W_aug: FloatArray, H_aug: FloatArray) -> tuple[FloatArray, FloatArray, Offsets]:
        """Return W, H and the offsets from extended factors."""
        rank = W_aug.shape[1] - self.width
        components = self.components(W_aug.shape[1])
        rows = W_aug[:, 0] * self.constant if self.before else None
        columns = H_aug[self.before + rank] * self.constant if self.after else None
        return W_aug[:, components], H_aug[components], Offsets(self.mean, rows, columns)


NO_OFFSET_COLUMNS = OffsetColumns("none")


@dataclass(frozen=True)
class Scaling:
    """The units of a problem.

    The constant columns of offsets have about the size of W and H (`ones`), so that the fit does
    not depend on the size of X where there are too few entries for all offsets and factors.
    """

    model: Model
    exponent: int = 0
    ones: float = 1.0

    @property
    def log2_unit_of_x(self) -> int:
        """Logarithm to base 2 of the unit of X."""
        return 2 * (self.model.degrees[0] or 1) * self.exponent

    @property
    def log2_unit_of_objective(self) -> int:
        """Logarithm to base 2 of the unit of the objective."""
        return (self.model.degrees[1] or 1) * self.log2_unit_of_x

    @property
    def log2_unit_of_penalty(self) -> int:
        """Logarithm to base 2 of the unit of ρ."""
        return self.log2_unit_of_objective - 4 * self.exponent

    def scaled_model(self) -> Model:
        """Return the model in the units of the problem."""
        size = math.ldexp(1.0, self.log2_unit_of_x)
        return self.model.scaled(size) if self.exponent else self.model

    def scaled_observations(self, observations: Data) -> Data:
        """Return the data in the units of the problem; a copy only if the units differ."""
        exponent = -self.log2_unit_of_x
        return observations.mapped(lambda x: np.ldexp(x, exponent)) if exponent else observations

    def given_observations(self, observations: Observations) -> Observations:
        """Return the data of the problem in the units of X."""
        exponent = self.log2_unit_of_x
        return observations.mapped(lambda x: np.ldexp(x, exponent)) if exponent else observations

    def scaled_alpha(self, alpha: float) -> float:
        """Return the ridge in the units of the problem."""
        return alpha * 2.0 ** (2 * self.exponent - self.log2_unit_of_objective)

    def scaled_offset_alpha(self, offset_alpha: float, constant: float) -> float:
        """Return the ridge of offsets divided by `constant`, in the units of the problem."""
        return offset_alpha * constant**2 * 2.0 ** (4 * self.exponent - self.log2_unit_of_objective)

    def scaled_rule(self, rule: PenaltyRule) -> PenaltyRule:
        """Return a rule whose numbers are in the units of X in those of the problem."""
        of_dual = self.log2_unit_of_penalty + (self.exponent if rule.projected else 0)
        initial, unit = rule.initial * 2.0**-self.log2_unit_of_penalty, rule.unit * 2.0**-of_dual
        return replace(rule, initial=initial, unit=unit)

    def given_offsets(self, offsets: Offsets) -> Offsets:
        """Return offsets of the problem in the units of T."""
        return _offsets_times(offsets, 2 * self.exponent)

    def scaled_start(self, start: Start) -> Start:
        """Return a start in the units of the problem."""
        W, H = (np.ldexp(factor, -self.exponent) for factor in (start.W, start.H))
        return start._replace(W=W, H=H, offsets=_offsets_times(start.offsets, -2 * self.exponent))


def scaling_for(model: Model, largest: float) -> Scaling:
    """Return the units for data whose largest magnitude is given.

    They are those of X if the data are near one, or if f or the loss has no degree.  Several
    kinds have units of their own.
    """
    degree, of_loss = model.degrees
    if degree is None or of_loss is None or largest == 0:
        return Scaling(model)
    logarithm = min(max(math.log2(largest), -400.0), 400.0)
    W_size = logarithm / (2 * degree)
    # Data near 1 are fitted as they are, and not copied.
    exponent = 0 if abs(logarithm) <= 18.0 else round(W_size)
    return Scaling(model, exponent=exponent, ones=2.0 ** (W_size - exponent))


def _offsets_times(offsets: Offsets, exponent: int) -> Offsets:
    def scale(offset: FloatArray | None) -> FloatArray | None:
        return None if offset is None else np.ldexp(offset, exponent)

    return Offsets(math.ldexp(offsets.mean, exponent), scale(offsets.rows), scale(offsets.columns))


@dataclass(frozen=True)
class Problem:
    """Everything that an iteration needs, except the start.

    Attributes
    ----------
    observations : Observations
        Data, in the units of the problem (`Scaling`), as everything here.
    model : Model
        Nonlinearities and losses.
    rule : PenaltyRule
        Rule for ρ.
    alpha, offset_alpha, epsilon : float
        Parts of the ridge of both factor steps, which is epsilon ‖other factor‖² + alpha / ρ, with
        `offset_alpha` in the place of alpha for the columns that hold offsets.
    offset_columns : OffsetColumns
        Positions of the offsets in the extended factors.
    observed_only : bool
        Whether T = WH is imposed on the observed entries alone.
    threads : int
        Largest number of threads.  Each works on a part of the rows.
    scaling : Scaling or None
        Units of the problem, and the model in the units of X; None if the two are the same.
    constraints : GivenConstraints
        Constraints on the rows of W and on the columns of H, in the units of X.
    device : Device
        Where X, T and U lie.
    """

    observations: Observations
    model: Model
    rule: PenaltyRule = BALANCED
    alpha: float = 0.0
    offset_alpha: float = 0.0
    epsilon: float = 1e-12
    offset_columns: OffsetColumns = NO_OFFSET_COLUMNS
    observed_only: bool = False
    threads: int = 1
    scaling: Scaling | None = None
    constraints: GivenConstraints = NO_CONSTRAINTS
    device: Device = HOST

    @property
    def is_constrained(self) -> bool:
        """Whether a factor has a constraint."""
        return bool(self.constraints)

    @property
    def units(self) -> Scaling:
        """Units of the problem."""
        return Scaling(self.model) if self.scaling is None else self.scaling

    @cached_property
    def reference(self) -> float:
        """Objective at which the relative error is one (`Loss.reference`).

        Sums need no temporary arrays of the size of the data.
        """
        observations, model = self.observations, self.model
        if not model.is_mixed and type(model.loss).reference is not Loss.reference:
            if model.loss.reference_is_sum:
                return float(observations.sum_of_blocks(model.loss.reference))
            return model.loss.reference(*observations.observed())
        constant, _, size = self.of_constants
        return max(constant, float(np.finfo(np.float64).eps * size))

    @cached_property
    def of_constants(self) -> tuple[float, float, float]:
        """Loss of the best constants, Σ (T - mean of T)² for the starting T, and Σ |x|.

        Several kinds have their mean of T at 0, and no need of the last sum.
        """
        observations, model = self.observations, self.model
        if model.is_mixed:
            return *constants(observations, model), 0.0
        to_T = model.pseudo_inverse
        total, of_x, of_T, size = observations.weighted_sums(lambda x: x, to_T, np.abs)
        y, mean_T = model.loss.constant(of_x / total), of_T / total
        _, loss, squares = observations.weighted_sums(
            lambda x: model.loss(x, y), lambda x: np.square(to_T(x) - mean_T)
        )
        return loss, squares, size

    @cached_property
    def penalty_scale(self) -> float:
        """The ρ at which the loss and the constraint have the same weight for such data.

        It is the loss of the constant matrix (`Loss.constant`), divided by
        Σ (T - mean of T)² / 2 for the starting T.  For ReLU + Frobenius the ratio is 1, whatever
        the scale of X.  For KL it is about 1 / (mean of X).
        """
        loss, squares, _ = self.of_constants
        ratio = loss / (0.5 * squares) if squares > 0 else 0.0
        return ratio if 0 < ratio < math.inf else 1.0

    @property
    def starting_data(self) -> tuple[Observations, Model]:
        """Observations and a model of one kind whose pseudo-inverse gives the starting T.

        For several kinds the observations have the starting T already, which depends on columns.
        """
        observations, model = self.observations, self.model
        if not model.is_mixed:
            return observations, model
        T = pseudo_inverses(observations, model)
        return observations.with_stored(T), make_model("identity", "frobenius")

    @cached_property
    def norm_of_initial_T(self) -> float:
        """Norm of the starting T, with weights whose mean is 1; 1 if it is zero."""
        observations, model = self.starting_data
        to_T = model.pseudo_inverse
        total, squares = observations.weighted_sums(lambda x: np.square(to_T(x)))
        return math.sqrt(squares * (observations.n_observed / total)) or 1.0

    @cached_property
    def entries(self) -> StoredEntries:
        """The stored entries, as passes over them take them."""
        return StoredEntries(self.observations, self.model, self.device)

    @property
    def has_tiles(self) -> bool:
        """Whether zeros of sparse data need not be stored: there is one kind, without limits."""
        data = self.observations
        return data.absent_are_zeros and data.limits is None and not self.model.is_mixed

    @cached_property
    def tiles(self) -> Tiles:
        """Tiles of sparse data."""
        assert isinstance(self.observations, SparseObservations)
        return Tiles(self.observations, self.device)

    @cached_property
    def empty(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of the rows and of the columns without an observed entry."""
        return self.observations.empty_rows_and_columns()

    @property
    def sparse(self) -> bool:
        """Whether only the observed entries are stored."""
        return self.observations.pattern is not None

    def sweep(self, rank: int, state: Any = None) -> Sweep:
        """Return the sweep for a rank, with T and U at their start, or as an earlier one had them.

        `state` is what `Sweep.state` of that one was.
        """
        return sweep_of(self.observations, self, rank, state)

    def envelope(self) -> MoreauEnvelope | SparseEnvelope:
        """Return the function L, without multipliers of zeros that are not stored."""
        if self.has_tiles:
            return SparseEnvelope(self.tiles, self.model, self.threads)
        return MoreauEnvelope(self.entries, self.threads)

    @cached_property
    def mean_of_T(self) -> float:
        """Weighted mean of the starting T."""
        observations, model = self.starting_data
        total, size = observations.weighted_sums(model.pseudo_inverse)
        return float(size / total)

    @cached_property
    def offsets(self) -> Offsets:
        """Offsets of a start: the mean, and shrunken deviations of rows and columns from it."""
        columns, offsets = self.offset_columns, Offsets(self.offset_columns.mean, None, None)
        if not (columns.before or columns.after):
            return offsets
        ridge, (observations, model) = self.offset_alpha / columns.constant**2, self.starting_data
        zeros = ridge / self.penalty_scale if ridge else 0.0
        for name, axis, is_there in (("rows", 1, columns.before), ("columns", 0, columns.after)):
            if is_there:
                sums = observations.centred_sums(model.pseudo_inverse, offsets, axis)
                means = sums / np.maximum(observations.counts(axis) + zeros, 1)
                offsets = offsets._replace(**{name: means})
        return offsets

    def penalty_rule(self, rho: Any, initial: float | None) -> PenaltyRule:
        """Return the rule for an argument `rho`; both are in the units of X."""
        rule, observations = as_penalty_rule(rho), self.observations
        if initial is not None:
            rule = replace(rule, initial=float(initial))
        rule = self.units.scaled_rule(rule)
        if rho != "auto":
            return rule
        if self.units.model.degrees == (1, 2):  # ρ is the same for multiples of X
            if initial is not None or observations.weights is None:
                return rule
            weight = observations.weighted_sums()[0] / observations.n_observed  # the unit of ρ
            return replace(rule, initial=rule.initial * weight, unit=rule.unit * weight)
        automatic = automatic_rule(self.model, self.penalty_scale)
        return automatic if initial is None else replace(automatic, initial=rule.initial)

    def rms_error(self, relative_error: float) -> float:
        """Return a relative error as a root mean square, in units of X; NaN if it is none."""
        observations = self.observations
        if not self.model.squares or observations.limits is not None:
            return math.nan
        (total,) = observations.weighted_sums()
        return relative_error * math.ldexp(
            math.sqrt(2 * self.reference / total), self.units.log2_unit_of_x
        )

    def with_model(self, model: Model) -> Problem:
        """Return the problem with another model in the units of X, such as a learned one.

        The reference of the relative error and the natural penalty stay what they are.
        """
        scaling = replace(self.units, model=model)
        return self.with_cached_statistics().changed(model=scaling.scaled_model(), scaling=scaling)

    def with_cached_statistics(self) -> Problem:
        """Compute the statistics of X now, so that changed copies share them."""
        for name in ("reference", "penalty_scale", "norm_of_initial_T", "empty"):
            getattr(self, name)
        return self

    def changed(self, **changes: Any) -> Problem:
        """Return a problem for the same data that has what has been asked of them already."""
        result = copy.copy(self)
        known = vars(result)
        known.update(changes)
        for name in ("offsets", "entries") if "model" in changes else ("offsets",):
            known.pop(name, None)
        return result

    def of(self, state: Any) -> Problem:
        """Return the problem with the model of a state, if it has learned one."""
        return self if state.model in (None, self.units.model) else self.with_model(state.model)

    def constrained_columns(
        self, rank: int
    ) -> tuple[ConstrainedColumns | None, ConstrainedColumns | None]:
        """Return the constraints with the positions of their columns among the solved ones."""
        before, units = self.offset_columns.before, self.units
        constraints = self.constraints.scaled(units.exponent, units.log2_unit_of_objective)
        both = zip(constraints, (slice(before, before + rank), slice(0, rank)), strict=True)
        in_W, in_H = (None if c is None else ConstrainedColumns(c, at) for c, at in both)
        return in_W, in_H

    def projected(self, start: Start) -> tuple[FloatArray, FloatArray]:
        """Return the extended factors of a start, the nearest ones that are allowed.

        Those of rows and columns without an observed entry are the nearest to 0.
        """
        solved_W, solved_H = self.offset_columns.solved(start.W.shape[1])
        empty_rows, empty_columns = self.empty
        W_constraint, H_constraint = self.constrained_columns(start.W.shape[1])
        for each, rows in ((W_constraint, start.W), (H_constraint, start.H.T)):
            if each is not None:
                each.constraint.check(np.asarray(rows, dtype=np.float64))
        W, H = self.extend(start)
        self.observations.allow(W, solved_W, W_constraint, empty_rows)
        H[solved_H, empty_columns] = 0
        if H_constraint is not None:
            H[solved_H] = H_constraint.project(H[solved_H].T).T
        return W, H

    def alphas(self, rank: int) -> tuple[FloatArray, FloatArray]:
        """Return the ridge in the objective of each column of W and row of H that is solved for."""
        before, after = self.offset_columns.before, self.offset_columns.after
        extra = self.constraints.ridges
        in_W, in_H = (self.alpha + self.units.scaled_alpha(ridge) for ridge in extra)
        W_alphas = [self.offset_alpha] * before + [in_W] * rank
        H_alphas = [in_H] * rank + [self.offset_alpha] * after
        return np.array(W_alphas), np.array(H_alphas)

    def ridges(self, rank: int) -> tuple[Ridge, Ridge]:
        """Return the ridges of the steps of W and of H."""
        in_W, in_H = self.alphas(rank)
        return Ridge(self.epsilon, in_W), Ridge(self.epsilon, in_H)

    def extended(self, state: Any) -> tuple[FloatArray, FloatArray]:
        """Return the extended factors of a state that is in the units of X."""
        start = Start(state.W, state.H, from_factors=True, offsets=state.offsets)
        return self.extend(self.units.scaled_start(start))

    def extend(self, start: Start) -> tuple[FloatArray, FloatArray]:
        """Return the extended factors of a start."""
        pieces, H_aug = self.offset_columns.extend(start.W, start.H, start.offsets)
        return self.observations.stacked(pieces, H_aug.dtype), H_aug

    def solved(self, W_aug: FloatArray) -> tuple[slice, slice]:
        """Return the columns of W_aug and the rows of H_aug that are solved for."""
        return self.offset_columns.solved(W_aug.shape[1] - self.offset_columns.width)


@singledispatch
def sweep_of(observations: Observations, problem: Problem, rank: int, state: Any = None) -> Sweep:
    """Return the sweep of a problem over its observations; see `Problem.sweep`."""
    model, device, entries = problem.model, problem.device, problem.entries
    state = starting_entries(observations, model, device) if state is None else state.on(device)
    solved, constrained = problem.offset_columns.solved(rank), problem.constrained_columns(rank)
    others = problem.threads, *constrained, problem.rule.projected
    arguments = (entries, state, *problem.ridges(rank), *solved, *others)
    if problem.observed_only:
        return ObservedSweep(*arguments)
    return EverywhereSweep(*arguments, problem.empty[1])


def constants(observations: Observations, model: Model) -> tuple[float, float]:
    """Return the objective at WH = 0, the best constants, and the weighted norm of T, squared."""
    rows, columns, x = observations.entries()
    _, weights = observations.observed()
    x = x.astype(np.float64)
    losses = model.losses(x, np.zeros_like(x), rows, columns)
    squares = np.square(model.pseudo_inverse(x, rows, columns))
    return float(np.sum(weights * losses)), float(np.sum(weights * squares))
