"""The loss of censored entries as a parameter of a pair."""

from __future__ import annotations

from .entry import FORMS
from .mixed import AnyPair
from .proximal import LimitModel, Pair


def has_noise(pair: AnyPair) -> bool:
    """Return whether the loss of entries with limits depends on the size of the noise."""
    return isinstance(pair, Pair) and type(pair.loss) in FORMS


def with_limit_model(pair: AnyPair, limits: LimitModel) -> AnyPair:
    """Return a pair with what is known of entries with limits; a mixed pair has its own.

    A standard deviation of NaN, one that is to be estimated, counts as 0.
    """
    if not isinstance(pair, Pair):
        return pair
    sd = limits.sd if has_noise(pair) and limits.sd > 0 else 0.0
    return pair._replace(limits=limits._replace(sd=sd))
