"""Parameter sets of which `make test` runs the first ones, and `make test-all` all."""

from collections.abc import Sequence
from typing import Any

import pytest


def some(sets: Sequence[Any], count: int) -> list[Any]:
    """Return the parameter sets of a test, those after the first `count` marked exhaustive."""
    rest = [each if isinstance(each, tuple) else (each,) for each in sets[count:]]
    return [*sets[:count], *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in rest)]
