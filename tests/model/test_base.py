"""Labels, noise and linearity of losses and nonlinearities."""

import pytest

import nmd_lab as nmd
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.nonlinearities import NONLINEARITIES


def test_each_part_of_the_package_has_a_label_of_its_own():
    for table in (LOSSES, NONLINEARITIES):
        assert len({cls.label for cls in table.values()}) == len(table)
        assert all("label" in vars(cls) for cls in table.values())


@pytest.mark.parametrize("f", [name for name in NONLINEARITIES if name != "monotone"])  # learned
def test_only_a_linear_map_says_that_it_is_linear(f):
    f = NONLINEARITIES[f]()
    assert f.linear == (f(-2.0) == -2 * f(1.0) and f(5.0) == 5 * f(1.0))


def test_the_noise_of_each_loss():
    noise = {name: cls.noise for name, cls in LOSSES.items()}
    papers = {name: noise[name] for name in ("frobenius", "l1", "kl")}
    assert papers == {"frobenius": "Gaussian", "l1": "Laplace", "kl": "Poisson"}
    assert all(noise.values())


def test_classes_of_the_users_own_have_defaults():
    class Own(nmd.losses.Loss):
        name = "own"

    class Bent(nmd.nonlinearities.Nonlinearity):
        name = "bent"

    class Robust(nmd.L1):
        """A loss that inherits everything."""

    assert (Own.label, Own.noise) == ("own", "")
    assert (Bent.label, Bent.linear) == ("bent", False)
    assert (Robust.label, Robust.noise) == ("L1", "Laplace")
