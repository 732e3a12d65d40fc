"""`Smooth`: f from a function."""

import copy
import math
import pickle

import pytest

import nmd_lab as nmd


def softplus(t):
    return math.log1p(math.exp(-abs(t))) + max(t, 0.0)


def steep(a):
    return nmd.nonlinearities.Smooth(lambda t: math.tanh(a * t), name="steep")


def test_the_same_function_shares_code():
    assert nmd.nonlinearities.Smooth(softplus) == nmd.nonlinearities.Smooth(softplus)
    assert type(steep(1.0)) is type(steep(1.0))
    assert steep(1.0) != steep(2.0)
    assert float(steep(2.0)(1.0)) == pytest.approx(math.tanh(2))


def test_pickles_and_copies():
    f = nmd.nonlinearities.Smooth(softplus)
    assert pickle.loads(pickle.dumps(f)) == f
    assert copy.deepcopy(steep(1.0)) == steep(1.0)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(steep(1.0))
