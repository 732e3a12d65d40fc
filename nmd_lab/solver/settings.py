"""`ADMM` and `Compute`: how a model is solved, and on what it is computed.

Neither is a part of the model.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any, Literal

from nmd_lab._runtime.checks import (
    check_folder,
    check_integer,
    check_number,
    check_number_or_auto,
    check_word,
)

from .penalty import PenaltyRule, as_penalty_rule

SPLITS = ("auto", "everywhere", "observed")
SOLVERS = ("auto", "paper")


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

    rho: Literal["auto", "balanced", "paper"] | float | PenaltyRule = "auto"
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
    check_word("solver", solver, SOLVERS, " or nmd.ADMM(...)")
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
        :doc:`/cluster` describes clusters.
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
        check_folder("work_dir", self.work_dir)
        if self.memory_limit is not None:
            check_number("memory_limit", self.memory_limit, above=0)
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | os.PathLike):
            raise TypeError(f"checkpoint={self.checkpoint!r} is no path: give the name of a file.")
        check_number("checkpoint_every", self.checkpoint_every, 0)


def as_compute(compute: Any) -> Compute:
    """Return the settings; None stands for the defaults."""
    if compute is None:
        return Compute()
    if not isinstance(compute, Compute):
        raise TypeError(f"compute={compute!r} is no nmd.Compute: give nmd.Compute(...).")
    return compute


def is_automatic(solver: ADMM) -> bool:
    """Return whether another algorithm may take the place of this one."""
    words = (solver.rho, solver.initial_rho, solver.refine, solver.homotopy, solver.polish)
    return words == ("auto", None, True, "auto", "auto")


def stored(compute: Compute) -> dict[str, Any]:
    """Return what a checkpoint keeps of the settings: all but its own path and objects."""
    values = {field.name: getattr(compute, field.name) for field in fields(compute)}
    del values["client"], values["checkpoint"]
    if compute.work_dir is not None:
        values["work_dir"] = os.fspath(compute.work_dir)
    return values
