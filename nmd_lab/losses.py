"""All losses d(x, f(WH)), their base class, and the check of one of your own."""

from .model.checks import check_loss as check_loss
from .model.loss import NoiseModel as NoiseModel
from .model.losses import KL as KL
from .model.losses import L1 as L1
from .model.losses import Frobenius as Frobenius
from .model.losses import Huber as Huber
from .model.losses import Logistic as Logistic
from .model.losses import Loss as Loss
from .model.losses import Quantile as Quantile
from .model.ordinal import Ordinal as Ordinal
from .model.positive import ItakuraSaito as ItakuraSaito
from .model.positive import NegativeBinomial as NegativeBinomial
from .model.positive import SquaredLog as SquaredLog

__all__ = sorted(name for name in globals() if not name.startswith("_"))
