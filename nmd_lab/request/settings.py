"""`ADMM`, `Compute` and `Choice`: how a model is solved, on what, and what is decided by trials.

None of them is a part of the model.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np

from nmd_lab._runtime.checks import (
    check_integer,
    check_number,
    check_number_or_auto,
    check_share,
    check_word,
    refuse_class,
)
from nmd_lab.data.folds import KINDS
from nmd_lab.data.inputs import is_mask
from nmd_lab.model.loss import Loss

from .penalty import PenaltyRule, RuleName, as_penalty_rule

SPLITS = ("auto", "everywhere", "observed")


@dataclass(frozen=True, kw_only=True)
class ADMM:
    """Settings of Algorithm 1 and of the refinements between its iterations.

    Parameters
    ----------
    rho : {"auto", "balanced", "paper"}, float or PenaltyRule, default "auto"
        Rule for the penalty ρ; a number is a fixed ρ.  "balanced" keeps the two residuals within a
        factor of 3, "paper" is the paper's rule.  "auto" is "balanced", except for a loss with a
        kink (L1) and an f that is not even.  There, ρ starts at the value that gives loss and
        constraint the same weight, and changes less and less often.  "auto" starts at that value
        for all other pairs in which ρ has a unit (KL, Square), too, at a tenth of it if f is even
        (Modulus, Square): multiples of X are fitted alike.
    initial_rho : float, optional
        ρ of the first iteration, > 0, if `rho` is a rule that has a name.  By default the rule sets
        it.
    epsilon : float, default 1e-12
        Relative ridge that keeps the factor steps solvable; at least the rounding unit of the
        precision (1e-7 in float32).
    split : {"auto", "everywhere", "observed"}, default "auto"
        Entries on which T = WH is imposed.  "auto" is "observed" if fewer than a third of the
        entries are observed.
    refine : bool, default True
        Refinements between the iterations: quasi-Newton steps with T eliminated, once the plain
        iteration slows down.  The factors of lower objective are kept.  There are none for a fixed
        ρ or the paper's rule; for given factors with ``tol=0`` and a `rho` other than "auto"; for
        Identity + Frobenius on observed entries only; for a sparse matrix with more than four
        million stored entries; and if they would need much more memory than the data.
    homotopy : {"auto", True, False}, default "auto"
        Refinement of MinMax that begins with a wide interval, which shrinks to [a, b].  True: as
        the first refinement.  "auto": as a later one.  False: never.
    polish : {"auto", True, False}, default "auto"
        Descent on the objective itself from the best factors, if the loss is smooth or the fit is
        nearly exact.  "auto" has the same exceptions as `refine`.
    patience : int, default 10
        Iterations without a lower validation error after which a start ends.
    limit_noise : float or "auto", default "auto"
        Standard deviation of the noise at entries with limits, for the Frobenius loss, in units of
        X.  "auto": that of held-out errors or of a pilot run.  0: any value within the limits is as
        good as another.

    Raises
    ------
    ValueError, TypeError
        If a value makes no sense.

    See Also
    --------
    decompose : Takes these settings as ``solver=``.

    Notes
    -----
    ``solver="paper"`` is Algorithm 1 and nothing else, with the paper's rule:
    ``ADMM(rho="paper", refine=False, homotopy=False, polish=False)``.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(100)
    >>> plain = nmd.ADMM(rho=1.0, refine=False, polish=False)
    >>> fit = nmd.decompose(digits, 8, "relu", solver=plain, max_iter=20, random_state=0)
    >>> set(fit.history.penalty.values.tolist())
    {1.0}
    """

    rho: RuleName | float | PenaltyRule = "auto"
    initial_rho: float | None = None
    epsilon: float = 1e-12  # the paper's 1e-6 limits the relative error to about 1e-5
    split: Literal["auto", "everywhere", "observed"] = "auto"
    refine: bool = True
    homotopy: Literal["auto"] | bool = "auto"
    polish: Literal["auto"] | bool = "auto"
    patience: int = 10
    limit_noise: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        """Check the settings."""
        as_penalty_rule(self.rho)
        if self.initial_rho is not None:
            if not isinstance(self.rho, str):
                raise ValueError(
                    f"initial_rho={self.initial_rho!r} goes with a rule that has a name: leave it "
                    "out, or give rho='auto', 'balanced' or 'paper'."
                )
            check_number("initial_rho", self.initial_rho, above=0)
        check_number("epsilon", self.epsilon, 0)
        check_word("split", self.split, SPLITS)
        check_word("refine", self.refine, [True, False])
        for name in ("homotopy", "polish"):
            check_word(name, getattr(self, name), ["auto", True, False])
        check_integer("patience", self.patience, 1)
        check_number_or_auto("limit_noise", self.limit_noise)


PAPER = ADMM(rho="paper", refine=False, homotopy=False, polish=False)
"""Algorithm 1 and nothing else."""


def as_solver(solver: Any) -> ADMM:
    """Return the settings that a name stands for."""
    if isinstance(solver, ADMM):
        return solver
    check_word("solver", solver, ("auto", "paper"), " or nmd.ADMM(...)")
    return PAPER if solver == "paper" else ADMM()


@dataclass(frozen=True, kw_only=True)
class Compute:
    """Where a model is computed, and what is kept on disk meanwhile.

    Parameters
    ----------
    threads : int, optional
        Largest number of threads, which work on parts of large data or on several starts; by
        default NUMBA_NUM_THREADS.
    device : str, optional
        Device of PyTorch on which the passes over the data run, such as "cuda" (extra "torch"), for
        a piecewise-linear f or Square with Frobenius, L1 or KL, dense data, masked ones, and sparse
        zeros.  The results are those of NumPy up to rounding.  By default that of a tensor X.
    client : distributed.Client or "active", optional
        Client of a Dask cluster whose workers make the passes of a fit over the rows (extra
        "dask"); by default the active one if X is of Dask: an array, a DataArray over one, or for
        `complete` a table of Dask with the columns row, column and value.  The iterates are those
        of Algorithm 1 on one machine, up to rounding.  Rank and ridge must be given.
        :doc:`/scale` describes clusters.
    work_dir : path-like, optional
        Folder for T and U of a dense X in a file (memmap, zarr array, dataset of HDF5, DataArray
        that is not loaded), which is then read block by block.  By default X is read as a whole if
        a fit fits into memory, and otherwise by blocks with the system's temporary folder.  The
        results are the same.  Rank and ridge must be given.
    memory_limit : float, optional
        Largest memory that the arrays of a fit may take in addition to X, in GiB.  A fit that needs
        more is refused before the work; X in a file is then read by blocks.
    checkpoint : path-like, optional
        File that keeps the state of the run.  If the file exists, the run resumes from it, and its
        results are bit-for-bit identical to those of an unbroken run; so does `nmd_lab.resume`.
        The file may be read by another process, and holds factors and auxiliary variables.
    checkpoint_every : float, default 60
        Time between two checkpoints, in seconds.

    Raises
    ------
    ValueError, TypeError
        If a value makes no sense.

    See Also
    --------
    decompose, complete, sample : Take these settings as ``compute=``.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> digits = nmd.datasets.digits(100)
    >>> fit = nmd.decompose(digits, 8, "relu", compute=nmd.Compute(threads=1), random_state=0)
    >>> fit.W.shape, fit.H.shape
    ((100, 8), (8, 64))
    """

    threads: int | None = None
    device: str | None = None
    client: Any = None
    work_dir: str | os.PathLike[str] | None = None
    memory_limit: float | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = 60.0

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.threads is not None:
            check_integer("threads", self.threads, 1)
        if self.device is not None and not isinstance(self.device, str):
            raise TypeError(f"device={self.device!r} is no name: give a string, such as 'cuda'.")
        if (folder := self.work_dir) is not None:
            if not isinstance(folder, str | os.PathLike):
                raise TypeError(f"work_dir={folder!r} is no path: give the name of a folder.")
            if not Path(folder).is_dir():
                raise NotADirectoryError(
                    f"work_dir={os.fspath(folder)!r} is no folder: make it first."
                )
        if self.memory_limit is not None:
            check_number("memory_limit", self.memory_limit, above=0)
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | os.PathLike):
            raise TypeError(f"checkpoint={self.checkpoint!r} is no path: give the name of a file.")
        check_number("checkpoint_every", self.checkpoint_every, 0)


def as_compute(compute: Any) -> Compute:
    """Return the settings; None stands for the defaults."""
    if not isinstance(compute, Compute | None):
        raise TypeError(f"compute={compute!r} is no nmd.Compute: give nmd.Compute(...).")
    return compute or Compute()


def is_automatic(solver: ADMM) -> bool:
    """Return whether another algorithm may take the place of this one."""
    words = (solver.rho, solver.initial_rho, solver.refine, solver.homotopy, solver.polish)
    return words == ("auto", None, True, "auto", "auto")


def stored(compute: Compute) -> dict[str, Any]:
    """Return what a checkpoint keeps of the settings: all but its own path and objects."""
    folder = None if compute.work_dir is None else os.fspath(compute.work_dir)
    values = {name: v for name, v in vars(compute).items() if name not in ("client", "checkpoint")}
    return values | {"work_dir": folder}


SPLITTERS = ", a fraction, a splitter of scikit-learn, held-out entries, a mask, or a list of masks"


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """How rank, ridge and what else is "auto" are chosen: among what, on which entries, by what.

    Parameters
    ----------
    ranks : sequence of int, optional
        Ranks that may be chosen, if the rank is "auto"; by default those of a list up to 100, and
        some between them.
    alphas : sequence of float, optional
        Ridges that may be chosen, in the units of X, if `alpha` is "auto"; by default any.
    splitter : optional
        Which entries are held out.  By default some of those observed, at random, or as blocks if
        the missing entries of X are blocks.  These judge the choice, and the last fit has all
        entries:

        - "blocks": the missing regions of X, moved, also where they are not taken for
          blocks;
        - a splitter of scikit-learn, such as ``KFold(5)``, ``GroupKFold(5)`` or
          ``TimeSeriesSplit(5)``, which splits the rows: see the notes;
        - a list of masks, arrays of bool in the shape of X with True where an entry is held out.

        These are left out of the last fit, too, which they stop early:

        - a fraction of the observed entries, a float between 0 and 1;
        - a mask;
        - held-out entries in the shape of X, NaN or absent elsewhere.
    groups : str or array_like (m,), optional
        Groups of the rows for a splitter that keeps them together, such as ``GroupKFold``: labels,
        or the name of a column or of an index level of a DataFrame, or of a coordinate.
    metric : {"deviance", "rmse", "mae", "log_score"}, default "deviance"
        What is to be lowest at held-out entries.  "deviance": the mean loss; "rmse", "mae": the
        root mean squared, or mean absolute, difference to the expected value, in the units of X (of
        each column, in a table of several kinds); "log_score": minus the mean log-likelihood, if
        the loss has one.

    Raises
    ------
    ValueError, TypeError
        If a value makes no sense.

    See Also
    --------
    complete, decompose, MatrixCompletion : Take it as ``validation=``.
    Decomposition.selection : What was tried, what was chosen, and what was as good.

    Notes
    -----
    A row of which nothing is known has no factor, so that whole rows cannot be held out.  In the
    test rows of a split, a fifth of the columns is held out, the same ones in all these rows, and
    others in the next split.  The other cells of the test rows stay, since they describe
    each row.  The training rows alone have values of a held-out column: those of other
    groups, or of earlier times.  Rows in neither set, such as those after the test rows of
    ``TimeSeriesSplit``, are left out.  Each split is a fit for each setting.  If fewer than 2000
    entries are held out, the splits are repeated with other columns, in at most ten fits.

    A splitter without a `random_state` gets one from that of the fit.  Early stopping is by the
    root mean squared error, whatever the metric.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).data
    >>> choice = nmd.Choice(ranks=[1, 2, 4], metric="mae")
    >>> choice
    Choice(ranks=(1, 2, 4), metric='mae')
    >>> fit = nmd.complete(wine, validation=choice, random_state=0)
    >>> sorted(set(fit.selection["rank"].values.tolist()))
    [1, 2, 4]
    """

    ranks: Sequence[int] | None = None
    alphas: Sequence[float] | None = None
    splitter: Any = None
    groups: Any = None
    metric: Literal["deviance", "rmse", "mae", "log_score"] = "deviance"

    def __post_init__(self) -> None:
        """Check the values; candidates become ascending tuples."""
        if self.ranks is not None:
            object.__setattr__(self, "ranks", _candidates("ranks", self.ranks, check_integer, 1))
        if self.alphas is not None:
            object.__setattr__(self, "alphas", _candidates("alphas", self.alphas, check_number, 0))
        check_word("metric", self.metric, ("deviance", "rmse", "mae", "log_score"))
        _check_splitter("splitter", self.splitter)
        if self.groups is not None and not self.splits_rows:
            raise ValueError(
                f"groups= does not go with splitter={_short(self.splitter)}: give a splitter of "
                "scikit-learn that keeps groups of rows together, such as GroupKFold(5)."
            )

    @property
    def splits_rows(self) -> bool:
        """Whether the splitter is one of scikit-learn."""
        return hasattr(self.splitter, "split") and hasattr(self.splitter, "get_n_splits")

    @property
    def has_masks(self) -> bool:
        """Whether the splitter is a list of masks."""
        return isinstance(self.splitter, list | tuple) and _are_matrices(self.splitter)

    @property
    def stops_early(self) -> bool:
        """Whether held-out entries are left out of the last fit, too."""
        is_blocks = isinstance(self.splitter, str)
        return not (self.splitter is None or is_blocks or self.splits_rows or self.has_masks)

    @property
    def is_share(self) -> bool:
        """Whether a fraction of the observed entries is held out."""
        return isinstance(self.splitter, Real)

    @property
    def only_chooses(self) -> bool:
        """Whether something of it has no meaning where nothing is chosen; early stopping has."""
        values = (self.ranks, self.alphas, self.groups, None if self.stops_early else self.splitter)
        return self.metric != "deviance" or any(each is not None for each in values)

    def refuse_unsuitable(
        self,
        rank: int | None,
        alpha: float | None,
        shape: tuple[int, int],
        losses: Iterable[Loss],
        *,
        is_open: bool,
    ) -> None:
        """Raise ValueError if it does not suit X and what is given; None is to be chosen."""
        for name, candidates, value in (("rank", self.ranks, rank), ("alpha", self.alphas, alpha)):
            if candidates is not None and value is not None:
                raise ValueError(
                    f"{name}s={list(candidates)} of nmd.Choice are for {name}='auto', and "
                    f"{name}={value!r} is given: leave one of them out."
                )
        largest = max(self.ranks or (1,))
        if largest > min(shape):
            raise ValueError(
                f"ranks={list(self.ranks or ())} has {largest}, which exceeds the smaller side of "
                f"X, {min(shape)}: give smaller ranks."
            )
        if self.only_chooses and not is_open:
            raise ValueError(
                f"validation={self!r} has nothing to choose, since rank, alpha, nonlinearity and "
                "loss are given: make one of them 'auto', or leave it out."
            )
        without = [loss for loss in losses if not loss.likelihood]
        if without and self.metric == "log_score":
            raise ValueError(
                f"metric='log_score' needs a likelihood, which loss={without[0]!r} has not: give "
                "metric='deviance', 'rmse' or 'mae'."
            )

    def describe(self) -> Any:
        """Return None, a number or a text, for `Decomposition.parameters`."""
        if self.only_chooses:
            return repr(self)
        if self.is_share:
            return self.splitter
        return None if self.splitter is None else _short(self.splitter)

    def __repr__(self) -> str:
        texts = ((name, _short(value)) for name, value in vars(self).items())
        shown = [f"{name}={text}" for name, text in texts if text not in ("None", "'deviance'")]
        return f"Choice({', '.join(shown)})"


def as_choice(validation: Any) -> Choice:
    """Return the choice that an argument `validation` stands for."""
    refuse_class("validation", validation)
    if isinstance(validation, Choice):
        return validation
    _check_splitter("validation", validation)
    return Choice(splitter=validation)


def _candidates(
    name: str, values: Any, check: Callable[..., Any], smallest: int
) -> tuple[Any, ...]:
    """Return candidates as an ascending tuple."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name}={values!r} is no sequence: give a list of numbers.")
    numbers = sorted({check(name, each, smallest) for each in values})
    if not numbers:
        raise ValueError(f"{name}={values!r} is empty: give at least one number, or leave it out.")
    return tuple(numbers)


