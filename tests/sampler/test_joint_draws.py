"""Sweeps leave the joint distribution of parameters and tables of all kinds as it is.

`joint_draws` describes the test.  Ranks of some numbers among all their values are compared
before and after the sweeps.  A test fails if one of its p-values is below 1e-4 over their number,
which a right sampler does for one seed in ten thousand.
"""

import pytest
from joint_draws import p_values, run
from prior_tables import Case, ImaginedLevels

from nmd_lab.sampler import problem

SIGNIFICANT = 1e-4
CASES = {
    "every kind": Case(
        ("number", "limited", "relu", "yes/no", "levels", "count", "laplace"), groups=3
    ),
    "numbers": Case(("number", "number", "limited", "number", "number")),
    "numbers, weights": Case(
        ("number", "number", "limited", "number", "number"), rank=2, offsets="both", weighted=True
    ),
    "many holes": Case(("number", "limited", "levels", "relu", "number"), rows=14, holes=0.6),
    "zeros": Case(("number", "relu", "rough relu", "limited")),
    "levels": Case(("four levels", "limited levels", "yes/no", "number")),
    "classes": Case(("yes/no",) * 3 + ("number",), weighted=True),
    "counts": Case(("count", "limited count", "limited laplace", "limited rough relu")),
    "groups": Case(("number", "number", "yes/no", "number"), groups=3, rows=10, rank=2),
    "few holes": Case(("number", "levels", "yes/no", "relu") * 2, groups=2, rows=12, rank=3),
    "order": Case(("number", "number", "limited", "yes/no"), rows=12, rank=2, in_order=True),
    "order, weights": Case(
        ("number", "relu", "levels", "laplace", "limited"),
        rows=16,
        rank=2,
        offsets="both",
        holes=0.5,
        weighted=True,
        in_order=True,
    ),
    "season": Case(
        ("number", "four levels", "limited", "relu"),
        rows=18,
        weighted=True,
        in_order=True,
        period=3,
    ),
}


@pytest.fixture(autouse=True)
def proper_prior_of_cut_points(monkeypatch):
    monkeypatch.setattr(problem, "Levels", ImaginedLevels)


def assert_unchanged(case, begins, sweeps):
    found = p_values(run(case, begins, sweeps))
    least = min(found, key=found.__getitem__)
    assert found[least] * len(found) > SIGNIFICANT, f"{least}: {found[least]}"


@pytest.mark.parametrize("name", ["every kind", "counts", "few holes", "order", "season"])
def test_sweeps_leave_the_joint_distribution(name):
    assert_unchanged(CASES[name], 60, 8)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.exhaustive
def test_many_sweeps_leave_the_joint_distribution(name):
    assert_unchanged(CASES[name], 300, 20)
