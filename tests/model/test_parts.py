"""The T-update of every loss and nonlinearity is the global minimiser.

Checked are all pairs of the paper, and a covering choice of others: all with NMD_LAB_ALL_PAIRS=1.
"""

import os

import numpy as np
import pytest
from helpers import some
from part_oracles import forward, inputs, largest_excess

import nmd_lab as nmd
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.nonlinearities import NONLINEARITY_CLASSES

PIECES = ("piecewise_linear", (-1.0, 0.5, 2.0), (-0.5, 2.0, 0.0, 1.0), (0.0, 0.3))
KNOTS = ("monotone", (-2.0, -1.0, 0.0, 0.5, 1.0, 2.5), (-1.0, -0.5, 0.5, 0.75, 1.5, 2.0))
ORDINAL = ("ordinal", (1.0, 2.0, 3.0, 4.0), (-0.7, 0.2, 2.0))
FUNCTIONS = [
    ("identity",), ("relu",), ("minmax", 0.0, 1.0), ("minmax", 0.2, 1.5), ("minmax", -2.0, 0.5),
    ("minmax", -3.0, -1.0), ("minmax", 0.5, 0.5), ("minmax", 0.0, np.inf), ("minmax", -np.inf, 1.0),
    ("modulus",), ("square",), ("leaky_relu", 0.1), ("soft_threshold", 0.5),
    ("absolute_offset", 0.2), PIECES, KNOTS, ("wrap", 4.0), ("wrap", 6.0, -1.0), ("sigmoid",),
    ("softplus",), ("exp",), ("tanh",), ("power", 1.5),
]  # fmt: skip
DISTANCES = [
    ("frobenius",), ("l1",), ("kl",), ("huber", 0.5), ("quantile", 0.8), ("logistic",),
    ("negative_binomial", 0.5), ("itakura_saito",), ("squared_log",), ORDINAL,
]  # fmt: skip
MODELS = {f: NONLINEARITY_CLASSES[f[0]](*f[1:]) for f in FUNCTIONS}
LIKELIHOODS = {d: LOSSES[d[0]](*d[1:]) for d in DISTANCES} | {("logistic",): LOSSES["logistic"](0)}
CHOSEN = {
    "identity": ("huber", "ordinal", "itakura_saito", "squared_log"),
    "relu": ("quantile", "logistic"),
    "square": ("negative_binomial",),
    "leaky_relu": ("frobenius", "kl"),
    "soft_threshold": ("huber", "l1"),
    "absolute_offset": ("ordinal", "negative_binomial"),
    "piecewise_linear": ("logistic", "itakura_saito"),
    "monotone": ("frobenius", "l1", "kl", "negative_binomial", "ordinal"),
    "wrap": ("frobenius", "squared_log"),
    "sigmoid": ("frobenius",),
    "softplus": ("negative_binomial",),
    "exp": ("frobenius", "kl", "negative_binomial", "itakura_saito", "squared_log", "quantile"),
    "tanh": ("kl",),
    "power": ("frobenius",),
}
EVERY = bool(os.environ.get("NMD_LAB_ALL_PAIRS"))
PAPER = ("identity", "relu", "square", "minmax", "modulus"), ("frobenius", "l1", "kl")
OF_PAPER = [(f, d) for f in MODELS for d in LIKELIHOODS if f[0] in PAPER[0] and d[0] in PAPER[1]]
OF_PAPER.remove((("minmax", -3.0, -1.0), ("kl",)))  # f takes no value in the domain
OTHERS = [(f, d) for f in MODELS for d in LIKELIHOODS if EVERY or d[0] in CHOSEN.get(f[0], ())]
PAIRS = some([*OF_PAPER, *(pair for pair in OTHERS if pair not in OF_PAPER)], len(OF_PAPER))


def label(part):
    return part[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("f", "d"), PAIRS, ids=label)
def test_exact(f, d, dtype):
    v, x, rho = inputs(f, d, 20_000, dtype)
    t = nmd.prox(v, x, rho, nonlinearity=MODELS[f], loss=LIKELIHOODS[d])
    assert t.dtype == dtype
    excess, shown = largest_excess(t, v, x, rho, f, d)
    # In float32, two branches of a period may tie and be rounded differently.
    assert excess <= (1e-8 if dtype is np.float64 else 1e-7), shown


def test_every_class_is_in_the_tables():
    assert {f[0] for f in MODELS} == set(NONLINEARITY_CLASSES)
    assert {d[0] for d in LIKELIHOODS} == set(LOSSES)


@pytest.mark.parametrize("f", MODELS, ids=label)
def test_f_is_its_formula(f):
    t = np.concatenate([np.linspace(-5, 5, 101), [-40.0, 40.0]])
    np.testing.assert_allclose(MODELS[f](t), forward(f, t), rtol=1e-12, atol=1e-13)


@pytest.mark.exhaustive
@pytest.mark.parametrize("f", MODELS, ids=label)
def test_a_fit_begins_at_finite_numbers_near_the_data(f):
    part = MODELS[f]
    x = part(np.linspace(-1.5, 1.5, 31))
    T = part.pseudo_inverse(x)
    assert np.all(np.isfinite(part.pseudo_inverse(np.array([-1e3, -1.0, 0.0, 1e-9, 1.0, 1e3]))))
    np.testing.assert_allclose(part(T), x, atol=0.05)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["sigmoid", "softplus", "exp", "tanh"])
def test_extremes_are_finite(name):
    part = next(part for f, part in MODELS.items() if f[0] == name)
    assert np.all(np.isfinite(part(np.array([-1e6, 1e6]))))
    t = nmd.prox([-1e4, 1e4], [0.5, 0.5], 1.0, nonlinearity=part, loss="kl")
    assert np.all(np.isfinite(t))
