"""The noise that a loss stands for: x around y = f(T), with a density in exp(-β d(x, y))."""

from __future__ import annotations

from typing import NamedTuple


class NoiseModel(NamedTuple):
    """A distribution of x, by its name, and how a posterior draws its precision β.

    Attributes
    ----------
    name : str
        Name; "" for an unknown distribution.
    shape : float
        Shape that an entry adds to the Gamma distribution of β; 0 if β stays 1.
    power : int
        Power of the unit of X that the rate of the prior of β has.
    """

    name: str = ""
    shape: float = 0.0
    power: int = 0


UNKNOWN, POISSON = NoiseModel(), NoiseModel("Poisson")
NORMAL, LAPLACE = NoiseModel("normal", 0.5, 2), NoiseModel("Laplace", 1.0, 1)
