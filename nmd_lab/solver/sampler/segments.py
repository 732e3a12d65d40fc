"""A choice between segments of the line, each by its mass, in one pass and without storage.

A segment is an interval with a normal density on it, known up to a common factor.  Its *energy* is
the negative logarithm of the density at its highest point in the interval.  Neighbours share that
point or the limit between them.  Energies are therefore compared without loss of digits, even where
they are very large.
"""

from __future__ import annotations

import math

from nmd_lab._runtime.compiler import compile_scalar

from .streams import uniform
from .truncated_normal import draw_between, mass_between

NOTHING = (0.0, 0.0, 0.0, 0.0, math.inf, 0.0)
"""Choice before the first segment: mean, standard deviation, limits, lowest energy, total mass."""

NEGLIGIBLE = 100.0  # a segment with an energy higher by this has a share below 1e-40


def _add_weight(lowest, total, energy, mass, stream):  # type: ignore[no-untyped-def]
    if energy < lowest:
        total = total * math.exp(energy - lowest) if total > 0.0 else 0.0
        lowest, weight = energy, mass
    else:
        weight = mass * math.exp(lowest - energy) if energy < math.inf else 0.0
    total += weight
    return lowest, total, weight > 0.0 and uniform(stream) * total <= weight


add_weight = compile_scalar(_add_weight)
"""``add_weight(lowest, total, energy, mass, stream)``: the next two sums, and whether to choose it.

After the last candidate, the one that was chosen last has been chosen with probability
mass exp(-energy), divided by the sum of these over all candidates.
"""


def _add_segment(choice, mean, sd, low, high, energy, stream):  # type: ignore[no-untyped-def]
    lowest, total = choice[4], choice[5]
    if not low < high or energy > lowest + NEGLIGIBLE:
        return choice
    mass = sd * mass_between((low - mean) / sd, (high - mean) / sd, (high - low) / sd)
    lowest, total, chosen = add_weight(lowest, total, energy, mass, stream)
    if chosen:
        return mean, sd, low, high, lowest, total
    return choice[0], choice[1], choice[2], choice[3], lowest, total


add_segment = compile_scalar(_add_segment)
"""``add_segment(choice, mean, sd, low, high, energy, stream)``: the choice after a segment."""


def _draw_chosen(choice, stream):  # type: ignore[no-untyped-def]
    return draw_between(choice[0], choice[1], choice[2], choice[3], stream)


draw_chosen = compile_scalar(_draw_chosen)
"""``draw_chosen(choice, stream)``: a draw from the segment that was chosen."""
