"""Adam: a general first-order method for the objective of any nonlinearity and loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._runtime.checks import check_number, check_rank
from nmd_lab.baselines import first_factors
from nmd_lab.data.inputs import observe_dense
from nmd_lab.model.losses import KL, L1, Frobenius, Loss, as_loss
from nmd_lab.model.nonlinearities import (
    Identity,
    MinMax,
    Modulus,
    Nonlinearity,
    ReLU,
    Square,
    as_nonlinearity,
)
from nmd_lab.problem.columns import with_bounds
from nmd_lab.result.decomposition import Decomposition

from ._iterations import BaselineRun

FORWARD: dict[type[Nonlinearity], Callable[[Any, Any, Any], Any]] = {
    ReLU: lambda torch, f, t: torch.relu(t),
    Square: lambda torch, f, t: torch.square(t),
    MinMax: lambda torch, f, t: torch.clamp(t, f.a, f.b),
    Modulus: lambda torch, f, t: torch.abs(t),
    Identity: lambda torch, f, t: t,
}
"""The nonlinearities f(t) in PyTorch."""


def _kl(torch: Any, x: Any, y: Any) -> Any:
    """Return the Kullback-Leibler divergence d(x, y), with the floor of our loss on y."""
    smallest = torch.finfo(x.dtype).tiny  # for x = 0: it keeps the gradient of xlogy finite
    y = torch.clamp(y, min=torch.clamp(KL.relative_floor * x, min=smallest))
    return torch.xlogy(x, x) - torch.xlogy(x, y) - x + y


VALUE: dict[type[Loss], Callable[[Any, Any, Any], Any]] = {
    Frobenius: lambda torch, x, y: 0.5 * torch.square(x - y),
    L1: lambda torch, x, y: torch.abs(x - y),
    KL: _kl,
}
"""The losses d(x, y) in PyTorch."""


def adam(
    X: Any,
    rank: int,
    nonlinearity: str | Nonlinearity = "relu",
    loss: str | Loss = "frobenius",
    *,
    observed: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    init: Any = "svd",
    max_iter: int = 1000,
    tol: float = 0.0,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
    learning_rate: float = 0.01,
) -> Decomposition:
    """Minimise the loss of X ≈ f(WH) by Adam.

    PyTorch computes the gradients, on one thread.

    Parameters
    ----------
    X, observed, dtype
        As for `complete`.
    rank : int
        Number of components, from 1 to min(m, n).
    nonlinearity : {"relu", "square", "minmax", "modulus", "identity"} or Nonlinearity
        Nonlinearity f, default "relu".
    loss : {"frobenius", "l1", "kl"} or Loss, default "frobenius"
        Loss d. For "kl", values of f(WH) below 1e-12 X are replaced by it and get no
        gradient.
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors, or how to make them. "svd" is the truncated singular value decomposition
        of X with missing entries replaced by the mean.
    max_iter : int, default 1000
        Largest number of steps.
    tol : float, default 0
        Largest relative change of the objective at which the run stops. 0 switches this rule off.
    time_limit : float, optional
        Largest time of the iterations, in seconds. Default: no limit.
    callback : callable, optional
        Function called with the `State` of each iteration. A true return value stops the run.
    random_state : int, Generator or None
        Seed of a random start.
    learning_rate : float, default 0.01
        Step size of Adam, > 0; `adam_sweep` tries several.

    Returns
    -------
    Decomposition
        The iterate of lowest objective.

    Raises
    ------
    ImportError
        If PyTorch is missing.
    ValueError, TypeError
        If an argument is invalid.
    FloatingPointError
        If the first iterate is not finite.

    Notes
    -----
    D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization" (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.methods import adam
    >>> angles = np.arange(12.0)
    >>> X = np.maximum(0, np.cos(angles[:, None] - angles))
    >>> adam(X, 2).relative_error < 1e-6
    True
    """
    _, d = _differentiable(nonlinearity, loss)
    check_number("learning_rate", learning_rate, above=0)
    torch = _torch()
    observations = observe_dense(X, observed=observed, dtype=dtype)
    f = with_bounds(nonlinearity, observations)
    rank = check_rank(rank, observations.shape)
    start = first_factors(observations, rank, init, random_state, f)
    run = BaselineRun(observations, f, d, max_iter=max_iter, tol=tol, time_limit=time_limit,
              callback=callback)  # fmt: skip
    with _one_thread(torch):
        data, seen = torch.tensor(observations.values), observations.weights
        weights = None if seen is None else torch.tensor(seen)
        W, H = (torch.tensor(factor, requires_grad=True) for factor in start)
        optimizer = torch.optim.Adam([W, H], lr=learning_rate)
        while run.record(W.detach().numpy(), H.detach().numpy()):
            optimizer.zero_grad()
            losses = VALUE[type(d)](torch, data, FORWARD[type(f)](torch, f, W @ H))
            (losses if weights is None else losses * weights).sum().backward()
            optimizer.step()
    return run.result(
        method="adam", init=init, random_state=random_state, learning_rate=learning_rate
    )


def adam_sweep(
    X: Any,
    rank: int,
    nonlinearity: str | Nonlinearity = "relu",
    loss: str | Loss = "frobenius",
    *,
    learning_rates: Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1, 0.5),
    **options: Any,
) -> Decomposition:
    """BaselineRun Adam with several learning rates, and return the fit of lowest objective.

    Parameters
    ----------
    X, rank, nonlinearity, loss
        As for `adam`.
    learning_rates : sequence of float, default (0.0001, 0.001, 0.01, 0.1, 0.5)
        Step sizes to try. The `time_limit` holds for each of them.
    **options
        Other arguments of `adam`. With an integer seed all runs start from the same factors.

    Returns
    -------
    Decomposition
        The best fit. Its `parameters` hold the learning rate.

    Raises
    ------
    FloatingPointError
        If the first iterate of every learning rate is not finite.
    ImportError, ValueError, TypeError
        As `adam` does.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.methods import adam_sweep
    >>> angles = np.arange(12.0)
    >>> X = np.maximum(0, np.cos(angles[:, None] - angles))
    >>> adam_sweep(X, 2, learning_rates=[1e-4, 1e-2]).parameters["learning_rate"]
    0.01
    """
    if len(learning_rates) == 0:
        raise ValueError("learning_rates is empty: give at least one number > 0.")
    for learning_rate in learning_rates:
        check_number("learning_rate", learning_rate, above=0)
    fits = []
    for learning_rate in learning_rates:
        try:
            fits.append(adam(X, rank, nonlinearity, loss, learning_rate=learning_rate, **options))
        except FloatingPointError as error:
            failure = error
    if not fits:
        raise failure
    return min(fits, key=lambda fit: fit.objective)


def _differentiable(
    nonlinearity: str | Nonlinearity, loss: str | Loss
) -> tuple[Nonlinearity, Loss]:
    """Return f and d; refuse those that are not written in PyTorch here."""
    f, d = as_nonlinearity(nonlinearity), as_loss(loss)
    if type(f) not in FORWARD:
        names = [cls.name for cls in FORWARD]
        raise ValueError(f"nonlinearity={f.name!r} is not one of adam's: choose from {names}.")
    if type(d) not in VALUE:
        names = [cls.name for cls in VALUE]
        raise ValueError(f"loss={d.name!r} is not one of adam's: choose from {names}.")
    return f, d


def _torch() -> Any:
    """Return PyTorch; raise ImportError with the remedy if it is missing."""
    try:
        import torch
    except ImportError as error:
        raise ImportError("adam needs PyTorch: pip install torch", name="torch") from error
    return torch


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Limit PyTorch to one thread inside the block."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
