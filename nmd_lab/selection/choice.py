"""The choice of the settings of a fit by held-out entries, as a fit calls it, and its record.

The record has the trials, the reason of the choice, and notes on it.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab._runtime.checks import many
from nmd_lab._runtime.progress import Interruption, progress_bar
from nmd_lab.data.folds import Fold, n_held_out, sample_of_rows
from nmd_lab.data.observations import Observations
from nmd_lab.fit.held_out import check_counts
from nmd_lab.fit.summary import DataSummary
from nmd_lab.request.options import Options, Setting, Space, suitable_functions, suitable_losses

from .progress import Trial
from .search import Search
from .trials import Trials


def record_of(stages: list[Search], m: int) -> dict[str, Any]:
    """Return what `Decomposition.selection` tells, with ridges for all m rows."""
    last, space = stages[-1], stages[0].space
    trials, chosen = last.trials, last.chosen
    models = {"nonlinearity": space.nonlinearities, "loss": space.losses}
    names = [name for name, several in models.items() if len(several) > 1]
    numbers = ("rank", "alpha", "offsets", "offset_alpha")
    names += [name for name in numbers if getattr(space, name) is None]
    plain = [t for t in trials.done if t.kind == "offsets_alone" and math.isfinite(t.mean)]
    alone = [t.row(t)["error"] for t in plain if chosen is not None and t.is_comparable(chosen)]
    if chosen is None:
        reason = "no entry could be held out, so there are offsets alone"
    elif trials.stopped():
        reason = "the lowest held-out error when the search was stopped"
    elif chosen.is_cold and not all(trial.is_cold for trial in trials.done):
        reason = "the lowest held-out error from a fresh start"
    elif last.best is not chosen:
        reason = "the fewest components whose held-out error is not clearly above the lowest"
    else:
        reason = "the lowest held-out error"
    before = [row | {"spread": math.nan} for stage in stages[:-1] for row in stage.rows(m)]
    rows = before + last.rows(m)  # errors of several stages are at different entries
    return {
        "trials": rows,
        "chosen": -1 if chosen is None else len(before) + trials.done.index(chosen),
        "reason": reason,
        "measure": "" if chosen is None else chosen.measure,
        "held_out": {
            "entries": n_held_out(trials.folds) if chosen else 0,
            "parts": len(trials.folds) if chosen else 0,
            "drawn": last.drawn,
        },
        **({"offsets_alone": min(alone)} if alone else {}),
        "note": " ".join(_notes(stages, chosen, m)) if chosen else "",
        "options": names,
    }


def _notes(stages: list[Search], chosen: Trial, m: int) -> list[str]:
    """Return sentences on what a choice among m rows does not tell."""
    space, rank, notes = stages[0].space, chosen.setting.rank, []
    search, number = stages[-1], stages[0].shape[0]
    entries = n_held_out(search.trials.folds)
    if number < m:
        count = len(stages[0].trials.done)
        notes.append(
            f"The first {many(count, 'trial')} had {number} of the {m} rows; the others chose the "
            "ridge with all of them."
            if len(stages) > 1
            else f"The trials had {number} of the {m} rows, and their ridges are scaled to all."
        )
    if entries < 500:  # chance decides between settings that are nearly as good
        notes.append(
            f"Only {many(entries, 'entry')} could be held out: errors that differ by some "
            "per cent are not significant, and another seed may choose another rank or ridge."
        )
    if space.rank is None and max(space.ranks) <= rank < space.largest_rank:
        notes.append(
            f"Rank {rank} is the largest that is tried: more components may predict better, so "
            "give a larger rank to see."
        )
    if search.not_repeated is not None:
        best, cold = search.not_repeated
        notes.append(
            f"The best trial had the error {best.error:.4g}, but from a fresh start its setting "
            f"had {cold.error:.4g}: the error depends on where a fit begins, and a setting was "
            "taken for its error from a fresh start."
        )
    return notes


N_FULL_ITERATIONS = 1000  # iterations of a choice that take as long as those of its first trials
MIN_SECONDS_TOLD = 10.0  # seconds from which a person is told before


@contextmanager
def shown_duration(
    progress: bool | None, is_ridge_alone: bool, at_most: float
) -> Iterator[Callable[[Trial], None]]:
    """Give a function that shows one more trial: in a bar, as a fit shows one of iterations.

    A choice that takes long is announced, in the bar or by a sentence where there is none.  The
    quickest of three trials tells how long, since code may have been compiled in the first one, and
    other programs may have had the processor.  A time limit ends a choice after `at_most` seconds.
    """
    work = N_FULL_ITERATIONS / 2 if is_ridge_alone else N_FULL_ITERATIONS
    rates, text = list[float](), ""
    with progress_bar(None, progress, unit="trial") as show:

        def after(trial: Trial) -> None:
            nonlocal text
            if is_fit := trial.kind != "offsets_alone":
                rates.append(trial.seconds / max(trial.n_iter, 1))
            seconds = min(work * min(rates, default=0.0), at_most)
            if len(rates) == 3 and is_fit and seconds >= MIN_SECONDS_TOLD:
                text = f"about {in_words(seconds)} in all"
                if progress is None and not sys.stderr.isatty():
                    print(
                        f"The choice of settings takes about {in_words(seconds)}; time_limit= ends "
                        "it sooner, and with rank= or alpha= there is less to choose.",
                        file=sys.stderr,
                    )
            show(text)

        yield after


def in_words(seconds: float) -> str:
    """Return a duration in words.

    >>> in_words(14.2), in_words(140), in_words(8000)
    ('14 s', '2 min', '2.2 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


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
    if known.observations.absent_are_zeros:
        check_counts(known.observations.as_sparse(), known.model, options.validation.metric)
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
    chosen = last.chosen
    setting = last.first if chosen is None else chosen.setting
    ends = chosen is not None and last.shape[0] == m and (stopped() or not chosen.is_cold)
    found = known._replace(
        model=known.model_with(setting.nonlinearity, setting.loss),
        limits=known.limits if chosen is None else last.trials.limits,
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
) -> list[Search]:
    """Return a search with some rows of large data, and one with all of them, or this one alone.

    The second one tries ridges around that of the first, since the best one depends on the number
    of rows.
    """

    def begin(data: Observations) -> tuple[Search, bool]:
        folds, drawn = known._replace(observations=data).folds_for_trials(rng)
        # With nothing held out, where nothing can be
        held = folds or [Fold(data, data.as_sparse())]
        return Search(Trials(held, known, options, rng, stopped, after), space, drawn), bool(folds)

    rest, is_bounded = known.observations, _is_bounded(known, options)
    some, m = rest, rest.shape[0]
    if space.alpha_candidates is None and known.folds is None:
        some = sample_of_rows(some, rng, has_classes=is_bounded)
    first, has_folds = begin(some)
    first.chosen = chosen = first.run() if has_folds else None
    is_last = some.shape[0] == m or is_bounded or first.stopped()
    if is_last or chosen is None or chosen.kind == "offsets_alone":
        return [first]
    last, _ = begin(rest)
    setting = chosen.setting._replace(alpha=first.growth(m) * chosen.setting.alpha)
    kind: Any = "ridge_path" if chosen.kind == "ridge_path" else "cold_start"
    last.chosen = last.from_cold_start(setting, kind)
    return [first, last]


def _settled(options: Options, setting: Setting, chosen: Trial | None, growth: float) -> Options:
    """Return the options of a fit with a setting; of a trial, one that begins and ends as it."""
    refined = options.alpha != "auto"
    options = replace(
        options,
        rank=setting.rank,
        alpha=growth * setting.alpha,
        offsets=setting.offsets,
        offset_alpha=setting.offset_alpha,
        init="auto" if options.follows_path and setting.alpha == 0 else options.init,
    )
    if chosen is not None and not refined:
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
    candidates = suitable_functions(data) if f is None else [f]
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
