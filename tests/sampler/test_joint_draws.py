"""Sweeps leave the joint distribution of parameters and tables of all kinds as it is.

`joint_draws` describes the test.  Ranks of some numbers among all their values are compared
before and after the sweeps.  A test fails if one of its p-values is below 1e-4 over their number,
which a right sampler does for one seed in ten thousand.
"""

import math

import numpy as np
import pytest
from joint_draws import Case, ImaginedLevels, Table, draw_parameters, p_values, run

from nmd_lab.sampler import problem
from nmd_lab.sampler.chain import draw_noise

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
    "order in single precision": Case(
        ("number",) * 4, rows=12, rank=2, weighted=True, in_order=True, dtype="float32"
    ),
    "array": Case(("number",) * 4, is_array=True, holes=0),
    "array in single precision": Case(("number",) * 4, is_array=True, holes=0, dtype="float32"),
    "array with holes": Case(("number",) * 4, is_array=True, rank=2, dtype="float32"),
    "Laplace": Case(("laplace",) * 4, is_array=True, weighted=True),
    "ReLU": Case(("relu",) * 4, is_array=True, noise="before", holes=0),
    "ReLU after": Case(("rough relu",) * 4, is_array=True, noise="after"),
    "Poisson": Case(("count",) * 4, is_array=True),
    "modulus": Case(("modulus",) * 4, is_array=True, noise="after"),
    "square": Case(("square",) * 4, is_array=True, noise="after"),
}
FAST = ["every kind", "counts", "few holes", "order, weights", "season", "array", "square"]


@pytest.fixture(autouse=True)
def proper_prior_of_cut_points(monkeypatch):
    monkeypatch.setattr(problem, "Levels", ImaginedLevels)


def assert_unchanged(case, begins, sweeps):
    found = p_values(run(case, begins, sweeps))
    least = min(found, key=found.__getitem__)
    assert found[least] * len(found) > 1e-4, f"{least}: {found[least]}"


@pytest.mark.parametrize("name", FAST)
def test_sweeps_leave_the_joint_distribution(name):
    assert_unchanged(CASES[name], 60, 8)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.exhaustive
def test_many_sweeps_leave_the_joint_distribution(name):
    assert_unchanged(CASES[name], 300, 20)


def test_the_likelihood_of_noise_after_f_is_that_of_both_noises():
    table, rng = Table.of(CASES["square"]), np.random.default_rng(0)
    state, misfit, loss = draw_parameters(table, rng), 31.0, 7.0  # the loss has the half in it
    draw_noise(table.problem, state, np.array([misfit]), np.array([loss]), rng)
    count, rho, beta = table.problem.storage.n_entries, state.rho[0], state.beta[0]
    expected = count / 2 * math.log(rho * beta) - rho * misfit / 2 - beta * loss
    assert state.log_likelihood == pytest.approx(expected)
