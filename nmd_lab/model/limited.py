"""The compiled functions of an entry of which only limits are known, where these have a form.

A class with an order, such as an ordinal level, is an interval of a latent variable; its limits are
ends of a longer interval.  A limit of one of two classes is the class itself, or says nothing.
"""

from __future__ import annotations

import math

from nmd_lab._numba import compile_scalar

from ._search import ScalarMap
from .censored import CensoredFrobenius, square_between
from .kind import Structure
from .loss import Loss
from .nonlinearities import Square
from .ordinal import Ordinal
from .proximal import compile_forward, compile_t_update

EXACT, AT_MOST, AT_LEAST, BETWEEN = range(4)
"""What is known of an entry: its value x, an upper limit x, a lower limit x, or both limits."""


def compile_form(form: Structure) -> ScalarMap:
    """Return the T-update of an entry with limits, ``(v, x, rho, pieces, pf, ends) -> t``."""
    if form[0] is not Square:
        return compile_t_update(form)

    def of_square(v, x, rho, pieces, pf, ends):  # type: ignore[no-untyped-def]
        return math.copysign(square_between(abs(v), rho, ends[0], ends[1], ends[2]), v)

    return compile_scalar(of_square)


def has_classes(structure: Structure) -> bool:
    """Return whether x is a class with an order, an interval of a latent variable."""
    return structure[1].latent_ends is not Loss.latent_ends


def compile_class(structure: Structure) -> tuple[ScalarMap, ScalarMap]:
    """Return T-update and loss of a class, or of an interval of classes."""
    f, loss, flat = structure
    update, forward = compile_t_update(structure), compile_forward(structure)
    value, ends_of = compile_scalar(loss.value), compile_scalar(loss.latent_ends)
    is_level = issubclass(loss, Ordinal)
    update_between, value_between = update, value
    if is_level:
        update_between = compile_form((f, CensoredFrobenius, flat))
        value_between = compile_scalar(CensoredFrobenius.value)

    def within(x, limit, upper, pd):  # type: ignore[no-untyped-def]
        low, high = ends_of(1.0 * x, pd)
        if limit == BETWEEN:
            high = ends_of(1.0 * upper, pd)[1]
        return -math.inf if limit == AT_MOST else low, math.inf if limit == AT_LEAST else high

    ends = compile_scalar(within)

    def solve(v, x, rho, limit, upper, model):  # type: ignore[no-untyped-def]
        pieces, pf, pd, _, _ = model
        if limit != EXACT:
            low, high = ends(x, limit, upper, pd)
            if low == -math.inf and high == math.inf:
                return v + 0.0 * x
            if is_level:
                return update_between(v, x, rho, pieces, pf, (low, high, 1.0)) + 0.0 * x
        return update(v, x, rho, pieces, pf, pd)

    def loss_of(x, a, limit, upper, model):  # type: ignore[no-untyped-def]
        pieces, pf, pd, _, _ = model
        y = forward(a, pieces, pf)
        if limit != EXACT:
            low, high = ends(x, limit, upper, pd)
            if low == -math.inf and high == math.inf:
                return 0.0
            if is_level:
                return value_between(x, y, (low, high, 1.0))
        return value(x, y, pd)

    return compile_scalar(solve), compile_scalar(loss_of)
