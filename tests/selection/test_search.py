"""The order of trials, on made-up errors: what is found, in how many trials, and what is kept.

Which nonlinearities and losses suit data, and how losses are compared.
"""

import math

import numpy as np
import pytest
import xarray as xr
from helpers import some
from scipy import sparse

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.fit.summary import describe
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.problem.initialization import Start
from nmd_lab.request.options import Options, Space, suitable_functions, suitable_losses
from nmd_lab.selection.progress import Trial
from nmd_lab.selection.search import Search
from nmd_lab.selection.trials import Trials

MOST = 200
"""Trials of a search at most; each is short."""
IDENTITY, RELU = nmd.Identity(), nmd.ReLU()


class MadeUp(Trials):
    """Trials whose mean loss is a function of the setting, and large without components."""

    def __init__(self, mean, X, stop_after=math.inf, factor=lambda how, setting: 1.0):
        known = describe(observe(X), None, Options(), is_table=False)
        folds, _ = known.folds_for_trials(np.random.default_rng(0))
        stopped = lambda: len(self.done) >= stop_after  # noqa: E731
        super().__init__(folds, known, Options(), np.random.default_rng(0), stopped)
        self.factor = factor
        self.mean, self.noise = mean, np.random.default_rng(1)

    def run(self, setting, starts=None, *, kind="short", **how):
        noise = 0.3 * self.noise.normal(size=400)
        alone = starts is not None and not any(start.W.any() for start in starts)
        mean = self.mean(setting._replace(rank=1, alpha=1.0)) * 10 if alone else self.mean(setting)
        mean *= self.factor(kind, setting)
        start = Start(np.ones((1, 1)), np.ones((1, 1)), True, NO_OFFSETS)
        losses = mean * (1 + noise - noise.mean())
        trial = Trial(setting, losses, 5, 0.1, [start] * len(self.folds))
        trial.is_exact, trial.kind = mean == 0, kind
        self.done.append(trial)
        return self.done[-1]


def search_of(mean, given=None, nonlinearities=None, losses=None, shape=(60, 50), **how):
    X = np.abs(np.random.default_rng(0).normal(size=shape))
    trials = MadeUp(mean, X, **how)
    models = nonlinearities or [nmd.Identity()], losses or [nmd.Frobenius()]
    names = {"rank": "rank_candidates", "alpha": "alpha_candidates"}
    candidates = {names.get(name, name): value for name, value in (given or {}).items()}
    return Search(trials, Space(*models, largest_rank=min(shape), **candidates))


def valley(rank, alpha, offsets=None, offset_alpha=None):
    """Return a mean loss with one minimum, of 1."""

    def mean(setting):
        value = 1 + 0.3 * math.log(setting.rank / rank) ** 2
        value += 0.05 * math.log(max(setting.alpha, 1e-9) / alpha) ** 2
        if offsets is not None:
            value += 0.4 * (setting.offsets != offsets)
        if offset_alpha is not None and setting.offsets not in ("none", "global"):
            value += 0.05 * math.log(setting.offset_alpha / offset_alpha) ** 2
        return value

    return mean


# What is found ------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.03, 1.0, 10.0])
@pytest.mark.parametrize("rank", [1, 3, 8, 20])
@pytest.mark.parametrize("offsets", ["both", "columns", "rows"])
def test_the_bottom_of_a_valley(rank, alpha, offsets):
    search = search_of(valley(rank, alpha, offsets, 0.7))
    chosen = search.run().setting
    assert chosen.offsets == offsets
    assert 0.7 * rank <= chosen.rank <= 1.4 * rank
    assert 0.5 < chosen.alpha / alpha < 2
    assert 0.2 < chosen.offset_alpha / 0.7 < 5
    assert len(search.trials.done) <= MOST


def test_fewer_components_if_more_gain_nothing():
    search = search_of(lambda s: 1 + 0.05 * math.log(s.alpha) ** 2 + max(0, 3 - s.rank))
    assert search.run().setting.rank == 3


def test_fewer_components_without_a_ridge_too():
    """Twelve overfit a little less than eight, and two fit best."""
    means = {1: 0.34, 2: 0.008, 3: 0.016, 4: 0.085, 5: 0.09, 6: 0.1, 8: 0.118, 10: 0.114}
    plain = {"alpha": (0.0,), "offsets": "none", "offset_alpha": 0.0}
    search = search_of(lambda setting: means.get(setting.rank, 0.11), plain)
    assert search.run().setting.rank == 2


@pytest.mark.parametrize(("gain", "chosen"), [(0.2, RELU), (-0.2, IDENTITY), (0.0, IDENTITY)])
def test_another_nonlinearity_only_if_it_is_clearly_better(gain, chosen):
    mean = lambda s: valley(4, 1.0)(s) * (1 - gain * (s.nonlinearity == RELU))  # noqa: E731
    search = search_of(mean, nonlinearities=[IDENTITY, RELU])
    assert search.run().setting.nonlinearity == chosen


