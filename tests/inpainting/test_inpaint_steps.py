"""What a filling tells of its progress, and that it can be ended after each block."""

import numpy as np
import pytest

from nmd_lab.inpainting import similar_patches as similar
from nmd_lab.inpainting.inpaint import Plan, default_grid, fill_by_groups

PIXELS = np.add.outer(np.sin(np.arange(60) / 5), np.cos(np.arange(50) / 7))
PIXELS = np.where(np.random.default_rng(0).random(PIXELS.shape) < 0.2, np.nan, PIXELS)


class Ended(Exception):
    """What ends a filling."""


def fill(tell):
    grid = default_grid(PIXELS, "complete")
    return fill_by_groups(PIXELS, grid, Plan(2, 1, tell=tell), np.random.default_rng(0))


def test_each_block_is_told_of_and_an_error_ends_the_filling_there(monkeypatch):
    monkeypatch.setattr(similar, "N_CORNERS", 20)
    parts = []
    fill(lambda part, _: parts.append(part))
    assert parts == sorted(parts)
    assert parts[0] == 0
    assert parts[-1] < 1
    blocks = len(default_grid(PIXELS, "complete").corners) / 20
    assert len(parts) > 2 * blocks  # of the pass, and of the one with all that is seen
    for most in (1, 3, len(parts) // 2, len(parts)):
        heard = []

        def tell(part, _, heard=heard, most=most):
            heard.append(part)
            if len(heard) == most:
                raise Ended

        with pytest.raises(Ended):
            fill(tell)
        assert heard == parts[:most]
