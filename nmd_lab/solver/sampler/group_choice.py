"""Whether groups of rows predict better than none: two short chains, and cells hidden from both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nmd_lab._runtime.progress import Interruption
from nmd_lab.data.observations import Observations
from nmd_lab.data.split import some_rows, split
from nmd_lab.solver.loop import nothing

from .chain import Chain
from .options import SampleOptions
from .prepare import PreparedSample
from .run import Chains, PosteriorState
from .start import first_chain
from .state import ChainState
from .targets import Targets

SHARE = 0.1
"""Share of the observed cells that are hidden from both chains."""

TUNE, DRAWS = 40, 40
"""Sweeps of each chain before those whose predictions are averaged, and number of these."""

ROWS, CELLS = 400, 40_000
"""Number of rows of the chains at most: as many as hold these cells, but at least these rows."""

SHARE_OF_TIME = 0.1
"""Share of a time limit that each chain may take."""


def choose_groups(
    prepared: PreparedSample,
    options: SampleOptions,
    rng: np.random.Generator,
    interruption: Interruption,
) -> PreparedSample:
    """Return a problem without its groups if hidden cells are predicted worse with them.

    Worse are larger squared errors, by more than their standard error over the hidden cells.
    """
    problem = prepared.problem
    if options.groups != "auto" or problem.n_groups == 1:
        return prepared
    most = max(ROWS, CELLS // problem.shape[1])
    observed, hidden = split(some_rows(prepared.observations, most, rng), SHARE, rng)
    short = replace(options, tune=TUNE, draws=DRAWS, chains=1, keep=1)
    short = replace(short, init="auto", targets=None, callback=None, progress=False)
    if options.time_limit is not None:
        short = replace(short, time_limit=SHARE_OF_TIME * options.time_limit)
    seed = int(rng.integers(2**62))
    trial = prepared.of_entries(observed, short)
    without, within = (
        _errors(trial.with_groups(groups), hidden, seed, short, interruption)
        for groups in (1, problem.n_groups)
    )
    worse = within - without
    hurts = worse.sum() > worse.std() * np.sqrt(worse.size)
    return prepared.with_groups(1) if hurts else prepared


def _errors(
    prepared: PreparedSample,
    hidden: Observations,
    seed: int,
    options: SampleOptions,
    interruption: Interruption,
) -> NDArray[np.float64]:
    """Return the squared error at each hidden entry, in units of the variance of its column."""
    problem, engine = prepared.problem, Chain(prepared.work)
    rows, columns, x = prepared.scaling.scaled_observations(hidden).entries()
    targets = Targets(rows.astype(np.intp), columns.astype(np.intp))

    def begin(_: int) -> ChainState:
        rng = np.random.default_rng(seed)
        return first_chain(prepared, engine, options.init, options.tune or 0, rng)

    state = PosteriorState(np.random.default_rng(seed))
    Chains(problem, engine, begin, options, targets, state).run(interruption, nothing)
    errors: NDArray[np.float64] = np.square(
        (targets.now.mean - x) / problem.prior.spreads_of_X[columns]
    )
    return errors
