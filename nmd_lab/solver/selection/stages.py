"""The stages of a choice: a search with some of the rows of large data, and one with all of them.

The second one tries ridges around that of the first, since the best one depends on the number of
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nmd_lab.data.observations import Observations
from nmd_lab.solver.facts import Facts
from nmd_lab.solver.holding_out import HeldOutData
from nmd_lab.solver.options import Options

from .folds import Fold
from .fresh import ridge_from_fresh_starts
from .row_sample import ridge_growth
from .search import Search
from .setting import Setting, Trial
from .space import Space
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
    n_rows : int
        Number of rows of the data.
    """

    search: Search | RankSearch
    chosen: Trial | None
    drawn: str
    n_rows: int

    @property
    def trials(self) -> Trials:
        """Its trials."""
        return self.search.trials

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
        n = self.trials.folds[0].rest.shape[1]
        return ridge_growth((m, n), self.n_rows)


class Stages:
    """Searches one after the other.

    Parameters
    ----------
    facts : Facts
        What is known of the fit.
    options : Options
        Options of the fit.
    size : float
        Largest |x|.
    rng : numpy.random.Generator
        Source of the held-out entries and the starts.
    is_over : callable
        Function that says whether to end.
    after, foresee : callable
        What to call after each trial, and with one of the first.
    """

    def __init__(
        self,
        facts: Facts,
        options: Options,
        size: float,
        rng: np.random.Generator,
        is_over: Callable[[], bool],
        after: Callable[[], None],
        foresee: Callable[[Trial], None],
    ) -> None:
        self._facts, self._options, self._size, self._rng = facts, options, size, rng
        self._is_over, self._after, self._foresee = is_over, after, foresee
        self.done: list[Stage] = []

    def search(self, data: HeldOutData, space: Space) -> Stage:
        """Return a search for the best setting of a space."""
        rest = data.rest
        search: Search | RankSearch
        if has_zeros(rest):
            folds, drawn = thinned(rest, self._rng), "by thinning"
            search = RankSearch(self._trials(ThinnedTrials, folds, rest), space)
        else:
            folds, drawn = data.folds_for_trials(self._rng)
            search = Search(self._trials(Trials, folds, rest), space)
        chosen = search.run() if folds else None
        self.done.append(Stage(search, chosen, drawn, rest.shape[0]))
        return self.done[-1]

    def with_all_rows(self, before: Stage, data: HeldOutData) -> Stage:
        """Return a search for the ridge of a setting that was chosen with some of the rows."""
        assert before.chosen is not None
        folds, drawn = data.folds_for_trials(self._rng)
        search = Search(self._trials(Trials, folds, data.rest), before.search.space)
        m = data.rest.shape[0]
        setting = before.setting._replace(alpha=before.growth(m) * before.setting.alpha)
        chosen = ridge_from_fresh_starts(search, setting, path=before.chosen.ending is not None)
        self.done.append(Stage(search, chosen, drawn, m))
        return self.done[-1]

    def _trials(self, kind: type[Trials], folds: list[Fold], rest: Observations) -> Trials:
        """Return trials without any done, for folds of the observations."""
        return kind(
            folds or [Fold(rest, rest.as_sparse())],
            self._options,
            self._size,
            self._rng,
            self._is_over,
            after=self._after,
            foresee=self._foresee,
            limits=self._facts.limits,
            kinds=self._facts.kinds,
        )
