"""The starting T as data, for what begins from it: offsets and factors."""

from __future__ import annotations

from nmd_lab.data.base import Observations
from nmd_lab.model.mixed import AnyPair
from nmd_lab.model.proximal import Pair, make_pair

from .split_variable import preimages


def starting_data(observations: Observations, pair: AnyPair) -> tuple[Observations, Pair]:
    """Return observations and a pair whose `preimage` gives the starting T.

    For a mixed pair the observations have the starting T already, since it depends on the columns.
    """
    if isinstance(pair, Pair):
        return observations, pair
    T = preimages(observations, pair)
    return observations.with_stored(T), make_pair("identity", "frobenius")
