"""Models of several kinds: when they are equal, and what is shown of them."""

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.model.column_model import make_column_model
from nmd_lab.model.model import Model, make_model

pytestmark = pytest.mark.exhaustive

PAIRS = ("identity", "frobenius"), ("relu", "kl"), ("identity", "l1"), ("exp", "frobenius")
KINDS = tuple(make_column_model(*pair) for pair in PAIRS)
MODEL = Model(KINDS, np.arange(4))


def test_equal_models_are_equal():
    same, other = (Model(kinds, np.arange(4)) for kinds in (KINDS, KINDS[::-1]))
    assert same == MODEL != other
    assert hash(MODEL) == hash(same)
    assert MODEL.shown == same.shown != other.shown
    assert make_model("relu", "l1") == make_model("relu", "l1") != make_model("relu", "kl")


def test_the_loss_of_a_column_is_shown_and_values_alone_do_not_tell_the_column():
    functions, losses = MODEL.shown
    assert [loss.name for loss in losses] == [loss for _, loss in PAIRS]
    assert functions[3] == nmd.nonlinearities.Exp()
    by_entry = Model(KINDS, np.tile(np.arange(4), (2, 1))).shown[1]
    assert by_entry[1, 2] == nmd.L1()
    with pytest.raises(IndexError, match="row, column"):
        by_entry[1]
    for shown in MODEL.shown:
        with pytest.raises(ValueError, match="one for each column"):
            shown(np.ones(2), np.ones(2))