# How many trials ----------------------------------------------------------------------------------


def slope(sign):
    """Return an error by which ever weaker, or ever stronger, ridges are a little better."""
    return lambda setting: 2 + sign * math.tanh(math.log(setting.alpha) / 50)


@pytest.mark.parametrize("value", [0.0, 1.0, math.inf, slope(-1), slope(1), *map(str, range(8))])
def test_where_nothing_can_be_found_few_trials_are_needed(value):
    rng = np.random.default_rng(int(value) if isinstance(value, str) else 0)
    noise = lambda setting: 1 + 0.05 * rng.random()  # noqa: E731
    plain = isinstance(value, float)
    search = search_of(value if callable(value) else (lambda _: value) if plain else noise)
    assert not plain or search.run().setting.rank <= 8
    plain or search.run()
    assert len(search.trials.done) <= MOST


@pytest.mark.parametrize("shape", [(2, 2), (3, 40), (5, 5)])
def test_no_rank_beyond_the_data(shape):
    search = search_of(lambda s: 1 / s.rank, shape=shape)
    search.run()
    assert max(trial.setting.rank for trial in search.trials.done) <= min(shape)


@pytest.mark.parametrize("stop_after", [1, 2, 5, 12, 30])
def test_a_stop_gives_the_best_so_far(stop_after):
    search = search_of(valley(3, 1.0, "both", 0.7), stop_after=stop_after)
    chosen = search.run()
    done = search.trials.done
    assert len(done) <= stop_after + 4
    assert chosen in done
    best = min(trial.mean for trial in done)
    assert chosen.mean <= 1.01 * best


# What is given ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"rank": (5,)}, {"alpha": (0.3,)}, {"alpha": (0.0,)}, {"offsets": "rows"},
        {"offsets": "none"}, {"offsets": "global"}, {"offset_alpha": 2.5}, {"offset_alpha": 0.0},
        {"rank": (4,), "offsets": "both", "offset_alpha": 9.0},
        {"alpha": (0.3,), "offsets": "columns", "offset_alpha": 1.0},
    ],
    ids=str,
)  # fmt: skip
def test_it_is_not_touched(given):
    search = search_of(lambda s: 1 + 0.1 * math.cos(3 * math.log(s.alpha + 1)) / s.rank, given)
    search.run()
    for trial in search.trials.done:
        for name, value in given.items():
            assert getattr(trial.setting, name) in (value if isinstance(value, tuple) else [value])


@pytest.mark.parametrize("f", [nmd.Modulus(), nmd.Square()])
def test_an_even_f_has_no_offsets_unless_they_are_given_and_begins_with_weak_ridges(f):
    search = search_of(valley(3, 1.0), {"offsets": "none"}, nonlinearities=[f])
    chosen = search.run()
    assert {trial.setting.offsets for trial in search.trials.done} == {"none"}
    assert chosen.setting.nonlinearity == f
    assert 0.5 < chosen.setting.alpha < 2
    path = [trial.setting.alpha for trial in search.trials.done][1:8]
    assert path == sorted(path)  # from weak ridges: strong ones lose the signs of WH


def test_the_setting_without_trials_respects_what_is_given():
    search = search_of(lambda s: 1.0, {"rank": (5,), "alpha": (0.3,), "offsets": "rows"})
    assert (search.first.rank, search.first.alpha, search.first.offsets) == (5, 0.3, "rows")
    assert search.trials.done == []


# Candidates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "best"),
    [("rank", (2, 7, 9), 7), ("rank", (1, 3), 3), ("rank", (40, 50), 40),
     ("alpha", (0.1, 1.5, 20.0), 1.5), ("alpha", (3.0, 30.0), 3.0)],
)  # fmt: skip
def test_only_given_candidates_are_tried(name, values, best):
    search = search_of(valley(7, 1.0), {name: values})
    assert getattr(search.run().setting, name) == best
    tried = {getattr(trial.setting, name) for trial in search.trials.done[10:]}
    assert tried <= {1, *values} if name == "rank" else tried <= set(values)


# Cold starts --------------------------------------------------------------------------------------


def test_the_strongest_of_ridges_that_are_about_as_good():
    """The error falls by next to nothing, for ever."""
    flat = lambda s: 1 + 0.3 * max(0, math.log10(s.alpha)) + 1e-6 * math.tanh(s.alpha)  # noqa: E731
    assert search_of(flat).run().setting.alpha > 0.1


def test_an_error_that_a_cold_start_does_not_have():
    """A weak ridge is only good on the way from a strong one."""
    worse = lambda how, s: 2.0 if how != "short" and s.alpha < 2 else 1.0  # noqa: E731
    search = search_of(valley(4, 1.0), factor=worse)
    chosen = search.run()
    best, cold = search.not_repeated
    assert cold.error > 1.2 * best.error
    assert chosen.setting.alpha > 2


