"""Fits of all kinds of models, and new rows, are as low as what other optimisers find."""

import numpy as np
import pandas as pd
import part_oracles
import pytest
from helpers import some
from scipy.optimize import minimize
from scipy.stats import norm

import nmd_lab as nmd
from nmd_lab.nonlinearities import Monotone

M, N, ALPHA, CUTS, SD = 14, 6, 0.4, (-1.0, 0.0, 1.0), 0.3
RNG = np.random.default_rng(0)
T = 1.5 * RNG.normal(size=(M, 1)) @ RNG.normal(size=(1, N))
YES = (RNG.random((M, N)) < 1 / (1 + np.exp(-T))).astype(float)
LEVELS = np.digitize(T + RNG.normal(size=(M, N)), CUTS).astype(float)
COUNTS = RNG.negative_binomial(2, 1 / (1 + 0.5 * np.exp(T))).astype(float)
AMOUNTS = np.exp(T / 2 + 0.1 * RNG.normal(size=(M, N)))
BELOW = np.quantile(AMOUNTS, 0.4, axis=0) > AMOUNTS
LIMITED = np.where(BELOW, np.quantile(AMOUNTS, 0.4, axis=0), AMOUNTS)
AT_MOST, AT_LEAST = (RNG.permutation(M * N).reshape(M, N) % 4 == 0 for _ in "ab")
AT_LEAST &= ~AT_MOST
MIXED = np.column_stack([170 + 10 * T[:, 0], T[:, 1] / 9, YES[:, 2], COUNTS[:, 3]])
MIXED = pd.DataFrame(MIXED, columns=list("abcd")).mask(RNG.random((M, 4)) < 0.15)


def oracle(f, d):
    """Return the losses of a model by the formulas of the tests."""
    return lambda fit, x, t, rows: part_oracles.distance(d, x, part_oracles.forward(f, t))


def tobit(fit, x, t, rows):
    mass = np.maximum(norm.cdf((x - t) / SD) - norm.cdf(-t / SD), 1e-300)
    return np.where(BELOW[rows], -(SD**2) * np.log(mass), (x - t) ** 2 / 2)


def within(fit, x, t, rows):
    """Minus the logarithms of the probabilities of levels, of those up to them, or from them on."""
    ends, k = np.array([-np.inf, *CUTS, np.inf]), x.astype(int)
    low = np.where(AT_MOST[rows], -np.inf, ends[k])
    high = np.where(AT_LEAST[rows], np.inf, ends[k + 1])
    return -np.log(np.maximum(norm.cdf(high - t) - norm.cdf(low - t), 1e-300))


def of_kinds(fit, x, t, rows):
    seen = ~np.isnan(x)
    losses = fit._model.losses(np.where(seen, x, 0.0), t, 0, np.arange(x.shape[-1]))
    return np.where(seen, losses, 0)


