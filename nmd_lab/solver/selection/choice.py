"""The choice of the settings of a fit by held-out entries, as a fit calls it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nmd_lab._interruption import Interruption
from nmd_lab.data.base import Observations
from nmd_lab.model.model import make_model
from nmd_lab.solver.facts import Facts
from nmd_lab.solver.holding_out import HeldOutData
from nmd_lab.solver.options import Options
from nmd_lab.solver.spec import Spec

from .candidates import suitable_losses, suitable_nonlinearities
from .duration import shown_duration
from .folds import Fold, n_held_out
from .row_sample import ridge_growth, sample_of_rows
from .search import Search
from .setting import Setting, Trial
from .space import Space
from .thinning import RankSearch, ThinnedTrials, has_zeros, thinned
from .trials import Trials

SHARE_OF_TIME = 0.5  # share of a time limit that the trials may take; the fit has the rest
MOST_OF_TABLE = 64  # components of a table with classes or levels, whose ridge removes some
FEW = 500  # held-out entries below which luck decides between settings that are nearly as good


def choose(
    data: HeldOutData,
    facts: Facts,
    options: Options,
    rng: np.random.Generator,
    outcomes: list[dict[str, Any]],
    *,
    began: float,
    signals: Interruption,
    save: Callable[[], None],
) -> Spec:
    """Return the specification of lowest error at held-out entries.

    `outcomes` has what came out of the first trials, if they are done, and gets that of the others.
    The time limit counts from `began`.
    """
    observations, bounded = data.rest, _is_bounded(facts, options)
    low, high = observations.range()
    if bounded and data.folds is None and options.validation.alphas is None:
        data = data._replace(rest=sample_of_rows(observations, rng))
    if zeros := has_zeros(observations):
        folds, drawn = thinned(observations, facts, options, rng), "by thinning"
    else:
        folds, drawn = data.folds_for_trials(rng)
    limit = SHARE_OF_TIME * (np.inf if options.time_limit is None else options.time_limit)
    deadline = time.perf_counter() + limit
    space = _space(observations, facts, options)
    with shown_duration(options.progress, space.rank is not None, limit) as duration:

        def after() -> None:
            signals.begin()
            save()
            duration.show()

        trials = (ThinnedTrials if zeros else Trials)(
            folds or [Fold(data.rest, data.rest.as_sparse())],
            options,
            max(-low, high),
            rng,
            lambda: bool(signals) or time.perf_counter() + trials.repeated > deadline,
            after=after,
            foresee=duration.foresee,
            limits=facts.limits,
            kinds=facts.kinds,
            outcomes=outcomes,
        )
        search = (RankSearch if zeros else Search)(trials, space)
        chosen = search.run() if folds else None
    setting = search.guess() if chosen is None else chosen.setting
    found: dict[str, Any] = {"limits": trials.limits if folds else facts.limits}
    all_rows = data.rest.shape == observations.shape
    if chosen is not None and all_rows and not (chosen.cold and not trials.stopped()):
        found["start"] = chosen.starts[0]
    model = facts.kinds or make_model(setting.nonlinearity, setting.loss)
    growth = ridge_growth(observations.shape, data.rest.shape[0])
    return Spec(
        **vars(_settled(options, setting, chosen, growth)),
        model=model.with_limits(found["limits"]),
        rank=setting.rank,
        **found,
        selection=_record(search, chosen, drawn, observations.shape),
        spent=time.perf_counter() - began + trials.repeated,
    )


def _settled(options: Options, setting: Setting, chosen: Trial | None, growth: float) -> Options:
    """Return the options of a fit with a setting; of a trial, one that begins and ends as it."""
    options = replace(
        options,
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


def _is_bounded(facts: Facts, options: Options) -> bool:
    """Return whether the rank is a bound: in a table with classes or levels, with a free ridge."""
    return options.alpha == "auto" and facts.kinds is not None and facts.kinds.has_classes


def _space(observations: Observations, facts: Facts, options: Options) -> Space:
    """Return what is to be chosen."""
    free, bounded = options.alpha == "auto", _is_bounded(facts, options)
    f, loss = facts.nonlinearity, facts.loss
    candidates = suitable_nonlinearities(observations) if f is None else [f]
    offsets: str | None = options.offsets
    if offsets == "auto":
        # where the rank is bounded, each column has a centre
        offsets = "none" if bounded or candidates[0].even or not free else None
    offset_alpha: Any = options.offset_alpha
    if offset_alpha == "auto":
        offset_alpha = None if free else options.alpha
    ranks, alphas = options.validation.ranks, options.validation.alphas
    rank, alpha = facts.rank, None if free else float(options.alpha)
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


def _record(
    search: Search | RankSearch, chosen: Trial | None, drawn: str, shape: tuple[int, int]
) -> dict[str, Any]:
    """Return what `Decomposition.selection` tells, with ridges for all rows."""
    trials, space = search.trials, search.space
    models = {"nonlinearity": space.nonlinearities, "loss": space.losses}
    names = [name for name, several in models.items() if len(several) > 1]
    numbers = ("rank", "alpha", "offsets", "offset_alpha")
    names += [name for name in numbers if getattr(space, name) is None]
    comparable = [t for t in trials.done if chosen is not None and t.is_comparable(chosen)]
    best = min(comparable, key=lambda trial: trial.mean, default=None)
    alone = [t.row(t)["error"] for t in comparable if t.offsets_alone and math.isfinite(t.mean)]
    smaller = best is not None and chosen is not None and best is not chosen
    if chosen is None:
        reason = "no entry could be held out, so there are offsets alone"
    elif trials.stopped():
        reason = "the lowest held-out error when the search was stopped"
    elif chosen.cold and not all(trial.cold for trial in trials.done):
        reason = "the lowest held-out error from a fresh start"
    elif smaller:
        reason = "the fewest components whose held-out error is not clearly above the lowest"
    else:
        reason = "the lowest held-out error"
    rows = [] if best is None else [trial.row(best) for trial in trials.done]
    for row in rows:
        row["alpha"] *= ridge_growth(shape, trials.folds[0].rest.shape[0])
    return {
        "trials": rows,
        "chosen": -1 if chosen is None else trials.done.index(chosen),
        "reason": reason,
        "measure": "" if chosen is None else chosen.measure,
        "held_out": {
            "entries": n_held_out(trials.folds) if chosen else 0,
            "parts": len(trials.folds) if chosen else 0,
            "drawn": drawn,
        },
        **({"offsets_alone": min(alone)} if alone else {}),
        "note": " ".join(_notes(search, chosen, shape[0])) if chosen else "",
        "options": names,
    }


def _notes(search: Search | RankSearch, chosen: Trial, m: int) -> list[str]:
    """Return sentences on what a choice among m rows does not tell."""
    space, rank, notes = search.space, chosen.setting.rank, []
    folds = search.trials.folds
    entries, number = n_held_out(folds), folds[0].rest.shape[0]
    if number < m:
        notes.append(
            f"The trials had {number} of the {m} rows, and their ridges are scaled to all of them."
        )
    if entries < FEW:
        notes.append(
            f"Only {entries} entries could be held out: errors that differ by some per cent cannot "
            "be told apart, and another seed may choose another rank or ridge."
        )
    if space.rank is None and max(space.ranks) <= rank < space.largest_rank:
        notes.append(
            f"Rank {rank} is the largest that is tried: more components may predict better, so "
            "give a larger rank to see."
        )
    if search.not_repeated is not None:
        best, fresh = search.not_repeated
        notes.append(
            f"The best trial had the error {best.error:.4g}, but from a fresh start its setting "
            f"had {fresh.error:.4g}: the error depends on where a fit begins, and a setting was "
            "taken for its error from a fresh start."
        )
    return notes