@pytest.mark.parametrize(("factor", "taken"), [(0.9, True), (1.1, False)])
def test_a_path_of_ridges_is_taken_where_it_is_better(factor, taken):
    search = search_of(valley(4, 1.0), factor=lambda how, s: factor if how == "ridge_path" else 1.0)
    chosen = search.run()
    assert (chosen.mean < 0.95) == taken
    assert 3 <= chosen.setting.rank <= 5


def test_a_larger_rank_along_a_path_must_be_clearly_better():
    """Along the path, the error falls up to rank 12."""
    along = lambda how, s: 0.9 - 0.02 * min(s.rank, 12) if how == "ridge_path" else 1.0  # noqa: E731
    flat = lambda s: valley(4, 1.0)(s._replace(rank=min(s.rank, 4)))  # noqa: E731
    assert 8 <= search_of(flat, factor=along).run().setting.rank <= 12


def test_offsets_are_compared_at_the_best_ridge_of_each_kind():
    """Without offsets ReLU needs another ridge; this generated matrix has none."""
    rng = np.random.default_rng(4)
    product = rng.standard_normal((80, 4)) @ rng.standard_normal((4, 40))
    hidden = rng.random(product.shape) < 0.3
    X = np.maximum(0, product + 0.2 * rng.standard_normal(product.shape))
    X[hidden] = np.nan
    choice = nmd.Choice(ranks=[2, 4, 8])
    fit = nmd.complete(X, nonlinearity="relu", validation=choice, random_state=0)
    assert fit.chosen["rank"] == 4
    assert fit.chosen["offsets"] == "none"


GAUSS = np.random.default_rng(0).normal(size=(30, 20))
LEVELS = np.random.default_rng(1).integers(1, 6, size=(30, 20)) * 1.0


def one_zero(X):
    X = np.abs(X) + 0.1
    X[0, 0] = 0
    return X


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (GAUSS, [IDENTITY]),
        (np.abs(GAUSS), [IDENTITY]),
        (np.maximum(GAUSS, 0), [IDENTITY, RELU]),
        (np.maximum(GAUSS, 0) - 1, [IDENTITY]),
        (one_zero(GAUSS), [IDENTITY]),
        (np.clip(GAUSS, 0, 1), [IDENTITY, RELU, nmd.MinMax(0, 1)]),
        (np.clip(GAUSS, -1, 2), [IDENTITY, nmd.MinMax(-1, 2)]),
        (LEVELS, [IDENTITY, nmd.MinMax(1, 5)]),
        (np.full((4, 3), 2.0), [IDENTITY]),
        (np.zeros((4, 3)), [IDENTITY]),
        (xr.DataArray(GAUSS, attrs={"valid_range": [-9, 9]}), [IDENTITY, nmd.MinMax(-9, 9)]),
        (sparse.csr_array(LEVELS * (LEVELS > 2)), [IDENTITY, nmd.MinMax(3, 5)]),
    ],
)
def test_nonlinearities(X, expected):
    assert suitable_functions(observe(X)) == expected


def test_values_count_by_their_weight():
    X = one_zero(GAUSS)
    weights = np.ones(X.shape)
    weights[0, 0] = 10
    assert RELU not in suitable_functions(observe(X))
    assert RELU in suitable_functions(observe(X, weights=weights))


@pytest.mark.parametrize(
    ("X", "counts"),
    [(GAUSS, False), (LEVELS, True), (LEVELS - 3, False), (LEVELS / 2, False),
     (LEVELS.astype(np.float32), True), (np.zeros((3, 3)), True)],
)  # fmt: skip
def test_losses(X, counts):
    expected = [nmd.Frobenius(), nmd.L1(), nmd.KL()] if counts else [nmd.Frobenius(), nmd.L1()]
    assert suitable_losses(observe(X)) == expected


NOISES = [("poisson", "kl"), ("gauss", "frobenius"), ("laplace", "l1")]


@pytest.mark.parametrize(("noise", "expected"), some(NOISES, 1))
def test_the_noise_is_found(noise, expected):
    rng = np.random.default_rng(3)
    clean = 4 * rng.gamma(1, size=(60, 2)) @ rng.gamma(1, size=(2, 40)) + 0.5
    X = {
        "gauss": lambda: clean + rng.normal(size=clean.shape),
        "laplace": lambda: clean + rng.laplace(size=clean.shape),
        "poisson": lambda: rng.poisson(clean).astype(float),
    }[noise]()
    X[rng.random(X.shape) < 0.1] = np.nan
    fit = nmd.complete(X, 2, "identity", "auto", offsets="none", random_state=0)
    assert fit.loss.name == expected
    assert "loss" in fit.selection.attrs["options"]
