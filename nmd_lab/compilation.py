"""How scalar functions become compiled code, and how that code is kept on disk.

Numba keeps no closure on disk that captures other compiled functions: their identity differs in
each process.  Our kernels are such closures (one per nonlinearity and loss), so each gets a name
that says all that went into it, a hash of this package's sources included, and is kept under that
name.  A class of the user's own is compiled anew in each process, since we cannot tell what its
code depends on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

# Sums may be reordered (so that they vectorise), but NaN and infinity keep their meaning.
_SCALAR: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy"}
_KERNEL: dict[str, Any] = {
    "fastmath": {"contract", "reassoc", "nsz"},
    "error_model": "numpy",
    "nogil": True,
}


class _NamedCache(FunctionCache):
    """A disk cache that trusts the function's qualified name to tell versions apart."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (sig, codegen.magic_tuple())


@cache
def compile_scalar(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of scalars that kernels will inline."""
    compiled: Callable[..., Any] = njit(**_SCALAR)(function)
    return compiled


def compile_kernel(function: Callable[..., Any], name: str, *, cached: bool) -> Callable[..., Any]:
    """Compile a loop over flat arrays, releasing the interpreter lock.

    Parameters
    ----------
    function : callable
        Plain Python, or a closure over compiled scalar functions.  Each name is to be used for
        one signature only: then processes that compile at once write the same content.
    name : str
        Says everything that the closure captures.
    cached : bool
        Whether the code is kept on disk.
    """
    named = FunctionType(
        function.__code__, function.__globals__, function.__name__, None, function.__closure__
    )
    named.__qualname__ = named.__name__ = f"{name}_{_sources_hash()}"
    dispatcher: Any = njit(**_KERNEL)(named)
    if cached:
        dispatcher._cache = _NamedCache(named)  # type: ignore[no-untyped-call]
    return dispatcher  # type: ignore[no-any-return]


def is_ours(*classes: type) -> bool:
    """Return whether all classes are this package's own, so that their code may be kept."""
    return all(cls.__module__.split(".")[0] == __package__ for cls in classes)


@cache
def _sources_hash() -> str:
    """Return a short hash of every source file that kernels are made from."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem in {
            "compilation",
            "losses",
            "nonlinearities",
            "proximal",
            "layouts",
            "splitting",
            "envelope",
            "observed",
            "row_solver",
        }:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
