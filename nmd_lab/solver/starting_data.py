"""The starting T as data, for what begins from it: offsets and factors."""

from __future__ import annotations

from nmd_lab.data.base import Observations
from nmd_lab.model.model import Model, make_model

from .problem import Problem
from .split_variable import preimages


def starting_data(problem: Problem) -> tuple[Observations, Model]:
    """Return observations and a model of one kind whose pseudo-inverse gives the starting T.

    For several kinds the observations have the starting T already, since it depends on the columns.
    """
    observations, model = problem.observations, problem.pair
    if model.single is not None:
        return observations, model
    T = preimages(observations, model)
    return observations.with_stored(T), make_model("identity", "frobenius")
