"""All losses d(x, f(WH)), their base class, and the check of one of your own."""

from .model.checks import check_loss
from .model.loss import NoiseModel
from .model.losses import KL, L1, Frobenius, Huber, Logistic, Loss, Quantile
from .model.ordinal import Ordinal
from .model.positive import ItakuraSaito, NegativeBinomial, SquaredLog

__all__ = [
    "KL",
    "L1",
    "Frobenius",
    "Huber",
    "ItakuraSaito",
    "Logistic",
    "Loss",
    "NegativeBinomial",
    "NoiseModel",
    "Ordinal",
    "Quantile",
    "SquaredLog",
    "check_loss",
]
