"""What a problem asks of its loss."""

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.data.inputs import observe
from nmd_lab.data.observations import BLOCK
from nmd_lab.model.model import make_model
from nmd_lab.problem.problem import Problem

X = np.random.default_rng(0).random((3, BLOCK)) + 0.5
X[1, ::7] = np.nan


class Cubic(nmd.losses.Loss):
    """A loss of the user's own, whose reference is a sum."""

    name = "cubic"
    reference_is_sum = True

    def reference(self, x, weights):
        sizes.append(x.size)
        return float(np.sum(weights * np.abs(x) ** 3))


class Largest(nmd.L1):
    """A loss whose reference is no sum, though that of its base is one."""

    def reference(self, x, weights):
        sizes.append(x.size)
        return float(np.max(weights * np.abs(x)))


sizes: list[int] = []
"""How many entries each call got."""


def reference_for(loss):
    return Problem(observe(X), make_model("identity", loss)).reference


@pytest.mark.parametrize(
    ("loss", "expected"), [(Cubic(), np.nansum(X**3)), (Largest(), np.nanmax(X))]
)
def test_only_a_sum_gets_the_entries_in_blocks(loss, expected):
    sizes.clear()
    assert reference_for(loss) == pytest.approx(expected, rel=1e-12)
    assert sum(sizes) == np.count_nonzero(~np.isnan(X))
    assert (max(sizes) <= BLOCK) == loss.reference_is_sum


def test_a_subclass_without_a_reference_of_its_own_inherits_the_claim():
    class Same(nmd.Frobenius):
        """Nothing of its own."""

    assert Same.reference_is_sum
    assert not nmd.KL.reference_is_sum
    assert reference_for(Same()) == reference_for(nmd.Frobenius())
