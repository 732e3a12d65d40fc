"""The options of `nmd_lab.sample`, with their types, defaults and checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

from nmd_lab._runtime.checks import (
    check_integer,
    check_number,
    check_seed,
    check_word,
)
from nmd_lab.solver.options import OFFSETS
from nmd_lab.solver.settings import as_compute

NOISES = ("auto", "before", "after")
NOISE_BY = ("auto", "columns", "rows", "one")

KEPT_BYTES = 1 << 30
"""Memory that the kept draws may take by default."""

FEWEST_KEPT = 20
"""Number of draws that are kept at least."""


@dataclass(frozen=True, kw_only=True)
class SampleOptions:
    """Checked options of a posterior; `nmd_lab.sample` documents them."""

    draws: int = 300
    tune: int | None = None
    chains: int = 1
    keep: int | None = None
    groups: int | str = "auto"
    noise: str = "auto"
    noise_by: str = "auto"
    offsets: str = "auto"
    init: Any = "auto"
    callback: Callable[..., Any] | None = None
    time_limit: float | None = None
    progress: bool | None = None
    random_state: Any = None
    compute: Any = None

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data."""
        for name in ("draws", "chains"):
            check_integer(name, getattr(self, name), 1)
        if self.groups != "auto":
            check_integer("groups", self.groups, 1)
        if self.tune is not None:
            check_integer("tune", self.tune, 0)
        if self.keep is not None:
            check_integer("keep", self.keep, 1)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, 0)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(
                f"callback={self.callback!r} is not callable: give a function of one sweep."
            )
        check_word("noise", self.noise, NOISES)
        check_word("noise_by", self.noise_by, NOISE_BY)
        check_word("offsets", self.offsets, OFFSETS)
        check_word("progress", self.progress, [None, True, False])
        if isinstance(self.init, str):
            check_word("init", self.init, ("auto", "random", "svd"), ", or a fit")
        check_seed(self.random_state)
        object.__setattr__(self, "compute", as_compute(self.compute))

    def step(self, numbers_a_draw: int) -> int:
        """Return the number of sweeps from one kept draw to the next."""
        keep = self.keep
        if keep is None:
            keep = max(FEWEST_KEPT, KEPT_BYTES // (4 * numbers_a_draw * self.chains))
        return -(-self.draws // min(keep, self.draws))

    def describe(self) -> dict[str, Any]:
        """Return the options as numbers and strings, for `Posterior.parameters`."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in ("callback", "progress", "compute"):
            del plain[name]
        if not isinstance(self.init, str):
            plain["init"] = f"given {type(self.init).__name__}"
        if not isinstance(self.random_state, Integral | None):
            plain["random_state"] = f"given {type(self.random_state).__name__}"
        return {name: v.item() if hasattr(v, "item") else v for name, v in plain.items()}
