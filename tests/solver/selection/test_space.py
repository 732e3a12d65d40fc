"""The search space: which ranks and ridges may be taken, and the steps between them."""

from __future__ import annotations

import math

import pytest

import nmd_lab as nmd
from nmd_lab.solver.selection.space import RANKS, Space


def space(**given):
    models = [nmd.ReLU()], [nmd.L1()]
    return Space(*models, largest_rank=50, **given)


def test_without_candidates_any_ridge_and_the_usual_ranks():
    free = space()
    assert free.ranks == tuple(rank for rank in RANKS if rank <= 50)
    assert (free.rank_near(8), free.rank_near(80)) == (8, 50)
    assert free.allows(rank=7)
    assert free.allows(alpha=0.0)
    assert free.alpha_near(0.3) == 0.3
    assert free.stepped("alpha", 0.3, 10) == pytest.approx(3)


def test_given_ranks():
    given = space(rank_candidates=(3, 9, 12))
    assert given.ranks == (3, 9, 12)
    assert [given.rank_near(rank) for rank in (2, 8, 9, 100)] == [3, 3, 9, 12]
    assert [given.allows(rank=rank) for rank in (3, 4)] == [True, False]


def test_given_ridges():
    given = space(alpha_candidates=(0.0, 0.1, 10.0))
    assert [given.alpha_near(alpha) for alpha in (0.9, 1.1, 1e-9, 0.0)] == [0.1, 10.0, 0.1, 0.0]
    assert given.stepped("alpha", 0.1, 1.01) == 10.0
    assert given.stepped("alpha", 0.1, 0.99) == 0.0
    assert given.stepped("alpha", 10.0, 2.0) is None
    assert given.stepped("alpha", 0.0, 0.5) is None
    assert given.stepped("offset_alpha", 0.1, 2.0) == pytest.approx(0.2)
    assert given.allows(alpha=0.0)
    assert not given.allows(alpha=1.0)


def test_given_ridges_are_of_the_model_itself():
    assert space().first_model != space(alpha_candidates=(0.1, 1.0)).first_model
    assert space(alpha_candidates=(0.1, 1.0)).first_model == (nmd.ReLU(), nmd.L1())
    assert math.isfinite(space(alpha_candidates=(0.0, 1.0)).alpha_near(1e-320))
