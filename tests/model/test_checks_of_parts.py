"""`check_loss` and `check_nonlinearity` find what is wrong, and a fit refuses it."""

import math

import numpy as np
import pytest

import nmd_lab as nmd

pytestmark = pytest.mark.exhaustive


def loss_of(name, value, **methods):
    """Return a loss of the user's own with these functions."""
    functions = {"value": value, **methods}
    own = {"name": name.lower()} | {key: staticmethod(each) for key, each in functions.items()}
    return type(name, (nmd.losses.Loss,), own)()


FORGETS_RHO = {"proximal": lambda q, x, rho, p: 0.5 * (x + q)}
HALFWAY = loss_of("Halfway", lambda x, y, p: 0.5 * (x - y) ** 2, **FORGETS_RHO)
WRONG = {
    "the proximal map is the minimiser": HALFWAY,
    "d is bounded below, by 0 or by d(x, x)": loss_of("Below", lambda x, y, p: -((x - y) ** 2)),
    "d is no NaN": loss_of("Undefined", lambda x, y, p: math.log(y - x)),
}
NO_CODE = {
    r"signature '\(x, y\)'": loss_of("WithoutParameters", lambda x, y: (x - y) ** 2),
    "Cannot unify float64 and array": loss_of(
        "Arrays", lambda x, y, p: np.where(x > y, 2 * (x - y), y - x)
    ),
    "name 'dleta' is not defined": loss_of("Misspelt", lambda x, y, p: dleta * abs(x - y)),  # noqa: F821
}


def jump(t):
    return 1.0 if t > 0.3 else 0.0


def broken(report):
    return {failure.check for failure in report.failures}


OURS = [
    nmd.L1(), nmd.losses.Logistic(-1), nmd.losses.NegativeBinomial(0.5),
    nmd.losses.Ordinal([0, 1, 2], [-0.5, 0.7]), nmd.MinMax(0, 2), nmd.Square(),
    nmd.nonlinearities.Sigmoid(), nmd.nonlinearities.Power(1.5), nmd.nonlinearities.Wrap(),
]  # fmt: skip


@pytest.mark.parametrize("part", OURS, ids=repr)
def test_our_parts_pass(part):
    is_loss = isinstance(part, nmd.losses.Loss)
    check = nmd.losses.check_loss if is_loss else nmd.nonlinearities.check_nonlinearity
    report = check(part, n=60)
    assert report.passed, str(report)
    report.raise_for_failure()


@pytest.mark.parametrize("check", WRONG)
def test_a_wrong_loss_is_found_and_no_fit_begins(check, rng):
    loss = WRONG[check]
    report = nmd.losses.check_loss(loss, n=40)
    assert check in broken(report)
    assert check in str(report)
    assert check in report._repr_html_()
    with pytest.raises(ValueError, match=r"\w+\(\) fails the check that .* at \w+="):
        nmd.decompose(rng.random((8, 6)), 1, "identity", loss)


def test_a_fit_refuses_a_loss_that_claims_to_be_convex(rng):
    cauchy = loss_of("Cauchy", lambda x, y, p: math.log1p((x - y) ** 2))
    with pytest.raises(ValueError, match="d is convex in y, or has convex = False"):
        nmd.decompose(10 * rng.random((20, 10)), 1, "identity", cauchy)


@pytest.mark.parametrize("cause", NO_CODE)
def test_errors_of_the_compiler_say_cause_and_remedy(cause, rng):
    with pytest.raises(ValueError, match=cause) as caught:
        nmd.decompose(rng.random((8, 6)), 1, "identity", NO_CODE[cause])
    told = str(caught.value)
    assert "if and else take the place of np.where" in told
    assert "Failed in nopython" not in told
    assert len(told) < 500


def test_a_jump_is_found_and_no_fit_begins(rng):
    f = nmd.nonlinearities.Smooth(jump)
    report = nmd.nonlinearities.check_nonlinearity(f, loss=nmd.Frobenius(), n=40)
    assert "f is continuous" in broken(report)
    with pytest.raises(ValueError, match=r"Smooth\(jump\) fails the check that f is continuous"):
        nmd.decompose(rng.random((8, 6)), 1, f)


def test_a_wrong_derivative_is_found():
    f = nmd.nonlinearities.Smooth(math.tanh, lambda t: 1.0, name="tanh", compile=False)
    report = nmd.nonlinearities.check_nonlinearity(f, loss=nmd.L1(), n=20)
    assert "derivative is that of f" in broken(report)
