"""Quasi-Newton steps beside Algorithm 1: never worse, much faster, and left out on request.

Their work is counted, and waits while Algorithm 1 is fast.
"""

import functools
from dataclasses import replace

import numpy as np
import pytest
from helpers import PLAIN, given, prepare, some
from oracles import PAIRS, forward
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.datasets import synthetic
from nmd_lab.engines.refined import NEARLY_EXACT, Refined
from nmd_lab.fit.starts import warmed_up

NOTHING_BESIDE = {"refine": False, "homotopy": False, "polish": False}
FORMS = ["dense", "masked", "weighted", "stored", "zeros", "few"]
UNTOUCHED = ["primal_residual", "dual_residual", "penalty"]

# Problems of any kind
pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")


def instance(seed):
    """A small random problem: the verb, its arguments and its options."""
    rng = np.random.default_rng(seed)
    (f, loss), form = PAIRS[seed % 15], FORMS[(seed // 15 + seed) % 6]
    (m, n), rank = rng.integers(8, 25, 2), int(rng.integers(1, 5))
    X = forward(f, rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)))
    X = np.abs(X + rng.choice([0, 0.1, 0.5]) * rng.normal(size=(m, n)))
    X *= rng.random((m, n)) > rng.choice([0, 0.3])
    seen = rng.random((m, n)) < (0.2 if form == "few" else 0.7)
    seen[0] = seen[:, 0] = True
    options = {
        "alpha": float(rng.choice([0, 0, 0.3])),
        "init": str(rng.choice(["auto", "svd", "random"])),
        "random_state": seed,
        "solver": nmd.ADMM(rho=str(rng.choice(["auto", "balanced"]))),
    }
    if form != "zeros":
        options["offsets"] = str(rng.choice(["none", "none", "global", "rows", "both"]))
    verb = nmd.complete if form in ("stored", "few") else nmd.decompose
    if form in ("masked", "few"):
        X = np.where(seen, X, np.nan)
    elif form == "weighted":
        options["weights"] = np.where(seen, rng.random((m, n)) + 0.2, 0)
    elif form in ("stored", "zeros"):
        X = sparse.csr_array((X[seen], np.nonzero(seen)), shape=X.shape)
    return functools.partial(verb, X, rank, given(f), loss, tol=0, **options)


def changed(options, how):
    """Return options with other settings of the solver, which has those of before beside them."""
    return options | {"solver": replace(options.get("solver", nmd.ADMM()), **how)}


@pytest.mark.parametrize("seed", some(range(60), 5))
def test_never_above_the_plain_run_whose_iterates_it_leaves_alone(seed):
    fit = functools.partial(instance(seed), max_iter=300)
    fits = (fit(**changed(fit.keywords, how)) for how in (NOTHING_BESIDE, {}))
    plain, fast = ({name: each.values for name, each in one.history.items()} for one in fits)
    assert np.all(np.diff(fast["objective"]) <= 0)
    assert np.all(fast["objective"] <= np.minimum.accumulate(plain["objective"]))
    assert np.all(np.isfinite(fast["relative_error"]))
    for name in UNTOUCHED:
        np.testing.assert_array_equal(fast[name], plain[name])


# When there is nothing beside the iteration -----------------------------------------------------


def noisy(f="relu", seed=3, shape=(20, 15), rank=3):
    return np.abs(synthetic(*shape, rank, f, noise=0.3, random_state=seed).X.values)


def factors(seed=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(20, 3)), rng.normal(size=(3, 15))


PLAINLY = [
    {"solver": nmd.ADMM(rho=1.0)},
    {"solver": nmd.ADMM(rho=nmd.PenaltyRule(initial=0.5, factor=np.inf))},
    {"solver": nmd.ADMM(rho="paper")},
    {"init": factors(), "tol": 0, "solver": nmd.ADMM(rho="balanced")},
    {"nonlinearity": "identity", "solver": nmd.ADMM(split="observed")},
]
ACCELERATED = [
    {"init": factors(), "solver": nmd.ADMM(rho="balanced")},
    {"tol": 0, "solver": nmd.ADMM(rho="balanced")},
    {"solver": nmd.ADMM(rho="paper", initial_rho=0.5, polish=True)},
    {"init": factors(), "tol": 0},
    {"nonlinearity": "square", "init": factors(2), "tol": 0},
]


SETTINGS = [(each, True) for each in PLAINLY] + [(each, False) for each in ACCELERATED]


