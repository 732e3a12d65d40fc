"""The stages of a choice: a search with some of the rows of large data, and one with all of them.

The second one tries ridges around that of the first, since the best one depends on the number of
rows.

The record of a choice: its trials, the reason of the choice, and notes on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmd_lab.data.observations import Observations
from nmd_lab.solver.known import Known

from .folds import Fold, n_held_out, ridge_growth
from .fresh import ridge_from_fresh_starts
from .search import Search
from .setting import Setting, Space, Trial
from .thinning import RankSearch, ThinnedTrials, has_zeros, thinned
from .trials import Trials


@dataclass(frozen=True)
class Stage:
    """A search.

    Attributes
    ----------
    search : Search or RankSearch
        The search, with its trials.
    chosen : Trial or None
        The trial whose setting it chose; None if no entry could be held out.
    drawn : str
        How the held-out entries were drawn.
    """

    search: Search | RankSearch
    chosen: Trial | None
    drawn: str

    @property
    def trials(self) -> Trials:
        """Its trials."""
        return self.search.trials

    @property
    def n_rows(self) -> int:
        """Number of rows of its data."""
        return self.trials.folds[0].rest.shape[0]

    @property
    def setting(self) -> Setting:
        """The setting that it chose."""
        return self.search.guess() if self.chosen is None else self.chosen.setting

    @property
    def has_ridge(self) -> bool:
        """Whether it ended, with components."""
        chosen = self.chosen
        return chosen is not None and not (chosen.offsets_alone or self.trials.stopped())

    def growth(self, m: int) -> float:
        """Return the factor from its ridges to those of a matrix with m rows."""
        return ridge_growth((m, self.trials.folds[0].rest.shape[1]), self.n_rows)


def first_stage(known: Known, space: Space, rng: np.random.Generator, **of_trials: Any) -> Stage:
    """Return a search for the best setting of a space."""
    rest = known.observations
    search: Search | RankSearch
    if has_zeros(rest):
        folds, drawn = thinned(rest, rng), "by thinning"
        search = RankSearch(ThinnedTrials(_at_least_one(folds, rest), rng=rng, **of_trials), space)
    else:
        folds, drawn = known.folds_for_trials(rng)
        search = Search(Trials(_at_least_one(folds, rest), rng=rng, **of_trials), space)
    return Stage(search, search.run() if folds else None, drawn)


def with_all_rows(before: Stage, known: Known, rng: np.random.Generator, **of_trials: Any) -> Stage:
    """Return a search for the ridge of a setting that was chosen with some of the rows."""
    assert before.chosen is not None
    folds, drawn = known.folds_for_trials(rng)
    trials = Trials(_at_least_one(folds, known.observations), rng=rng, **of_trials)
    search = Search(trials, before.search.space)
    alpha = before.growth(known.observations.shape[0]) * before.setting.alpha
    setting, path = before.setting._replace(alpha=alpha), before.chosen.ending is not None
    return Stage(search, ridge_from_fresh_starts(search, setting, path=path), drawn)


def _at_least_one(folds: list[Fold], rest: Observations) -> list[Fold]:
    """Return the folds, or one that holds out nothing if there are none."""
    return folds or [Fold(rest, rest.as_sparse())]


FEW = 500  # held-out entries below which luck decides between settings that are nearly as good


def record_of(stages: list[Stage], m: int) -> dict[str, Any]:
    """Return what `Decomposition.selection` tells, with ridges for all m rows."""
    last, space = stages[-1], stages[0].search.space
    trials, chosen = last.trials, last.chosen
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
    before = [row | {"spread": math.nan} for stage in stages[:-1] for row in _rows(stage, m)]
    rows = before + _rows(last, m)  # errors of several stages are at different entries
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


def _rows(stage: Stage, m: int) -> list[dict[str, Any]]:
    """Return the rows of the trials of a stage, with ridges for all m rows."""
    chosen = stage.chosen
    if chosen is None:
        return []
    comparable = [trial for trial in stage.trials.done if trial.is_comparable(chosen)]
    best = min(comparable, key=lambda trial: trial.mean)
    rows = [trial.row(best) for trial in stage.trials.done]
    return [row | {"alpha": stage.growth(m) * row["alpha"]} for row in rows]


def _notes(stages: list[Stage], chosen: Trial, m: int) -> list[str]:
    """Return sentences on what a choice among m rows does not tell."""
    space, rank, notes = stages[0].search.space, chosen.setting.rank, []
    search, number = stages[-1].search, stages[0].n_rows
    entries = n_held_out(search.trials.folds)
    if number < m:
        count = len(stages[0].trials.done)
        notes.append(
            f"The first {count} trials had {number} of the {m} rows; the others chose the ridge "
            "with all of them."
            if len(stages) > 1
            else f"The trials had {number} of the {m} rows, and their ridges are scaled to all."
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
