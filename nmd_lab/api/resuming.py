"""`resume`: continue a run that was stopped, from its checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from nmd_lab.checkpoint import Call, exists, read_file
from nmd_lab.request.settings import Compute, as_compute
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior import Posterior

from .fits import complete, decompose
from .posteriors import sample

FUNCTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (decompose, complete, sample)
}
"""Functions that write checkpoints."""


def resume(
    path: str | os.PathLike[str], X: Any, *, compute: Compute | None = None, **arguments: Any
) -> Decomposition | Posterior:
    """Continue a fit or a posterior as if it had never stopped.

    It calls the function that wrote the checkpoint, with the arguments that it had then.  The
    result has the bits of an uninterrupted run, on the same machine with the same number of
    threads.  The same call with the same checkpoint does this, too.

    Parameters
    ----------
    path : path-like
        Checkpoint that `decompose`, `complete` or `sample` has written.  If the last one is
        damaged, the one before it is taken.
    X : array_like
        The same data.
    compute : Compute, optional
        Threads, device, cluster and files; by default those of then, without a cluster.
    **arguments
        Arguments that a checkpoint does not hold, as they were: `observed`, `weights` and limits,
        other arrays, and objects of a class of your own.  `callback`, `progress` and `time_limit`
        may be others.

    Returns
    -------
    Decomposition or Posterior
        Result of the run.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, if X or an argument is another one, or if one is missing.

    Examples
    --------
    >>> import os, tempfile
    >>> import nmd_lab as nmd
    >>> X = nmd.datasets.digits(100)
    >>> path = os.path.join(tempfile.mkdtemp(), "run.checkpoint")
    >>> def stop(state):
    ...     if state.iteration == 20:
    ...         raise SystemExit
    >>> kept = nmd.Compute(checkpoint=path, checkpoint_every=0)
    >>> try:
    ...     fit = nmd.decompose(X, 8, compute=kept, callback=stop)
    ... except SystemExit:
    ...     pass
    >>> fit = nmd.resume(path, X)
    >>> fit.history.sizes["iteration"] > 20, os.path.exists(path)
    (True, True)
    """
    where = Path(path)
    if not exists(where):
        raise FileNotFoundError(
            f"path={str(where)!r} is no file: check the name of the checkpoint."
        )
    call = read_file(where)[0]["call"]
    stored, others = Call.again(call)
    missing = [name for name in others if name not in arguments]
    if missing:
        raise ValueError(
            f"path={os.fspath(path)!r} does not hold {' and '.join(missing)}: give "
            f"{missing[0]}= as it was."
        )
    before = stored.pop("compute")
    compute = Compute(**before) if compute is None else as_compute(compute)
    arguments = stored | arguments | {"compute": replace(compute, checkpoint=path)}
    result: Decomposition | Posterior = FUNCTIONS[call["function"]](X, **arguments)
    return result
