"""Sweeps leave the joint distribution of parameters and tables of all kinds as it is.

`joint_draws` describes the test.  Ranks of some numbers among all their values are compared
before and after the sweeps.  A test fails if one of its p-values is below 1e-4 over their number,
which a right sampler does for one seed in ten thousand.
"""

import numpy as np
import pytest
from joint_draws import p_values, run
from prior_tables import Case, ImaginedLevels

from nmd_lab.sampler import chain, priors, problem, row_updates
from nmd_lab.sampler.row_updates import OtherFactor

SIGNIFICANT = 1e-4
EVERY_KIND = Case(("number", "limited", "relu", "yes/no", "levels", "count", "laplace"), groups=3)
CASES = {
    "every kind": EVERY_KIND,
    "numbers": Case(("number", "number", "limited", "number", "number")),
    "numbers, weights": Case(
        ("number", "number", "limited", "number", "number"), rank=2, offsets="both", weighted=True
    ),
    "many holes": Case(("number", "limited", "levels", "relu", "number"), rows=14, holes=0.6),
    "zeros": Case(("number", "relu", "rough relu", "limited")),
    "levels": Case(("four levels", "limited levels", "yes/no", "number")),
    "classes": Case(("yes/no",) * 3 + ("number",), weighted=True),
    "counts": Case(("count", "limited count", "limited laplace", "laplace")),
    "groups": Case(("number", "number", "yes/no", "number"), groups=3, rows=10, rank=2),
    "few holes": Case(("number", "levels", "yes/no", "relu") * 2, groups=2, rows=12, rank=3),
}


@pytest.fixture(autouse=True)
def proper_prior_of_cut_points(monkeypatch):
    monkeypatch.setattr(problem, "Levels", ImaginedLevels)


def assert_unchanged(case, begins, sweeps):
    found = p_values(run(case, begins, sweeps))
    least = min(found, key=found.__getitem__)
    assert found[least] * len(found) > SIGNIFICANT, f"{least}: {found[least]}"


def test_sweeps_leave_the_joint_distribution():
    assert_unchanged(EVERY_KIND, 60, 8)


@pytest.mark.parametrize("most", [0, 1])
def test_sweeps_that_fill_holes_leave_the_joint_distribution(most, monkeypatch):
    monkeypatch.setattr(row_updates, "MAX_INTEGRATED", most)
    assert_unchanged(CASES["few holes"], 60, 8)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.exhaustive
def test_many_sweeps_leave_the_joint_distribution(name):
    assert_unchanged(CASES[name], 300, 20)


# Broken on purpose ------------------------------------------------------------------------------


def one_more_in_the_shape(monkeypatch):
    draw = chain.draw_precision
    monkeypatch.setattr(
        chain, "draw_precision", lambda shape, rate, rng: draw(shape + 1, rate, rng)
    )


def one_more_degree_of_freedom(monkeypatch):
    draw = priors.draw_wishart
    monkeypatch.setattr(priors, "draw_wishart", lambda scale, nu, rng: draw(scale, nu + 1, rng))


def wrong_sign_of_the_offset(monkeypatch):
    def flipped(vectors, constants, mean):
        return OtherFactor(vectors, -constants, mean)

    monkeypatch.setattr(problem, "OtherFactor", flipped)


def cut_points_of_T_too_high(monkeypatch):
    ends = chain.ends_in_rows
    monkeypatch.setattr(chain, "ends_in_rows", lambda cuts: ends(cuts) + 0.2)


def noise_of_another_line(monkeypatch):
    draw = chain.draw_noise

    def draw_noise(problem, state, *sums, rng):
        draw(problem, state, *(np.roll(each, 1) for each in sums), rng)

    monkeypatch.setattr(chain, "draw_noise", lambda *of: draw_noise(*of[:-1], rng=of[-1]))


def shares_without_counts(monkeypatch):
    draw = priors.draw_group_priors

    def without(found, number, *rest):
        prior = draw(found, number, *rest)
        return prior._replace(shares=np.full(number, 1 / number))

    monkeypatch.setattr(chain, "draw_group_priors", without)


BROKEN = [
    (one_more_in_the_shape, "numbers", 60),
    (wrong_sign_of_the_offset, "numbers", 60),
    (one_more_degree_of_freedom, "numbers", 300),
    (cut_points_of_T_too_high, "levels", 200),
    (shares_without_counts, "groups", 200),
]


@pytest.mark.parametrize(("break_it", "name", "begins"), BROKEN)
@pytest.mark.exhaustive
def test_a_wrong_draw_is_noticed(break_it, name, begins, monkeypatch):
    break_it(monkeypatch)
    found = p_values(run(CASES[name], begins, 20))
    assert min(found.values()) * len(found) < SIGNIFICANT


def test_noise_of_another_line_is_noticed(monkeypatch):
    noise_of_another_line(monkeypatch)
    found = p_values(run(CASES["counts"], 60, 4))
    assert min(found.values()) * len(found) < SIGNIFICANT
