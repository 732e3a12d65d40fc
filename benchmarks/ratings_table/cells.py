"""The pieces of the table, each stored as it is done: a choice of settings, and a judged fit."""

from __future__ import annotations

import hashlib
import inspect
import json
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.paper.cells import Cell, path_of, state_of_code
from benchmarks.selection.problems import Problem
from benchmarks.selection.store import Answer, Store
from nmd_lab import datasets

from .methods import OURS, Fitted, Method, Setting, Tuned
from .peers import PEERS
from .problems import ONCE, SETS, Ratings, Set
from .scores import clipped, gaussian, log_likelihood, mae, rmse
from .tuning import TRIALS, choose

METHODS: dict[str, Method] = {method.name: method for method in (*OURS, *PEERS)}
"""All methods by name, in the order of the table."""


class Effort(NamedTuple):
    """How much is done.

    Attributes
    ----------
    n_trials : int
        Number of settings that a method may try.
    draws, tune : int
        Sweeps of a sampler in a trial.
    """

    n_trials: int = TRIALS
    draws: int = 70
    tune: int = 30


FULL, QUICK = Effort(), Effort(3, 5, 3)


class Finished(Store):
    """A folder of answers to which nothing is added."""

    def get(self, work: Any, *, depends_on_code: bool = True, **arguments: Any) -> Answer:
        """Return a stored answer; LookupError if there is none."""
        options = {"code": state_of_code()} if depends_on_code else {}
        path = path_of(self.folder, Cell({"work": work.__name__, **arguments}, options), work)
        if not path.exists():
            raise LookupError(path.name)
        return json.loads(path.read_text("utf-8"))


@lru_cache(maxsize=2)
def problem_of(name: str, run: int) -> Problem:
    """Return a problem of a set by the number of the run."""
    return SETS[name].load(run)


def chosen(store: Store, name: str, each: Set, method: Method, run: int, effort: Effort) -> Answer:
    """Return what a method chooses in a run."""
    return store.get(
        choice,
        depends_on_code=method.is_ours_in_work,
        name=name,
        method=method.name,
        run=ONCE if each.choose_once else run,
        **effort._asdict(),
        source=source_of(method),
    )


def scored(
    store: Store, name: str, each: Set, method: Method, run: int, setting: Setting, error: float
) -> Answer:
    """Return how well a method with this setting does in a run."""
    sweeps = {"draws": each.draws, "tune": each.tune} if method.is_sampler else {}
    return store.get(
        score,
        depends_on_code=method.is_ours_in_work,
        name=name,
        method=method.name,
        run=run,
        setting=json.dumps(setting | sweeps),
        error=round(error, 6),
        source=source_of(method),
    )


def choice(
    *, name: str, method: str, run: int, n_trials: int, draws: int, tune: int, source: str
) -> Answer:
    """Choose a setting by a tenth of the training ratings."""
    train = problem_of(name, run).X
    warm_up(METHODS[method])
    seed = max(run, 0)
    return choose(METHODS[method], train, seed, n_trials, draws=draws, tune=tune)._asdict()


def score(*, name: str, method: str, run: int, setting: str, error: float, source: str) -> Answer:
    """Learn from the training ratings, and judge by the test; `error` is 0 if there is none."""
    problem = problem_of(name, run)
    warm_up(Tuned())
    _, reference = timed_fit(Tuned(), problem.X, run, Tuned.start)
    warm_up(METHODS[method])
    fitted, seconds = timed_fit(METHODS[method], problem.X, run, json.loads(setting))
    answer = judge(fitted, problem, error)
    return answer | {"seconds": seconds, "ratio": seconds / reference}


def timed_fit(method: Method, train: Ratings, seed: int, setting: Setting) -> tuple[Fitted, float]:
    """Return a fit and its processor time, in seconds."""
    began = time.process_time()
    fitted = method.fit(train, seed, **setting)
    return fitted, time.process_time() - began


def judge(fitted: Fitted, problem: Problem, error: float) -> Answer:
    """Return the scores of a fit at the test ratings.

    Parameters
    ----------
    fitted : Fitted
        Learnt from `problem.X`.
    problem : Problem
        Training and test ratings.
    error : float
        Root mean squared error at held-out training ratings: the size of the noise for methods that
        have no probabilities of their own; 0 if it is not known.
    """
    rows, columns, values = problem.rows, problem.columns, problem.values
    plain = np.asarray(fitted.predict(rows, columns), dtype=float)
    guess = clipped(plain, problem.X)
    answer = {"rmse": rmse(guess, values), "mae": mae(guess, values), "plain": rmse(plain, values)}
    if fitted.above is not None or error > 0:
        above = fitted.above or gaussian(fitted.predict, error)
        levels = np.unique(problem.X.data)
        answer["log_likelihood"] = log_likelihood(above, rows, columns, values, levels)
    return answer


def warm_up(method: Method) -> None:
    """Fit something small once: imports and compiles, which no time shall count."""
    if method.name in _WARM:
        return
    _WARM.add(method.name)
    table = datasets.make_ratings(60, 50, 900, random_state=0)
    X = np.zeros((60, 50))
    X[table["user"].to_numpy(), table["item"].to_numpy()] = table["rating"]
    sweeps = {"draws": 2, "tune": 2} if method.is_sampler else {}
    fitted = method.fit(sparse.csr_array(X), 0, **(dict(method.start) | sweeps))
    fitted.predict(np.array([0]), np.array([0]))


_WARM: set[str] = set()


def source_of(method: Method) -> str:
    """Return a digest of the file of a method: a changed calling form makes answers obsolete."""
    parts = [inspect.getsource(each) for each in type(method).__mro__[:-1]]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:8]


def folder_of(root: Path) -> Path:
    """Return the folder of the answers."""
    return root / "results" / "ratings_table"
