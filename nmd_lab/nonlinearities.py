"""All nonlinearities f of X ≈ f(WH), their base classes, and the check of one of your own."""

from .model.checks import check_nonlinearity as check_nonlinearity
from .model.monotone import Monotone as Monotone
from .model.nonlinearities import Identity as Identity
from .model.nonlinearities import MinMax as MinMax
from .model.nonlinearities import Modulus as Modulus
from .model.nonlinearities import Nonlinearity as Nonlinearity
from .model.nonlinearities import Piece as Piece
from .model.nonlinearities import ReLU as ReLU
from .model.nonlinearities import Square as Square
from .model.nonlinearities import Wrap as Wrap
from .model.nonlinearity import AbsoluteOffset as AbsoluteOffset
from .model.nonlinearity import LeakyReLU as LeakyReLU
from .model.nonlinearity import PiecewiseLinear as PiecewiseLinear
from .model.nonlinearity import SoftThreshold as SoftThreshold
from .model.smooth import Exp as Exp
from .model.smooth import Power as Power
from .model.smooth import Sigmoid as Sigmoid
from .model.smooth import Smooth as Smooth
from .model.smooth import Softplus as Softplus
from .model.smooth import Tanh as Tanh

__all__ = sorted(name for name in globals() if not name.startswith("_"))
