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
from .column_model import ColumnModel, Structure
from .curve_search import ScalarMap
from .loss import Loss
from .nonlinearities import Square
from .ordinal import Ordinal
from .proximal import compile_forward, compile_t_update


@cache
def compile_entry(structure: Structure, limited: bool) -> tuple[ScalarMap, ScalarMap]:
    """Return the compiled T-update and loss of one entry."""
    return _compile_solve(structure, limited), _compile_loss(structure, limited)


def _compile_solve(structure: Structure, limited: bool) -> ScalarMap:
    """Return the T-update of an entry of one kind."""
    if limited and has_classes(structure):
        return compile_class(structure)[0]
    update, forward = compile_t_update(structure), compile_forward(structure)
    ends = _compile_ends(structure)

    def exact(v, x, rho, limit, upper, model):  # type: ignore[no-untyped-def]
        pieces, pf, pd, _, _ = model
        return update(v, x, rho, pieces, pf, pd)

    def with_limits(v, x, rho, limit, upper, model):  # type: ignore[no-untyped-def]
        pieces, pf, pd, _, limits = model
        if limit != EXACT:
            y = forward(v, pieces, pf)
            low, high = ends(x, limit, upper, limits[0])
            if low <= y <= high:
                return v + 0.0 * x
            x = high + 0.0 * x if y > high else low + 0.0 * x
        return update(v, x, rho, pieces, pf, pd)

    if not limited:
        return compile_scalar(exact)
    within = compile_scalar(with_limits)
    form = _form(structure)
    if form is None:
        return within
    update_form = compile_form(form)

    def with_form(v, x, rho, limit, upper, model):  # type: ignore[no-untyped-def]
        pieces, pf, _, _, limits = model
        if limit != EXACT and limits[1] > 0.0:
            low, high = ends(x, limit, upper, limits[0])
            if low < high:
                return update_form(v, x, rho, pieces, pf, (low, high, limits[1])) + 0.0 * x
        return within(v, x, rho, limit, upper, model)

    return compile_scalar(with_form)


def _form(structure: Structure) -> Structure | None:
    """Return the structure for entries with limits, if the loss has a form for them."""
    f, loss, flat = structure
    return (f, FORMS[loss], flat) if loss in FORMS else None


def _compile_ends(structure: Structure) -> ScalarMap:
    """Return the function that gives the interval in which the value of an entry lies."""
    lowest, highest = map(float, structure[1].domain)

    def ends(x, limit, upper, smallest):  # type: ignore[no-untyped-def]
        low = max(lowest, min(smallest, x)) if limit == AT_MOST else 1.0 * x
        high = highest if limit == AT_LEAST else (1.0 * upper if limit == BETWEEN else 1.0 * x)
        return low, high

    return compile_scalar(ends)


def _compile_loss(structure: Structure, limited: bool) -> ScalarMap:
    """Return the loss of an entry of one kind, with the floors on f(a)."""
    if limited and has_classes(structure):
        return compile_class(structure)[1]
    value, forward = compile_scalar(structure[1].value), compile_forward(structure)
    ends, form = _compile_ends(structure), _form(structure)
    value_form = value if form is None else compile_scalar(form[1].value)
    has_form = form is not None

    def exact(x, a, limit, upper, model):  # type: ignore[no-untyped-def]
        pieces, pf, pd, floors, _ = model
        return value(x, max(forward(a, pieces, pf), floors[0] + floors[1] * abs(x)), pd)

    def with_limits(x, a, limit, upper, model):  # type: ignore[no-untyped-def]
        pieces, pf, pd, floors, limits = model
        y = max(forward(a, pieces, pf), floors[0] + floors[1] * abs(x))
        if limit != EXACT:
            low, high = ends(x, limit, upper, limits[0])
            if has_form and limits[1] > 0.0 and low < high:
                return value_form(x, y, (low, high, limits[1]))
            if low <= y <= high:
                return 0.0
            end = high if y > high else low
            return value(end, y, pd) - value(end, end, pd)
        return value(x, y, pd)

    return compile_scalar(with_limits if limited else exact)


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


def entry_maps(kind: ColumnModel, limited: bool) -> EntryMaps:
    """Return the loops of a kind without its units, for entries with limits or without (None)."""
    return _entry_maps(kind.structure, kind.name, kind.is_ours, limited)


@cache
def _entry_maps(structure: Structure, name: str, cached: bool, limited: bool) -> EntryMaps:
    solve_entry, loss = compile_entry(structure, limited)
    name = f"{name}{'_limits' if limited else ''}"

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
    return EntryMaps(*(compile_kernel(*each, cached=cached) for each in kernels))


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