@pytest.mark.parametrize(("options", "is_plain"), SETTINGS)
def test_only_what_asks_for_the_plain_algorithm_gets_it(options, is_plain):
    options = {"nonlinearity": "relu", "max_iter": 200, "random_state": 0, **options}
    fits = [nmd.decompose(noisy(), 3, **changed(options, how)) for how in ({}, NOTHING_BESIDE)]
    by_default, plain = (fit.history["objective"].values for fit in fits)
    assert by_default.min() < plain.min() * (1 - 1e-4) or is_plain
    assert not is_plain or np.array_equal(by_default, plain)
    assert np.array_equal(fits[0].W, fits[1].W) == is_plain


@pytest.mark.parametrize(("f", "loss"), [("relu", "frobenius"), ("square", "frobenius"),
                                         ("square", "kl"), ("minmax", "frobenius"),
                                         ("minmax", "kl")])  # fmt: skip
def test_a_polish_alone(f, loss):
    """Asked for, it comes with a fixed ρ too; the iteration goes on as it would."""
    options = {"init": factors(), "max_iter": 600, "tol": 0}
    solver = nmd.ADMM(rho=1.0, **NOTHING_BESIDE)
    polished, plain = (
        nmd.decompose(noisy(f), 3, given(f), loss, solver=each, **options).history
        for each in (replace(solver, polish=True), solver)
    )
    lowest = np.minimum.accumulate(plain["objective"].values)
    np.testing.assert_array_equal(polished["objective"][:31], lowest[:31])
    assert np.all(polished["objective"] <= lowest)
    assert np.any(polished["objective"] < lowest * (1 - 1e-3))
    for name in UNTOUCHED:
        np.testing.assert_array_equal(polished[name], plain[name])


def test_a_homotopy_alone():
    X = np.clip(noisy("minmax"), 0, 1)
    options = {"init": "svd", "max_iter": 200, "tol": 0, "random_state": 0}
    solver = nmd.ADMM(rho=1.0, **NOTHING_BESIDE)
    solvers = replace(solver, homotopy=True), solver
    wide, plain = (nmd.decompose(X, 3, "minmax", "l1", solver=each, **options) for each in solvers)
    assert wide.objective < 0.9 * plain.history["objective"].min()
    np.testing.assert_array_equal(wide.history["penalty"], plain.history["penalty"])


def graph(n=150):
    rng = np.random.default_rng(1)
    sizes = rng.pareto(1.5, n) + 0.2
    upper = np.triu(rng.random((n, n)) < np.minimum(0.02 * np.outer(sizes, sizes), 0.9), 1)
    return sparse.csr_array((upper + upper.T + np.eye(n)).astype(float))


KINDS = {"graph": (graph(), 8, "relu", "frobenius")}
KINDS |= {f"{f} {d}": (noisy(f, 1, (60, 40), 4), 4, given(f), d) for f, d in PAIRS}


LIMITS = {"square l1": 1.25}
"""Largest ratio where it is not 1.1: an even f and a loss with a kink leap to another minimum."""


@pytest.mark.parametrize("kind", some([*KINDS], 6))
def test_after_the_same_counted_work_the_best_is_at_most_a_tenth_above_the_plain_method(kind):
    """The promise by time, with the counted work of each pass in place of the clock."""
    X, rank, f, loss = KINDS[kind]
    one = nmd.Compute(threads=1)
    prepared = prepare(X, rank, f, loss, absent_are_zeros=True, random_state=0, compute=one)
    plain = nmd.decompose(X, rank, f, loss, max_iter=600, tol=0, random_state=0, solver=PLAIN)
    lowest = np.minimum.accumulate(plain.history.objective.values)
    work, best = [], []
    engine = Refined(prepared.plan)
    first = next(prepared.starts)
    warmed = warmed_up(prepared.problem, first, prepared.options, prepared.plan)
    state = engine.init(prepared.problem, warmed)
    while not work or (work[-1] < 600 and engine.status(state) is None):
        state = engine.step(prepared.problem, state)
        work.append(state.plain.iteration + state.budget.spent)
        best.append(engine.iterate(prepared.problem, state).objective)
    there = np.searchsorted(work, np.arange(1, 601) + 1, side="right") - 1
    far = plain.history.relative_error.values > NEARLY_EXACT
    ratios = np.array(best)[there] / lowest
    assert ratios[far & (np.arange(600) < int(work[-1]))].max() <= LIMITS.get(kind, 1.1)