def _check_splitter(name: str, splitter: Any) -> None:
    """Raise an error if a value is no splitter, as far as that is known without X."""
    refuse_class(name, splitter)
    if isinstance(splitter, str):
        check_word(name, splitter, sorted(KINDS), SPLITTERS)
    elif isinstance(splitter, Real | np.bool_):
        check_share(name, splitter, zero=False)
    elif isinstance(splitter, list | tuple) and _are_matrices(splitter):
        for position, mask in enumerate(splitter):
            if not is_mask(mask):
                raise TypeError(
                    f"{name} has a matrix that is no mask at position {position}: give a list of "
                    "arrays of bool, True where an entry is held out, or one matrix alone."
                )


def _are_matrices(values: Sequence[Any]) -> bool:
    """Return whether a sequence has matrices, and not the rows of one."""
    return len(values) > 0 and all(getattr(each, "ndim", 0) >= 2 for each in values)


def _short(value: Any) -> str:
    """Return a value as text, without the numbers of an array."""
    if hasattr(value, "__array__") or hasattr(value, "tocsr"):
        return f"given {type(value).__name__}"
    if isinstance(value, list | tuple) and len(value) and not isinstance(value[0], Real):
        return f"{len(value)} given" if hasattr(value[0], "ndim") else "given list"
    return repr(value)
