"""The compiled functions of one entry: its T-update, and its loss.

They add two things to the scalar map of a kind (`nmd_lab.model.proximal`).

**Limits.**  Of an entry may be known only that it is at most x, at least x, or between x and an
upper value.  The loss is then 0 where f(t) satisfies this, and the loss to the nearest limit
elsewhere.  Let f be continuous and d smallest at y = x.  If f(v) satisfies the limit, t = v is
optimal.  Otherwise the limit that f(v) violates is active: on the way from v to any t, f(t) passes
this limit, where the loss is already smallest.  So the T-update to an entry that is equal to the
limit is optimal.  The exact map of a pair therefore serves its limits, too.

Where the noise is known, a loss may have another form for entries with limits: minus the logarithm
of the probability of what is known (`nmd_lab.model.censored`), as a class has it always.

**Classes.**  A class with an order, such as an ordinal level, is an interval of a latent variable;
its limits are ends of a longer interval.  A limit of one of two classes is the class itself, or
has no effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar

from .censored import FORMS, CensoredFrobenius, square_between
from .column_model import Structure
from .curve_search import ScalarMap
from .loss import Loss
from .nonlinearities import Square
from .ordinal import Ordinal
from .proximal import compile_forward, compile_t_update

EXACT, AT_MOST, AT_LEAST, BETWEEN = range(4)
"""What is known of an entry: its value x, an upper limit x, a lower limit x, or both limits."""


@cache
def compile_entry(structure: Structure, limited: bool) -> tuple[ScalarMap, ScalarMap]:
    """Return the compiled T-update and loss of one entry, with the floors on f(a).

    Without `limited` the compiler leaves out what is for entries with limits.
    """
    update, forward = compile_t_update(structure), compile_forward(structure)
    value, ends = compile_scalar(structure.loss.value), _compile_ends(structure)
    is_class, form = has_classes(structure.loss), FORMS.get(structure.loss)
    if issubclass(structure.loss, Ordinal):
        form = CensoredFrobenius
    has_form, update_form, value_form = form is not None, update, value
    if form is not None:
        update_form = compile_form(structure._replace(loss=form))
        value_form = compile_scalar(form.value)

    def solve(v, x, rho, limit, upper, model):  # type: ignore[no-untyped-def]
        pieces, pf, pd, _, (smallest, sd) = model
        if limited and limit != EXACT:
            low, high = ends(x, limit, upper, smallest, pd)
            if is_class and low == -math.inf and high == math.inf:
                return v + 0.0 * x
            sd = 1.0 if is_class else sd
            if has_form and sd > 0.0 and low < high:
                return update_form(v, x, rho, pieces, pf, (low, high, sd)) + 0.0 * x
            if not is_class:
                y = forward(v, pieces, pf)
                if low <= y <= high:
                    return v + 0.0 * x
                x = high + 0.0 * x if y > high else low + 0.0 * x
        return update(v, x, rho, pieces, pf, pd)

    def loss(x, a, limit, upper, model):  # type: ignore[no-untyped-def]
        pieces, pf, pd, floors, (smallest, sd) = model
        y = max(forward(a, pieces, pf), floors[0] + floors[1] * abs(x))
        if limited and limit != EXACT:
            low, high = ends(x, limit, upper, smallest, pd)
            if is_class and low == -math.inf and high == math.inf:
                return 0.0
            sd = 1.0 if is_class else sd
            if has_form and sd > 0.0 and low < high:
                return value_form(x, y, (low, high, sd))
            if not is_class:
                if low <= y <= high:
                    return 0.0
                end = high if y > high else low
                return value(end, y, pd) - value(end, end, pd)
        return value(x, y, pd)

    return compile_scalar(solve), compile_scalar(loss)


def has_classes(loss: type[Loss]) -> bool:
    """Return whether x is a class with an order, an interval of a latent variable."""
    return loss.latent_ends is not Loss.latent_ends


def _compile_ends(structure: Structure) -> ScalarMap:
    """Return the function that gives the interval of an entry, or of its latent variable."""
    lowest, highest = map(float, structure.loss.domain)

    def of_number(x, limit, upper, smallest, pd):  # type: ignore[no-untyped-def]
        low = max(lowest, min(smallest, x)) if limit == AT_MOST else 1.0 * x
        high = highest if limit == AT_LEAST else (1.0 * upper if limit == BETWEEN else 1.0 * x)
        return low, high

    latent_ends = compile_scalar(structure.loss.latent_ends)

    def of_class(x, limit, upper, smallest, pd):  # type: ignore[no-untyped-def]
        low, high = latent_ends(1.0 * x, pd)
        if limit == BETWEEN:
            high = latent_ends(1.0 * upper, pd)[1]
        return -math.inf if limit == AT_MOST else low, math.inf if limit == AT_LEAST else high

    return compile_scalar(of_class if has_classes(structure.loss) else of_number)


def compile_form(form: Structure) -> ScalarMap:
    """Return the T-update of an entry with limits, ``(v, x, rho, pieces, pf, ends) -> t``."""
    if form.nonlinearity is not Square:
        return compile_t_update(form)

    def of_square(v, x, rho, pieces, pf, ends):  # type: ignore[no-untyped-def]
        return math.copysign(square_between(abs(v), rho, ends[0], ends[1], ends[2]), v)

    return compile_scalar(of_square)


class EntryMaps(NamedTuple):
    """The compiled loops of a kind over flat arrays of entries of float64.

    Attributes
    ----------
    solve : function
        T-update: it takes (v, x, rho, limits, uppers, numbers of the kind, out).
    losses : function
        Loss of f(a): it takes (x, a, limits, uppers, numbers of the kind, out).
    """

    solve: Callable[..., None]
    losses: Callable[..., None]


@cache
def entry_maps(structure: Structure, limited: bool) -> EntryMaps:
    """Return the loops of a kind without its units, for entries with limits or without (None)."""
    solve_entry, loss = compile_entry(structure, limited)
    name = f"{structure.name}{'_limits' if limited else ''}"

    def solve(v, x, rho, limits, uppers, model, out):  # type: ignore[no-untyped-def]
        for i in range(v.size):
            limit = 0 if limits is None else limits[i]
            upper = x[i] if uppers is None else uppers[i]
            out[i] = solve_entry(v[i], x[i], rho[i], limit, upper, model)

    def losses(x, a, limits, uppers, model, out):  # type: ignore[no-untyped-def]
        for i in range(x.size):
            limit = 0 if limits is None else limits[i]
            upper = x[i] if uppers is None else uppers[i]
            out[i] = loss(x[i], a[i], limit, upper, model)

    kernels = (solve, f"solve_{name}"), (losses, f"losses_{name}")
    return EntryMaps(*(compile_kernel(*each, cached=structure.is_ours) for each in kernels))
