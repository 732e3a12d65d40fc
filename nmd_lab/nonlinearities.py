"""All nonlinearities f of X ≈ f(WH), their base classes, and the check of one of your own."""

from .model.checks import check_nonlinearity
from .model.monotone import Monotone
from .model.nonlinearities import Identity, MinMax, Modulus, Nonlinearity, Piece, ReLU, Square, Wrap
from .model.piecewise import AbsoluteOffset, LeakyReLU, PiecewiseLinear, SoftThreshold
from .model.smooth import Smooth
from .model.smooth_functions import Exp, Power, Sigmoid, Softplus, Tanh

__all__ = [
    "AbsoluteOffset",
    "Exp",
    "Identity",
    "LeakyReLU",
    "MinMax",
    "Modulus",
    "Monotone",
    "Nonlinearity",
    "Piece",
    "PiecewiseLinear",
    "Power",
    "ReLU",
    "Sigmoid",
    "Smooth",
    "SoftThreshold",
    "Softplus",
    "Square",
    "Tanh",
    "Wrap",
    "check_nonlinearity",
]
