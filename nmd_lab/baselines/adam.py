"""Adam: the direct objective of any of our models, handed to a general first-order method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nmd_lab._checks import check_rank
from nmd_lab.data.dense import observe_dense
from nmd_lab.model.losses import KL, KL_FLOOR, L1, Frobenius, Loss, as_loss
from nmd_lab.model.nonlinearities import (
    Identity,
    MinMax,
    Modulus,
    Nonlinearity,
    ReLU,
    Square,
    as_nonlinearity,
)
from nmd_lab.result.decomposition import Decomposition

from ._run import Run
from ._start import first_factors

LEARNING_RATES = (1e-4, 1e-3, 1e-2, 1e-1, 0.5)
"""What `adam_sweep` tries by default."""

FORWARD: dict[type[Nonlinearity], Callable[[Any, Any, Any], Any]] = {
    ReLU: lambda torch, f, t: torch.relu(t),
    Square: lambda torch, f, t: torch.square(t),
    MinMax: lambda torch, f, t: torch.clamp(t, f.a, f.b),
    Modulus: lambda torch, f, t: torch.abs(t),
    Identity: lambda torch, f, t: t,
}
"""f(t) in PyTorch."""


def _kl(torch: Any, x: Any, y: Any) -> Any:
    y = torch.clamp(y, min=KL_FLOOR)
    return torch.xlogy(x, x) - torch.xlogy(x, y) - x + y


VALUE: dict[type[Loss], Callable[[Any, Any, Any], Any]] = {
    Frobenius: lambda torch, x, y: 0.5 * torch.square(x - y),
    L1: lambda torch, x, y: torch.abs(x - y),
    KL: _kl,
}
"""d(x, y) in PyTorch."""


def adam(
    X: Any,
    rank: int,
    nonlinearity: str | Nonlinearity = "relu",
    loss: str | Loss = "frobenius",
    *,
    mask: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    init: Any = "svd",
    max_iter: int = 1000,
    tol: float = 0.0,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: Any = None,
    learning_rate: float = 0.01,
) -> Decomposition:
    """Decompose X ≈ f(WH) by Adam, with gradients from PyTorch, on one thread.

    Parameters
    ----------
    X, mask, dtype
        As for `complete`.
    rank : int
        Number of components, from 1 to min(m, n).
    nonlinearity : {"relu", "square", "minmax", "modulus", "identity"} or Nonlinearity
        f, by default "relu".
    loss : {"frobenius", "l1", "kl"} or Loss, default "frobenius"
        d.  For "kl", f(WH) is raised to 1e-12, and where it is lower there is no gradient.
    init : {"svd", "random"}, (W, H) or Decomposition, default "svd"
        Starting factors.
    max_iter : int, default 1000
        Most steps.
    tol : float, default 0
        Ends the iteration when the objective changes by at most this share of it; 0 never does.
    time_limit : float, optional
        Seconds.
    callback : callable, optional
        Called with each `Iterate`; a true value ends the iteration.
    random_state : int, Generator or None
        Seed of a random start.
    learning_rate : float, default 0.01
        Adam's step size, > 0; `adam_sweep` tries several.

    Returns
    -------
    Decomposition
        The iterate of lowest objective.

    Raises
    ------
    ImportError
        If PyTorch is missing.
    ValueError, TypeError
        If an argument makes no sense.
    FloatingPointError
        If the first step overflows.

    Notes
    -----
    D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization" (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from nmd_lab.baselines import adam
    >>> angles = np.arange(12.0)
    >>> X = np.maximum(0, np.cos(angles[:, None] - angles))
    >>> adam(X, 2).relative_error < 1e-6
    True
    """
    f, d = _by_name(nonlinearity, loss)
    _check_learning_rate(learning_rate)
    torch = _torch()
    observations = observe_dense(X, mask=mask, dtype=dtype)
    rank = check_rank(rank, observations.shape)
    start = first_factors(observations, rank, init, random_state, f)
    run = Run(observations, f, d, max_iter=max_iter, tol=tol, time_limit=time_limit,
              callback=callback)  # fmt: skip
    with _one_thread(torch):
        data, seen = torch.tensor(observations.values), observations.weights
        counted = None if seen is None else torch.tensor(seen)
        W, H = (torch.tensor(factor, requires_grad=True) for factor in start)
        optimizer = torch.optim.Adam([W, H], lr=learning_rate)
        while run.goes_on(W.detach().numpy(), H.detach().numpy()):
            optimizer.zero_grad()
            losses = VALUE[type(d)](torch, data, FORWARD[type(f)](torch, f, W @ H))
            (losses if counted is None else losses * counted).sum().backward()
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
    learning_rates: Sequence[float] = LEARNING_RATES,
    **options: Any,
) -> Decomposition:
    """Run Adam with several learning rates and return the fit of lowest objective.

    Parameters
    ----------
    X, rank, nonlinearity, loss
        As for `adam`.
    learning_rates : sequence of float, default 0.0001, 0.001, 0.01, 0.1, 0.5
        What to try; each takes the whole `time_limit`.
    **options
        The other options of `adam`.  A seed given as an int makes every run start alike.

    Returns
    -------
    Decomposition
        Its `parameters` name the learning rate.

    Raises
    ------
    FloatingPointError
        If every learning rate overflows in its first step.
    ImportError, ValueError, TypeError
        As `adam` does.
    """
    if len(learning_rates) == 0:
        raise ValueError("learning_rates is empty: give at least one number > 0.")
    for learning_rate in learning_rates:
        _check_learning_rate(learning_rate)
    fits = []
    for learning_rate in learning_rates:
        try:
            fits.append(adam(X, rank, nonlinearity, loss, learning_rate=learning_rate, **options))
        except FloatingPointError as error:
            failure = error
    if not fits:
        raise failure
    return min(fits, key=lambda fit: fit.objective)


def _by_name(nonlinearity: str | Nonlinearity, loss: str | Loss) -> tuple[Nonlinearity, Loss]:
    """Return f and d, if PyTorch knows how to differentiate them."""
    f, d = as_nonlinearity(nonlinearity), as_loss(loss)
    if type(f) not in FORWARD:
        names = [known.name for known in FORWARD]
        raise ValueError(f"nonlinearity={f.name!r} is not one of adam's: choose from {names}.")
    if type(d) not in VALUE:
        names = [known.name for known in VALUE]
        raise ValueError(f"loss={d.name!r} is not one of adam's: choose from {names}.")
    return f, d


def _check_learning_rate(learning_rate: float) -> None:
    if not 0 < learning_rate < np.inf:
        raise ValueError(f"learning_rate={learning_rate} is out of range: give a number > 0.")


def _torch() -> Any:
    """Return PyTorch, which takes a second to import."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            'adam needs PyTorch: pip install "nmd-lab[baselines]"', name="torch"
        ) from error
    return torch


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Let PyTorch use one thread, and afterwards as many as before."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
