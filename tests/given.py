"""Models and prepared fits as the tests get them."""

from typing import Any

from nmd_lab import ADMM, MinMax
from nmd_lab.api.fits import prepare as prepared
from nmd_lab.data.inputs import form_of
from nmd_lab.fit.summary import Decided
from nmd_lab.request.options import Options

PLAIN = ADMM(refine=False, homotopy=False, polish=False)
"""Algorithm 1 alone."""
NONNEGATIVE = {"w_constraint": "nonnegative", "h_constraint": "nonnegative"}


def given(f: str) -> str | MinMax:
    """Return a nonlinearity by its name, but MinMax with the bounds 0 and 1, whatever the data."""
    return MinMax(0, 1) if f == "minmax" else f


def prepare(X: Any, rank: Any, nonlinearity: Any, loss: Any, **options: Any) -> Decided:
    """Return a fit that is ready to be solved."""
    asked = Options(rank=rank, nonlinearity=nonlinearity, loss=loss, **options)
    return prepared(X, form_of(X), asked)
