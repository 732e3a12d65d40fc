"""The work of refinements is counted, and waits while Algorithm 1 is fast."""

import numpy as np
import pytest
from given import PLAIN, given, prepare
from oracles import PAIRS
from scipy import sparse
from some import some

import nmd_lab as nmd
from nmd_lab.datasets import synthetic
from nmd_lab.engines.refined import NEARLY_EXACT, Refined
from nmd_lab.fit.starts import warmed_up


def graph(n=150):
    rng = np.random.default_rng(1)
    sizes = rng.pareto(1.5, n) + 0.2
    upper = np.triu(rng.random((n, n)) < np.minimum(0.02 * np.outer(sizes, sizes), 0.9), 1)
    return sparse.csr_array((upper + upper.T + np.eye(n)).astype(float))


KINDS = {
    "graph": (graph(), 8, "relu", "frobenius"),
    **{
        f"{f} {d}": (
            np.abs(synthetic(60, 40, 4, f, noise=0.3, random_state=1).X.values),
            4,
            given(f),
            d,
        )
        for f, d in PAIRS
    },
}


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
