"""The draw of T at every stored entry, given WH and the noise levels."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from nmd_lab._runtime.compiler import compile_kernel, compile_scalar
from nmd_lab.model.kind import Kind, Structure

from .noise import NoiseKind
from .streams import new_stream, start_stream
from .t_draw import compile_latent_draw, compile_t_draw
from .truncated_normal import draw_between


def latent_kernel(noise: NoiseKind, kind: Kind, types: str) -> Any:
    """Return the compiled loop that draws T."""
    name = f"draw_T_{noise}_{kind.name}_{types}"
    return _kernel(noise, kind.structure, name, kind.is_ours)


@cache
def _kernel(kind: NoiseKind, structure: Structure, name: str, cached: bool) -> Any:
    draw = _entry_draw(kind, structure)
    value, forward = compile_scalar(structure[1].value), compile_scalar(structure[0].forward)
    after = kind == "after"

    def draw_T(  # type: ignore[no-untyped-def]
        starts,
        first,
        last,
        x,
        weights,
        V,
        rho,
        beta,
        pieces,
        pf,
        pd,
        cuts,
        seed,
        sweep,
        kind,
        shift,
        T,
        misfit,
    ):
        stream = new_stream()
        base = starts[first]
        for i in range(first, last):
            start_stream(stream, seed, sweep, kind, i + shift)
            at = i if rho.size > 1 else 0
            ends, total = cuts[at], 0.0
            for k in range(starts[i], starts[i + 1]):
                weight = weights[k] if weights.size else 1.0
                inner = rho[at] if after else rho[at] * weight
                outer = beta[at] * weight
                t = draw(T[k], V[k - base], x[k], inner, outer, pieces, pf, pd, ends, stream)
                T[k] = t
                if after:
                    total += weight * value(x[k], forward(t, pf), pd)
            misfit[i] = total

    return compile_kernel(draw_T, name, cached=cached)


def _entry_draw(kind: NoiseKind, structure: Structure) -> Any:
    """Return the compiled draw of one entry, with the same arguments for every kind."""
    if kind == "after":
        after = compile_t_draw(structure)

        def draw_after(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
            return after(t, v, x, rho, beta, pieces, pf, pd, stream)

        return compile_scalar(draw_after)
    if kind == "before":
        before = compile_latent_draw(structure)

        def draw_before(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
            return before(v, x, rho, pieces, stream)

        return compile_scalar(draw_before)

    def draw_level(t, v, x, rho, beta, pieces, pf, pd, cuts, stream):  # type: ignore[no-untyped-def]
        level = int(x)  # cuts begins with minus infinity and ends with infinity
        return draw_between(v, 1.0 / math.sqrt(rho), cuts[level], cuts[level + 1], stream)

    return compile_scalar(draw_level)
