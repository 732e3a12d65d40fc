"""The classes of the objects that a checkpoint of a fit may hold."""

from __future__ import annotations

from collections.abc import Iterable

from nmd_lab._stop_reason import StopReason
from nmd_lab.checkpoint.encoding import Classes, Made
from nmd_lab.model.base import ModelPart
from nmd_lab.model.kind import Kind, LimitModel, make_kind
from nmd_lab.model.losses import LOSSES, Loss
from nmd_lab.model.mixed import Mixed
from nmd_lab.model.model import Model
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES, Nonlinearity
from nmd_lab.model.offsets import Offsets

from .admm import State
from .constraints.base import (
    FactorConstraint,
    NonNegative,
    Orthonormal,
    Simplex,
    SparseFactor,
)
from .constraints.descent import Descended
from .initialization import Start
from .penalty import PenaltyControl, PenaltyRule
from .refinement.lagrangian import Candidate
from .run import Outcome
from .settings import ADMM
from .starts import NamedStart
from .sweep import SweepResult

PLAIN = (
    *(State, Offsets, Start, NamedStart, Outcome, SweepResult, Candidate, Descended),
    *(ADMM, PenaltyRule, PenaltyControl, LimitModel, Model),
)


FACTOR_CONSTRAINTS = (NonNegative, Simplex, Orthonormal, SparseFactor)


def kept_classes(
    pair: Model, others: Iterable[type] = (), made: dict[type, Made] | None = None
) -> Classes:
    """Return the classes for a fit with a pair, whose own classes are among them."""
    further = made or {}
    own = {type(each) for kind in pair.kinds for each in (kind.nonlinearity, kind.loss)}
    models = {*LOSSES.values(), *NONLINEARITY_CLASSES.values(), *own}
    made = further | {cls: Made(_settings, cls) for cls in models}
    made |= {cls: Made(_parameters, cls) for cls in FACTOR_CONSTRAINTS}
    made[Kind] = Made(_arguments, _kind)
    made[Mixed] = Made(lambda mixed: (tuple(mixed), mixed.which), Mixed)
    made[StopReason] = Made(lambda reason: (reason.code, str(reason)), StopReason)
    return Classes((*PLAIN, *others), made)


def _settings(part: ModelPart) -> tuple[object, ...]:
    return part.settings


def _parameters(constraint: FactorConstraint) -> tuple[float, ...]:
    return constraint.parameters


def _arguments(kind: Kind) -> tuple[object, ...]:
    return kind.nonlinearity, kind.loss, kind.limits, kind.centre, kind.size, kind.weight


def _kind(f: Nonlinearity, loss: Loss, limits: LimitModel, *units: float) -> Kind:
    centre, size, weight = units
    return make_kind(f, loss)._replace(limits=limits, centre=centre, size=size, weight=weight)
