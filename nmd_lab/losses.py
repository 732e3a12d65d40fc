"""All losses d(x, f(WH)), their base class, and the check of one of your own."""

from .model.checks import check_loss
from .model.likelihoods.binary import Logistic
from .model.likelihoods.counts import NegativeBinomial
from .model.likelihoods.positive import ItakuraSaito, SquaredLog
from .model.likelihoods.robust import Huber, Quantile
from .model.losses import KL, L1, Frobenius, Loss
from .model.ordinal import Ordinal

__all__ = [
    "KL",
    "L1",
    "Frobenius",
    "Huber",
    "ItakuraSaito",
    "Logistic",
    "Loss",
    "NegativeBinomial",
    "Ordinal",
    "Quantile",
    "SquaredLog",
    "check_loss",
]
