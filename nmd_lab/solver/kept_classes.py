"""The classes of the objects that a checkpoint of a fit may hold."""

from __future__ import annotations

from collections.abc import Iterable

from nmd_lab._stop_reason import StopReason
from nmd_lab.checkpoint.encoding import Classes, Made
from nmd_lab.model.base import ModelPart
from nmd_lab.model.limits import with_limit_model
from nmd_lab.model.losses import LOSSES, Loss
from nmd_lab.model.mixed import AnyPair, MixedPair, Part
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES, Nonlinearity
from nmd_lab.model.offsets import Offsets
from nmd_lab.model.proximal import LimitModel, Pair, make_pair

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
    *(ADMM, PenaltyRule, PenaltyControl, LimitModel, MixedPair, Part),
)


FACTOR_CONSTRAINTS = (NonNegative, Simplex, Orthonormal, SparseFactor)


def kept_classes(
    pair: AnyPair, others: Iterable[type] = (), made: dict[type, Made] | None = None
) -> Classes:
    """Return the classes for a fit with a pair, whose own classes are among them."""
    further = made or {}
    parts = (pair,) if isinstance(pair, Pair) else tuple(part.pair for part in pair.parts)
    own = {type(each) for part in parts for each in (part.nonlinearity, part.loss)}
    models = {*LOSSES.values(), *NONLINEARITY_CLASSES.values(), *own}
    made = further | {cls: Made(_settings, cls) for cls in models}
    made |= {cls: Made(_parameters, cls) for cls in FACTOR_CONSTRAINTS}
    made[Pair] = Made(lambda p: (p.nonlinearity, p.loss, p.limits), _pair)
    made[StopReason] = Made(lambda reason: (reason.code, str(reason)), StopReason)
    return Classes((*PLAIN, *others), made)


def _settings(part: ModelPart) -> tuple[object, ...]:
    return part.settings


def _parameters(constraint: FactorConstraint) -> tuple[float, ...]:
    return constraint.parameters


def _pair(nonlinearity: Nonlinearity, loss: Loss, limits: LimitModel) -> AnyPair:
    return with_limit_model(make_pair(nonlinearity, loss), limits)
