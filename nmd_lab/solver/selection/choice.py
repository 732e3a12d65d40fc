"""The choice of the settings of a fit by held-out entries, as a fit calls it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab._runtime.progress import Interruption
from nmd_lab.data.observations import Observations
from nmd_lab.solver.options import Options
from nmd_lab.solver.request import DataSummary

from .folds import Fold, check_counts, has_zeros, sample_of_rows, thinned
from .record import Stage, record_of, shown_duration
from .search import RankSearch, Search, ridge_from_cold_starts
from .space import Setting, Space, suitable_losses, suitable_nonlinearities
from .trial import Trial
from .trials import ThinnedTrials, Trials


def choose(
    known: DataSummary,
    options: Options,
    rng: np.random.Generator,
    *,
    began: float,
    signals: Interruption,
) -> tuple[Options, DataSummary]:
    """Return the options of lowest error at held-out entries, and what the trials found.

    The time limit counts from `began`.
    """
    m, space = known.observations.shape[0], _space(known, options)
    if has_zeros(known.observations):
        check_counts(known.observations, known.model, options.validation.metric)
    # half of a time limit, since the fit has the rest
    limit = 0.5 * (np.inf if options.time_limit is None else options.time_limit)
    deadline = time.perf_counter() + limit

    def stopped() -> bool:
        return bool(signals) or time.perf_counter() > deadline

    with shown_duration(options.progress, space.rank is not None, limit) as show:

        def after(trial: Trial) -> None:
            signals.begin()
            show(trial)

        stages = _stages(known, options, space, rng, stopped, after)
    last = stages[-1]
    setting, chosen = last.setting, last.chosen
    ends = chosen is not None and last.shape[0] == m and (stopped() or not chosen.is_cold)
    found = known._replace(
        model=known.model_with(setting.nonlinearity, setting.loss),
        limits=known.limits if chosen is None else last.search.trials.limits,
        start=chosen.starts[0] if chosen is not None and ends else None,
        selection=record_of(stages, m),
        spent=time.perf_counter() - began,
    )
    return _settled(options, setting, chosen, last.growth(m)), found


def _stages(
    known: DataSummary,
    options: Options,
    space: Space,
    rng: np.random.Generator,
    stopped: Callable[[], bool],
    after: Callable[[Trial], None],
) -> list[Stage]:
    """Return a search with some rows of large data, and one with all of them, or this one alone.

    The second one tries ridges around that of the first, since the best one depends on the number
    of rows.
    """
    rest, is_bounded = known.observations, _is_bounded(known, options)
    of_trials = known, options, rng, stopped, after
    if has_zeros(rest):
        folds = thinned(rest, rng)
        ranks = RankSearch(ThinnedTrials(folds or _whole(rest), *of_trials), space)
        return [Stage(ranks, ranks.run() if folds else None, "by thinning")]
    some, m = rest, rest.shape[0]
    if space.alpha_candidates is None and known.folds is None:
        some = sample_of_rows(some, rng, has_classes=is_bounded)
    folds, drawn = known._replace(observations=some).folds_for_trials(rng)
    search = Search(Trials(folds or _whole(some), *of_trials), space)
    first = Stage(search, search.run() if folds else None, drawn)
    chosen = first.chosen
    has_ridge = chosen is not None and chosen.kind != "offsets_alone"
    if some.shape[0] == m or is_bounded or not has_ridge or search.trials.stopped():
        return [first]
    assert chosen is not None
    folds, drawn = known.folds_for_trials(rng)
    search = Search(Trials(folds or _whole(rest), *of_trials), space)
    setting = chosen.setting._replace(alpha=first.growth(m) * chosen.setting.alpha)
    kind: Any = "ridge_path" if chosen.kind == "ridge_path" else "cold_start"
    return [first, Stage(search, ridge_from_cold_starts(search, setting, kind), drawn)]


def _whole(rest: Observations) -> list[Fold]:
    """Return a fold that holds out nothing, for data of which nothing can be."""
    return [Fold(rest, rest.as_sparse())]


def _settled(options: Options, setting: Setting, chosen: Trial | None, growth: float) -> Options:
    """Return the options of a fit with a setting; of a trial, one that begins and ends as it."""
    options = replace(
        options,
        rank=setting.rank,
        alpha=growth * setting.alpha,
        offsets=setting.offsets,
        offset_alpha=setting.offset_alpha,
        init="auto" if options.follows_path and setting.alpha == 0 else options.init,
    )
    if chosen is not None and not chosen.refined:
        plain = replace(options.solver, refine=False, homotopy=False, polish=False)
        options = replace(options, solver=plain)
    if chosen is None or chosen.ending is None:
        return options
    return replace(options, init="path", max_iter=chosen.ending, tol=0)


def _is_bounded(known: DataSummary, options: Options) -> bool:
    """Return whether the rank is a bound: in a table with classes or levels, with a free ridge."""
    return options.alpha == "auto" and known.model.is_mixed and known.model.has_classes


def _space(known: DataSummary, options: Options) -> Space:
    """Return what is to be chosen."""
    free, bounded = options.alpha == "auto", _is_bounded(known, options)
    data, f, loss = known.observations, known.nonlinearity, known.loss
    offsets: str | None = options.offsets
    candidates = suitable_nonlinearities(data) if f is None else [f]
    if offsets == "auto":
        # where the rank is bounded, each column has a centre
        offsets = "none" if bounded or candidates[0].even or not free else None
    offset_alpha = options.offset_alpha
    if offset_alpha == "auto":
        offset_alpha = None if free else options.alpha
    largest, ranks, alphas = min(data.shape), options.validation.ranks, options.validation.alphas
    if known.rank is not None:
        ranks = (known.rank,)
    elif bounded and ranks is None:
        ranks = (min(largest, 64),)  # of which the ridge removes some components
    return Space(
        candidates,
        [loss] if loss is not None else suitable_losses(data),
        largest,
        None if ranks is None else tuple(ranks),
        (float(options.alpha),) if not free else None if alphas is None else tuple(alphas),
        offsets,
        offset_alpha,
    )
