"""A run that is written to a file from time to time, and resumes from there."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from nmd_lab.checkpoint.checkpoint import Checkpoint
from nmd_lab.checkpoint.encoding import Classes
from nmd_lab.data.observations import Observations

from .loop import nothing
from .options import Asked


class HasRng(Protocol):
    """State of a run: random numbers as they were before it, among others."""

    rng: np.random.Generator


S = TypeVar("S", bound=HasRng)


def state_and_save(
    before: S,
    rng: np.random.Generator,
    asked: Asked,
    observations: Observations,
    kinds: Sequence[Any],
) -> tuple[S, np.random.Generator, Callable[[], None]]:
    """Return where a run stands, its random numbers, and a function that writes it to a file.

    `before` is the state of a new run, whose random numbers are `rng`; `kinds` have the
    nonlinearities and losses, which may be of classes of the user.
    """
    compute = asked.compute
    if compute.checkpoint is None:
        return before, rng, nothing
    beside = observations.checkpoint_files(Path(compute.checkpoint))
    classes = Classes(
        (type(each) for kind in kinds for each in (kind.nonlinearity, kind.loss)),
        None if beside is None else beside.recipes,
    )
    checkpoint = Checkpoint(
        *(compute.checkpoint, compute.checkpoint_every, asked.call, observations.fingerprint()),
        *(classes, before, beside),
    )
    state = checkpoint.state
    return state, rng if state is before else copy.deepcopy(state.rng), checkpoint.tick
