"""Compiled code: scalar functions, kernels over flat arrays, and the disk cache.

Numba keeps no closure on disk that captures other compiled functions, because their identity
differs in each process.  Our kernels are such closures, one for each nonlinearity and loss.  Each
kernel therefore gets a name that says what it captures: the name that the caller gives, and a hash
of every source file from which captured functions come.  Numba keeps the code under that name.  A
class of the user's own is compiled anew in each process, because its code may depend on anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
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


@cache
def compile_inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of arrays that kernels call."""
    compiled: Callable[..., Any] = njit(**_KERNEL)(function)
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
    named.__qualname__ = named.__name__ = f"{name}_{source_hash(function)}"
    dispatcher: Any = njit(**_KERNEL)(named)
    if cached:
        dispatcher._cache = _NamedCache(named)  # type: ignore[no-untyped-call]
    return dispatcher  # type: ignore[no-any-return]


def is_ours(*classes: type) -> bool:
    """Return whether all classes are this package's own, so that their code may be kept."""
    return all(cls.__module__.split(".")[0] == __name__.split(".")[0] for cls in classes)


def source_hash(function: Callable[..., Any]) -> str:
    """Return a short hash of all sources that a function, compiled or not, is made from.

    These are the files of the function and of every function that it captures, directly or not,
    and the values of the global constants that they use.
    """
    files: dict[tuple[str, str], str] = {}
    constants: set[str] = set()
    waiting, known = [_plain_function(function)], set()
    while waiting:
        current = waiting.pop()
        if current is None or current in known:
            continue
        known.add(current)
        path = current.__code__.co_filename
        files[Path(path).name, path] = _file_hash(path)
        for name, value in _captured(current):
            if _is_constant(value):
                constants.add(f"{name}={value!r}")
            waiting.append(_plain_function(value))
    digest = hashlib.sha256(_file_hash(__file__).encode())  # for the options of the compiler
    for (name, _), content in sorted(files.items()):
        digest.update(f"{name} {content}".encode())
    digest.update("\n".join(sorted(constants)).encode())
    return digest.hexdigest()[:12]


def _plain_function(value: Any) -> FunctionType | None:
    """Return the Python function behind a function or a compiled one, None for anything else."""
    function = getattr(value, "py_func", value)
    return function if isinstance(function, FunctionType) else None


def _is_constant(value: Any) -> bool:
    """Return whether a value is a number, a word, or a tuple of those."""
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, bool | int | float | str)


def _captured(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield name and value of the closure's variables and of the globals that a function uses."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]


@cache
def _file_hash(path: str) -> str:
    """Return a hash of a file; of its name alone if there is none, as for code from a string."""
    source = Path(path)
    content = source.read_bytes() if source.is_file() else path.encode()
    return hashlib.sha256(content).hexdigest()
