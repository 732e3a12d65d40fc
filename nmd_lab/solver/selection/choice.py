"""The choice of the settings of a fit by held-out entries, as a fit calls it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nmd_lab.data.base import Observations
from nmd_lab.data.sparse_observations import SparseObservations
from nmd_lab.model.losses import Frobenius
from nmd_lab.model.proximal import LimitModel
from nmd_lab.solver.initialization import Start
from nmd_lab.solver.options import Options
from nmd_lab.solver.stopping import Ending

from .candidates import suitable_losses, suitable_nonlinearities
from .folds import Fold, draw_folds
from .search import Search
from .setting import Setting, Trial
from .space import Model, Space
from .trials import Trials

SHARE_OF_TIME = 0.5  # share of a time limit that the trials may take; the fit has the rest
NOISY = 1e-3  # held-out error, over the largest |x|, from which the fit ends like its trial
FEWEST = 8  # least number of iterations of such a fit


@dataclass(frozen=True)
class Choice:
    """The chosen setting.

    Attributes
    ----------
    setting : Setting
        Values of the options.
    start : Start or None
        Factors from which the fit to all entries begins; None if it begins as any fit.
    refined : bool
        Whether the iterates are to be refined.
    ending : Ending
        How the fit ends.
    time_limit : float or None
        Time limit that was given; the fit has what the trials have left of it.
    record : dict
        What `Decomposition.selection` tells.
    limits : LimitModel
        What is known of entries with limits; sd = NaN if it is to be estimated.
    """

    setting: Setting
    start: Start | None
    refined: bool
    ending: Ending
    time_limit: float | None
    record: dict[str, Any]
    limits: LimitModel

    def settle(self, options: Options, seconds: float) -> Options:
        """Return the options of the fit with the chosen values."""
        alpha, kind, offset_alpha = self.setting[3:]
        limit = options.time_limit
        left = None if limit is None else max(limit - seconds, 0.0)
        settled = replace(
            options, alpha=alpha, offsets=kind, offset_alpha=offset_alpha, time_limit=left
        )
        if self.refined:
            return settled
        plain = replace(settled.solver, refine=False, homotopy=False, polish=False)
        return replace(settled, solver=plain)


def choose(
    observations: Observations,
    held_out: SparseObservations | None,
    model: Model,
    options: Options,
    rng: np.random.Generator,
    limits: LimitModel,
    outcomes: list[dict[str, Any]],
    *,
    interrupted: Callable[[], bool],
    after: Callable[[], None],
) -> Choice:
    """Return the setting of lowest error at held-out entries.

    `outcomes` has what came out of the first trials, if they are done, and gets that of the others.
    """
    if held_out is None:
        folds, drawn = draw_folds(observations, rng)
    else:
        folds, drawn = [Fold(observations, held_out)], "given"
    low, high = observations.range()
    limit = np.inf if options.time_limit is None else options.time_limit
    deadline = time.perf_counter() + SHARE_OF_TIME * limit
    trials = Trials(
        folds or [Fold(observations, observations.as_sparse())],
        options,
        max(-low, high),
        rng,
        lambda: interrupted() or time.perf_counter() > deadline,
        after=after,
        limits=limits,
        outcomes=outcomes,
    )
    space = _space(observations, model, options)
    search = Search(trials, space)
    if not folds:
        record = _record(trials, None, drawn, space)
        return Choice(search.guess(), None, True, Ending(), options.time_limit, record, limits)
    chosen = search.run()
    record = _record(trials, chosen, drawn, space)
    start = None if chosen.cold and not trials.stopped() else chosen.starts[0]
    ending = _ending(chosen, trials, options)
    limits, time_limit = trials.limits, options.time_limit
    return Choice(chosen.setting, start, chosen.refined, ending, time_limit, record, limits)


def _ending(chosen: Trial, trials: Trials, options: Options) -> Ending:
    """Return how the fit ends: as the trial did, unless there is hardly any noise."""
    size = (NOISY * trials.size) ** (chosen.setting.loss.degree or 1)
    if chosen.refined or options.tol == 0:
        return Ending(last=not chosen.refined)
    if chosen.mean < size:
        return Ending()
    iterations = round(chosen.n_iter / len(trials.folds))
    return Ending(max(FEWEST, iterations), last=True)


def _space(observations: Observations, model: Model, options: Options) -> Space:
    """Return what is to be chosen."""
    free = options.alpha == "auto"
    f, loss, rank = model
    candidates = suitable_nonlinearities(observations) if f is None else [f]
    offsets: str | None = options.offsets
    if offsets == "auto":
        offsets = "none" if candidates[0].even or not free else None
    offset_alpha: Any = options.offset_alpha
    if offset_alpha == "auto":
        offset_alpha = None if free else options.alpha
    return Space(
        nonlinearities=candidates,
        losses=suitable_losses(observations) if loss is None else [loss],
        rank=rank,
        largest_rank=min(observations.shape),
        alpha=None if free else float(options.alpha),
        offsets=offsets,
        offset_alpha=offset_alpha,
    )


def _record(trials: Trials, chosen: Trial | None, drawn: str, space: Space) -> dict[str, Any]:
    """Return what `Decomposition.selection` tells."""
    names = {
        "nonlinearity": len(space.nonlinearities) > 1,
        "loss": len(space.losses) > 1,
        "rank": space.rank is None,
        "alpha": space.alpha is None,
        "offsets": space.offsets is None,
        "offset_alpha": space.offset_alpha is None,
    }
    loss = space.losses[0] if chosen is None else chosen.setting.loss
    comparable = [trial for trial in trials.done if trial.setting.loss == loss]
    best = min(comparable, key=lambda trial: trial.mean, default=None)
    smaller = best is not None and chosen is not None and best is not chosen
    if chosen is None:
        reason = "no entry could be held out, so there are offsets alone"
    elif trials.stopped():
        reason = "the lowest held-out error when the search was stopped"
    elif smaller:
        reason = "the fewest components whose held-out error is not clearly above the lowest"
    else:
        reason = "the lowest held-out error"
    return {
        "trials": [trial.row(best) for trial in trials.done] if best is not None else [],
        "chosen": -1 if chosen is None else trials.done.index(chosen),
        "reason": reason,
        "measure": "root mean squared error" if isinstance(loss, Frobenius) else "mean loss",
        "held_out": {
            "entries": sum(fold.held_out.n_observed for fold in trials.folds) if chosen else 0,
            "parts": len(trials.folds) if chosen else 0,
            "drawn": drawn,
        },
        "options": [name for name, free in names.items() if free],
    }
