"""Units in which the data of a problem have a size near one, and offsets inside f.

For a loss of degree q and an f of degree p, d(s x, f(t)) = s^q d(x, f(t / s^(1/p))).  A problem for
X is therefore the same as one for X / s, with these units:

    X, T = WH     s, s^(1/p)            objective     s^q
    W, H          s^(1/2p) each         ρ             s^q / s^(2/p)
    offsets       s^(1/p)               alpha         s^q / s^(1/p)

The solver works in them if the data are very large or very small, and `Scaling` alone converts.
Every unit is a power of two, so that nothing is rounded.

Offsets are additional columns of W and rows of H: the model X ≈ f(WH + mean + b_i + c_j) is written
as X ≈ f(W_aug H_aug) with extended factors:

    W_aug = [ b | W | 1 | 1    ]
    H_aug = [ 1 | H | c | mean ]   (row by row)

The column b of W_aug multiplies a row of ones in H_aug, and the row c of H_aug multiplies a column
of ones in W_aug.  The factor steps solve for b and c as for any component, with the same ridge.
The ones and the mean stay constant.  A problem in units of its own has another constant in their
place, and b, c and the mean are divided by it (`OffsetColumns.constant`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from nmd_lab.data.entries import CsrRows, FloatArray
from nmd_lab.data.observations import Observations
from nmd_lab.model.fitted_values import Offsets
from nmd_lab.model.model import Model
from nmd_lab.request.penalty import PenaltyRule

from .initialization import Start

Data = TypeVar("Data", Observations, CsrRows)


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
        left: list[FloatArray | float] = [W]
        n, constant, right = H.shape[1], self.constant, [H]
        if self.before:
            left.insert(0, offsets.of_rows(W.shape[0], float) / constant)
            right.insert(0, np.full((1, n), constant))
        left += [float(constant)] * (int(self.kind != "none") + self.after)
        if self.after:
            right.append(offsets.of_columns(n, float)[None, :] / constant)
        if self.kind != "none":
            right.append(np.full((1, n), self.mean / constant))
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
    columns: OffsetColumns = NO_OFFSET_COLUMNS
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
        return (
            self.model.scaled(math.ldexp(1.0, self.log2_unit_of_x)) if self.exponent else self.model
        )

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
        if not self.exponent:
            return start
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
