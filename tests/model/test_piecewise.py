"""Piecewise-linear nonlinearities: the general one equals those that it contains."""

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.model.column_model import named_model
from nmd_lab.nonlinearities import MinMax, PiecewiseLinear

T = np.array([-7.0, -1.0, -0.3, 0.0, 0.2, 1.0, 4.0, 1e6])
SAME = [
    (PiecewiseLinear([0], [0, 1]), nmd.ReLU()),
    (PiecewiseLinear([0], [-1, 1]), nmd.Modulus()),
    (PiecewiseLinear([0.2, 1.5], [0, 1, 0], at=(1, 1)), MinMax(0.2, 1.5)),
    (PiecewiseLinear([0], [0.01, 1]), nmd.nonlinearities.LeakyReLU()),
    (PiecewiseLinear([-0.5, 0.5], [1, 0, 1]), nmd.nonlinearities.SoftThreshold(0.5)),
    (PiecewiseLinear([0], [-1, 1], at=(0, 2)), nmd.nonlinearities.AbsoluteOffset(2)),
]


@pytest.mark.parametrize(("general", "special"), SAME, ids=lambda f: f.name)
def test_the_general_f_contains_the_special_ones(general, special):
    np.testing.assert_allclose(general(T), special(T), rtol=1e-14)


def test_scaled_data_have_the_same_f():
    f = PiecewiseLinear([-1, 2], [0.5, 2, 1], at=(1, 3))
    np.testing.assert_allclose(f.scaled(8.0)(T / 8), f(T) / 8, rtol=1e-13)


def test_a_text_names_a_model_with_lists():
    assert named_model("nonlinearity", "piecewise_linear([0], [0.1, 1])") == SAME[3][0].__class__(
        [0], [0.1, 1]
    )
    assert named_model("nonlinearity", "minmax(-inf, 2)") == MinMax(-np.inf, 2)
    assert named_model("loss", "ordinal([1, 2, 3])") == nmd.losses.Ordinal([1, 2, 3])
