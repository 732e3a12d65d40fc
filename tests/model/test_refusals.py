"""Parts of a model that are refused: one table of (words of the sentence, function, values)."""

import numpy as np
import pytest
from helpers import check_all_refused

import nmd_lab as nmd
from nmd_lab.losses import Huber, Logistic, NegativeBinomial, Ordinal, Quantile
from nmd_lab.model.model import make_model
from nmd_lab.nonlinearities import AbsoluteOffset, LeakyReLU, PiecewiseLinear, SoftThreshold, Wrap
from nmd_lab.sampler.latent_draws import compile_latent_draw


def prox(options):
    """Return the T-update of a number, with other arguments."""
    usual = {"v": 1.0, "x": 1.0, "rho": 1.0, "nonlinearity": "relu", "loss": "frobenius"}
    return nmd.prox(**usual | options)


def piecewise(arguments):
    return PiecewiseLinear(*arguments)


def test_parameters_and_arguments():
    check_all_refused([
        ("give", Huber, 0),
        ("give", Quantile, 1),
        ("give", Logistic, 2),
        ("give", NegativeBinomial, -1, np.inf),
        ("give", Ordinal, [1], [2, 1]),
        ("give", LeakyReLU, -1),
        ("give", SoftThreshold, np.inf),
        ("give", AbsoluteOffset, np.nan),
        ("give", Wrap, 0),
        ("^breaks=", piecewise, ([], [1]), ([1, 1], [0, 1, 0])),
        ("^slopes=", piecewise, ([0], [1]), ([0], [1, np.nan])),
        ("^at=", piecewise, ([0], [1, 2], (1,))),
        (r"\brho\b", lambda rho: prox({"rho": rho}), 0.0, -1.0, [1.0, -1.0], np.nan),
        (r"\bX\b", prox, {"x": -1.0, "loss": "kl"}),
        (r"\bloss\b", lambda loss: prox({"loss": loss}), "huberr", None),
        (r"\bnonlinearity\b", lambda f: prox({"nonlinearity": f}), "rellu", 3),
        ("takes no value", prox, {"nonlinearity": Wrap(1.0, -3.0), "loss": "kl"}),
        ("cannot compile 'smooth'.*compile=False", nmd.nonlinearities.Smooth,
         lambda t: dict(a=[t])),  # noqa: C408
        ("f=3 is not callable", nmd.nonlinearities.Smooth, 3),
        ("'exp' .* choose noise='after'",
         lambda f: compile_latent_draw(make_model(f, "frobenius").structure), "exp"),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("loss", "x", "named"),
    [
        (Logistic(), [0.0, 0.5], "0.5"),
        (Logistic(), [-1.0, 0.0], "value 0"),
        (Logistic(0), [-1.0, 1.0], "-1"),
        (Ordinal([1, 2]), [1.0, 3.0], "value 3"),
        (Ordinal(), [2.0, 2.0], "single value"),
        (NegativeBinomial(1.0), [-1.0, 2.0], "negative value -1"),
        (nmd.losses.ItakuraSaito(), [0.0, 2.0], "value 0"),
        (nmd.losses.SquaredLog(), [-2.0, 2.0], "value -2"),
    ],
)
def test_data_that_a_loss_does_not_define(loss, x, named):
    model = {"nonlinearity": "identity", "loss": loss}
    check_all_refused([
        (named, prox, {"x": x} | model),
        (named, lambda X: nmd.decompose(X, 1, **model), np.tile(x, (3, 2))),
    ])  # fmt: skip


@pytest.mark.exhaustive
def test_other_kinds_of_objects():
    check, decompose = nmd.losses.check_loss, lambda of: nmd.decompose(np.eye(3), 1, **of)
    check_all_refused([
        (r"loss=L1 is a class: give L1\(\)", decompose, {"loss": nmd.L1}),
        ("loss is the function abs: give an object of a subclass of nmd.losses.Loss",
         decompose, {"loss": abs}),
        (r"nonlinearity is the function tanh: give nmd.nonlinearities.Smooth\(f\)",
         decompose, {"nonlinearity": np.tanh}),
        ("nonlinearity=ReLU is a class", decompose, {"nonlinearity": nmd.ReLU}),
        ("is not a Loss object", check, "l1"),
        ("is not a Nonlinearity object", nmd.nonlinearities.check_nonlinearity, np.tanh),
    ])  # fmt: skip