ORDINAL = nmd.losses.Ordinal([0, 1, 2, 3], CUTS)
SIZES = ("negative_binomial", 0.5)
CASES = {
    "mixed": (MIXED, {"d": "exp"}, {"c": "logistic", "d": "kl"}, {}, of_kinds),
    "upper limits": (LIMITED, "identity", "frobenius", {"at_most": BELOW}, tobit),
    "logistic": (YES, "identity", "logistic", {}, oracle(("identity",), ("logistic",))),
    "ordinal": (LEVELS, "identity", ORDINAL, {},
                oracle(("identity",), ("ordinal", (0.0, 1.0, 2.0, 3.0), CUTS))),
    "counts": (COUNTS, "exp", nmd.losses.NegativeBinomial(0.5), {}, oracle(("exp",), SIZES)),
    "levels with limits": (LEVELS, "identity", ORDINAL,
                           {"at_most": AT_MOST, "at_least": AT_LEAST}, within),
    "huber": (AMOUNTS, "softplus", nmd.losses.Huber(0.3), {},
              oracle(("softplus",), ("huber", 0.3))),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")
@pytest.mark.parametrize("constraint", [None, "nonnegative"])
@pytest.mark.parametrize("case", some(list(CASES), 2))
def test_a_fit_and_its_new_rows_are_as_low_as_other_optimisers(case, constraint):
    X, f, loss, limits, losses = CASES[case]
    options = {"alpha": ALPHA, "offsets": "none", "tol": 1e-9, "max_iter": 3000, "random_state": 0}
    options |= {"w_constraint": constraint, "solver": nmd.ADMM(limit_noise=SD)} | limits
    fit = nmd.complete(X, 1, f, loss, **options)
    x, (m, n) = np.asarray(X, float), X.shape
    lowest = None if constraint is None else 0

    def objective(z):
        return losses(fit, x, z[:m, None] * z[m:], slice(None)).sum() + ALPHA / 2 * z @ z

    reached = objective(np.concatenate([fit.W.values[:, 0], fit.H.values[0]]))
    assert fit.objective == pytest.approx(reached, rel=1e-8)
    starts = [sign * np.abs(np.random.default_rng(seed).normal(size=m + n)) for seed in range(3)
              for sign in (1, np.concatenate([np.ones(m), -np.ones(n)]))]  # fmt: skip
    bounds = [(lowest, None)] * m + [(None, None)] * n
    assert reached <= min(minimize(objective, z, bounds=bounds).fun for z in starts) * (1 + 1e-4)

    new = X.iloc[:3] if case == "mixed" else X[:3]
    W = fit.fold_in(new, **{name: mask[:3] for name, mask in limits.items()}).values
    for i, w in enumerate(W):

        def of_row(w, i=i):
            row = losses(fit, x[i : i + 1], w * fit.H.values, slice(i, i + 1))
            return row.sum() + ALPHA / 2 * float(w @ w)

        best = min(minimize(of_row, [z], bounds=[(lowest, None)]).fun for z in (0.1, 1, -1, *w))
        assert of_row(w) <= best * (1 + 1e-4) + 1e-9
        assert constraint is None or w >= 0


# A learned f --------------------------------------------------------------------------------------


def curved(m, n):
    """Return exp of a product of low rank with noise, and which tenth of it is hidden."""
    rng = np.random.default_rng(0)
    X = np.exp(0.5 * rng.normal(size=(m, 2)) @ rng.normal(size=(2, n)) / np.sqrt(2))
    return X / X.std() + 0.05 * rng.normal(size=(m, n)), rng.random((m, n)) < 0.1


@pytest.mark.parametrize("loss", some(["l1", "frobenius", "kl", "huber"], 1))
def test_the_objective_is_that_of_the_learned_f_and_falls(loss):
    X, hidden = curved(30, 20)
    X = np.maximum(X, 0.01)
    options = {"alpha": 0.1, "random_state": 0, "max_iter": 60, "tol": 0}
    fit = nmd.complete(np.where(hidden, np.nan, X), *(2, "monotone", loss), **options)
    objective = fit.history["objective"].values
    assert objective.min() < 0.9 * objective[0]
    first = Monotone().for_data(X[~hidden], centred=True)
    assert fit.nonlinearity != first
    x, y = X[~hidden], fit.reconstruct().values[~hidden]
    ridge = 0.05 * sum(np.square(each.values).sum() for each in (fit.W, fit.H))
    at_end = float(fit.loss(x, y).sum()) + ridge
    assert at_end == pytest.approx(objective.min(), rel=1e-6)


def test_each_column_of_a_table_has_an_f_of_its_own(read_back):
    X, hidden = curved(80, 6)
    frame = pd.DataFrame(X, columns=list("abcdef")).mask(hidden)
    frame["f"] = frame["f"] > frame["f"].median()
    options = {"alpha": 0.1, "random_state": 0, "max_iter": 60}
    fit = nmd.complete(frame, 2, dict.fromkeys("abc", "monotone"), **options)
    learned = [fit.nonlinearity[j] for j in range(3)]
    assert len({f.x for f in learned}) == 3
    assert all(f.learns and len(f.t) == 20 for f in learned)
    assert fit.nonlinearity[4] == nmd.Identity()
    again = read_back(fit)
    assert again.nonlinearity == fit.nonlinearity
    pd.testing.assert_frame_equal(again.impute(frame), fit.impute(frame))
    rows = fit.fold_in(frame.iloc[:3])
    assert np.all(np.isfinite(rows.values))
