"""Rules for ρ: what each does, which is taken by default, and that scale does not matter."""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers import given, prepare
from oracles import PAIRS

import nmd_lab
from nmd_lab.datasets import synthetic
from nmd_lab.request.penalty import BALANCED, EVEN_SHARE, RELAXING, PenaltyRule


def noisy(f="relu", scale=1.0, noise=0.2):
    return scale * np.abs(synthetic(30, 20, 3, f, noise=noise, random_state=0).X.values)


def rule_for(f, loss, **settings):
    solver = nmd_lab.ADMM(**settings)
    return prepare(noisy(f), 3, given(f), loss, absent_are_zeros=True, solver=solver).problem.rule


# What a rule does -------------------------------------------------------------------------------


def falling(iteration):
    return 0.9**iteration


@pytest.mark.parametrize("larger", ["primal", "dual"])
def test_a_relaxing_rule_lets_the_residuals_differ_more_and_more(larger):
    control = PenaltyRule(period=10).begin()
    for iteration in range(1, 100):
        if iteration % 10 == 0:
            control(1.0, 1.0, 1.0, falling(iteration))
            continue
        share, changed = 0.99, 1.0
        if iteration % 2:
            share, changed = 1.01, {"primal": 2.0, "dual": 0.5}[larger]
        residuals = share * 3 * (1 + (iteration / 10) ** 2), 1.0
        primal, dual = residuals if larger == "primal" else residuals[::-1]
        assert control(1.0, primal, dual, falling(iteration)) == changed


def test_a_relaxing_rule_grows_when_the_objective_stands_still_or_rises():
    control = PenaltyRule(period=10).begin()
    falls = [falling(k) for k in range(1, 31)]
    stands = [falls[-1] * 0.9999**k for k in range(1, 31)]
    found = [control(1.0, 1.0, 1.0, objective) for objective in falls + stands]
    grown = [k + 1 for k, penalty in enumerate(found) if penalty == 2.0]
    assert grown == [40, 50, 60]
    assert set(found) == {1.0, 2.0}
    control = PenaltyRule(period=10).begin()
    rising = [control(1.0, 1.0, 1.0, float(k)) for k in range(1, 31)]
    assert [k + 1 for k, penalty in enumerate(rising) if penalty == 2.0] == [20, 30]


def test_each_iteration_asks_the_rule_with_the_residuals_before():
    rule = PenaltyRule(period=4)
    solver = nmd_lab.ADMM(rho=rule, refine=False)
    fit = nmd_lab.decompose(noisy(), 3, "relu", "l1", max_iter=40, tol=0, solver=solver)
    names = ["penalty", "primal_residual", "dual_residual", "objective"]
    rows, asked = fit.history[names].to_pandas().to_numpy(), rule.begin()
    assert [asked(*row) for row in rows[:-1]] == pytest.approx(rows[1:, 0])
    assert len(set(rows[:, 0])) > 3


# Which rule is taken ----------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_auto_is_balanced_unless_the_loss_has_a_kink_and_f_is_not_even(f, loss):
    rule = rule_for(f, loss)
    problem = prepare(noisy(f), 3, given(f), loss, absent_are_zeros=True).problem
    natural = problem.penalty_scale
    natural *= EVEN_SHARE if f in ("square", "modulus") else 1
    if loss == "l1" or (loss == "kl" and f in ("square", "modulus")):
        assert rule == PenaltyRule(initial=natural, unit=natural, period=RELAXING.period)
        assert natural != 1
    elif loss == "frobenius" and f != "square":
        assert rule == BALANCED
    else:  # ρ has a unit, which is that of X
        assert rule == replace(BALANCED, initial=natural, unit=natural)


@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_names_keep_their_meaning(f, loss):
    assert rule_for(f, loss, rho="balanced") == PenaltyRule(1.0, 3.0, 2.0)
    assert rule_for(f, loss, rho="paper") == PenaltyRule(1.0, 10.0, 2.0, projected=True)
    assert rule_for(f, loss, rho=0.3) == PenaltyRule(0.3, math.inf)
    own = PenaltyRule(initial=7.0, factor=4.0, step=1.5)
    assert rule_for(f, loss, rho=own) == own


@pytest.mark.parametrize("rho", ["auto", "balanced", "paper"])
@pytest.mark.parametrize("loss", ["frobenius", "l1"])
def test_initial_rho_is_where_it_starts(loss, rho):
    solver = nmd_lab.ADMM(rho=rho, initial_rho=0.07)
    fit = nmd_lab.decompose(noisy(), 3, "relu", loss, max_iter=5, solver=solver)
    assert fit.history["penalty"][0] == 0.07
    assert fit.parameters["initial_rho"] == 0.07
    other = rule_for("relu", loss, rho=rho, initial_rho=0.07)
    assert other == replace(rule_for("relu", loss, rho=rho), initial=0.07)
