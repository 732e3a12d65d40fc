"""The choice of the settings of a fit by held-out entries, as a fit calls it.

How long a choice takes: a bar of its trials, and a sentence before it if that is long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab._runtime.progress import Interruption, progress_bar
from nmd_lab.model.model import make_model
from nmd_lab.solver.known import Known
from nmd_lab.solver.options import Options

from .folds import sample_of_rows
from .setting import Setting, Space, Trial, suitable_losses, suitable_nonlinearities
from .stages import first_stage, record_of, with_all_rows
from .thinning import check_counts, has_zeros

SHARE_OF_TIME = 0.5  # share of a time limit that the trials may take; the fit has the rest
MOST_OF_TABLE = 64  # components of a table with classes or levels, whose ridge removes some


def choose(
    known: Known,
    options: Options,
    rng: np.random.Generator,
    *,
    began: float,
    signals: Interruption,
) -> tuple[Options, Known]:
    """Return the options of lowest error at held-out entries, and what the trials found.

    The time limit counts from `began`.
    """
    observations, space = known.observations, _space(known, options)
    if has_zeros(observations):
        check_counts(observations, known.model, options.validation.metric)
    is_bounded = _is_bounded(known, options)
    (low, high), few, m = observations.range(), observations, observations.shape[0]
    if space.alpha is None and space.given_alphas is None and known.folds is None:
        few = sample_of_rows(observations, rng, has_classes=is_bounded)
    limit = SHARE_OF_TIME * (np.inf if options.time_limit is None else options.time_limit)
    deadline = time.perf_counter() + limit
    with shown_duration(options.progress, space.rank is not None, limit) as show:

        def after(trial: Trial) -> None:
            signals.begin()
            show(trial)

        of_trials: dict[str, Any] = {
            "options": options,
            "size": max(-low, high),
            "stopped": lambda: bool(signals) or time.perf_counter() > deadline,
            "after": after,
            "limits": known.limits,
            "kinds": known.kinds,
        }
        stages = [first_stage(known._replace(observations=few), space, rng, **of_trials)]
        last = stages[-1]
        if last.n_rows < m and last.has_ridge and not is_bounded:
            last = with_all_rows(last, known, rng, **of_trials)
            stages.append(last)
    setting, chosen = last.setting, last.chosen
    starts = chosen is not None and last.n_rows == m and (last.trials.stopped() or not chosen.cold)
    found = known._replace(
        model=known.kinds or make_model(setting.nonlinearity, setting.loss),
        limits=known.limits if chosen is None else last.trials.limits,
        start=chosen.starts[0] if chosen is not None and starts else None,
        selection=record_of(stages, m),
        spent=time.perf_counter() - began,
    )
    return _settled(options, setting, chosen, last.growth(m)), found


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


def _is_bounded(known: Known, options: Options) -> bool:
    """Return whether the rank is a bound: in a table with classes or levels, with a free ridge."""
    return options.alpha == "auto" and known.kinds is not None and known.kinds.has_classes


def _space(known: Known, options: Options) -> Space:
    """Return what is to be chosen."""
    free, bounded = options.alpha == "auto", _is_bounded(known, options)
    observations, f, loss = known.observations, known.nonlinearity, known.loss
    candidates = suitable_nonlinearities(observations) if f is None else [f]
    offsets: str | None = options.offsets
    if offsets == "auto":
        # where the rank is bounded, each column has a centre
        offsets = "none" if bounded or candidates[0].even or not free else None
    offset_alpha: Any = options.offset_alpha
    if offset_alpha == "auto":
        offset_alpha = None if free else options.alpha
    ranks, alphas = options.validation.ranks, options.validation.alphas
    rank, alpha = known.rank, None if free else float(options.alpha)
    largest = min(observations.shape)
    if bounded and rank is None and ranks is None:
        rank = min(largest, MOST_OF_TABLE)
    return Space(
        nonlinearities=candidates,
        losses=suitable_losses(observations) if loss is None else [loss],
        rank=ranks[0] if ranks is not None and len(ranks) == 1 else rank,
        largest_rank=largest,
        alpha=alphas[0] if alphas is not None and len(alphas) == 1 else alpha,
        offsets=offsets,
        offset_alpha=offset_alpha,
        given_ranks=ranks,
        given_alphas=alphas,
    )


WORK = 1000  # iterations of a choice that take as long as those of its first trials
WORK_RIDGE = 500  # the same where only the ridge is chosen
LONG = 10.0  # seconds from which a person is told before


@contextmanager
def shown_duration(
    progress: bool | None, is_ridge_alone: bool, at_most: float
) -> Iterator[Callable[[Trial], None]]:
    """Give a function that shows one more trial: in a bar, as a fit shows one of iterations.

    A choice that takes long is announced, in the bar or by a sentence where there is none.  The
    second trial tells how long, since code may have been compiled in the first one.  A time limit
    ends a choice after `at_most` seconds.
    """
    work = WORK_RIDGE if is_ridge_alone else WORK
    count, text = 0, ""
    with progress_bar(None, progress, unit="trial") as show:

        def after(trial: Trial) -> None:
            nonlocal count, text
            count += not trial.offsets_alone
            seconds = min(work * trial.seconds / max(trial.n_iter, 1), at_most)
            if count == 2 and not trial.offsets_alone and seconds >= LONG:
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
    """Return a duration as it is said.

    >>> in_words(14.2), in_words(140), in_words(8000)
    ('14 s', '2 min', '2.2 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
