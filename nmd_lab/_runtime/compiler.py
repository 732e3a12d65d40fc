"""Compilation of scalar functions and of kernels over flat arrays, with a cache on disk.

Numba does not cache a closure that captures compiled functions, because their identity differs in
each process.  The kernels of this package are such closures, one for each nonlinearity and loss.
Each kernel therefore gets a unique name, under which Numba caches it.  The name contains a hash of
the source files of all captured functions.  A kernel that uses a class of the user is compiled in
each process, because this package cannot tell when its code changes.

Kernels assign arrays entry by entry.  For a slice that is assigned an array, Numba compiles the
message about their shapes, too, which takes seconds.

A file of the cache that cannot be read counts as absent: the kernel is compiled, and the file
replaced.  Where nothing can be written, each process compiles its kernels.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import inspect
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, cast

from llvmlite import ir
from numba import njit, types
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from nmd_lab._runtime.progress import without_interruption

_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# "forceinline" is always given: without it, a function inherits the option from whoever calls it
# first, so that the code of a kernel would depend on what was compiled before.
_SCALAR: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "forceinline": True}
# "reassoc" lets Numba reorder sums, so that they vectorise; NaN and infinity are not affected.
_KERNEL: dict[str, Any] = {
    "fastmath": {"contract", "reassoc", "nsz"},
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,
    "forceinline": False,
}


class _NamedCache(FunctionCache):
    """A cache on disk in which the qualified name alone identifies a function.

    It never raises an error: what cannot be read is forgotten and compiled, what cannot be written
    is not kept.
    """

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (sig, codegen.magic_tuple())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # a damaged file, or one of another version of Numba's libraries
            with contextlib.suppress(Exception):
                self.flush()  # type: ignore[no-untyped-call]
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(Exception):  # for instance a full disk
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def _dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """Return a function that Numba compiles at its first call, which Ctrl-C does not break off.

    An interrupted compiler loses the signal, or leaves a library without code.
    """
    dispatcher: Any = njit(**options)(function)
    compile_signature = dispatcher.compile

    def compile_uninterrupted(signature: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()  # collections take a sixth of the time
        try:
            with without_interruption():
                return compile_signature(signature)
        finally:
            if collects:
                gc.enable()

    dispatcher.compile = compile_uninterrupted
    if "no_cpython_wrapper" in options:
        dispatcher.__class__ = _ForKernels
    return dispatcher  # type: ignore[no-any-return]


class _ForKernels(CPUDispatcher):
    """A function for kernels, which Python runs as Python: what calls need is not compiled."""

    def __call__(self, *args: Any) -> Any:
        return self.py_func(*args)


@cache
def compile_scalar(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of scalars and small tuples, which kernels inline.

    A call with tuples of arrays among its arguments would count their references, which takes
    longer than a short T-update, and a loop with a call does not vectorise.
    """
    return _dispatcher(_named(function, function.__qualname__), _SCALAR | _INNER)


def _number_at(typing_context, address, position):  # type: ignore[no-untyped-def]
    """Return a float64 from a table in memory, given its address and a position in it.

    An array among the arguments of a function of one entry would have its references counted at
    every call.  Whoever passes an address keeps the array alive, and the position within it.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        start, index = arguments
        size = ir.Constant(start.type, 8)
        place = builder.add(start, builder.mul(index, size))
        return builder.load(builder.inttoptr(place, ir.DoubleType().as_pointer()))

    return types.float64(types.int64, types.int64), generate


number_at: Any = intrinsic(_number_at)


@cache
def compile_inner(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a function of arrays that kernels call, or inline."""
    return _dispatcher(_named(function, function.__qualname__), _KERNEL | _INNER | options)


inlined = partial(compile_inner, forceinline=True)  # a call counts the references of all arrays
# What an inner function calls is optimised with each of its callers again.  A pasted one is no
# function for the compiler, which takes a fifth less time.
pasted = partial(compile_inner, inline="always")


def compile_kernel(function: Callable[..., Any], name: str, *, cached: bool) -> Callable[..., Any]:
    """Compile a loop over flat arrays, which releases the interpreter lock."""
    named = _named(function, name)
    dispatcher: Any = _dispatcher(named, _KERNEL)
    if cached:
        # RuntimeError: no folder for the cache can be written
        with contextlib.suppress(OSError, RuntimeError):
            dispatcher._cache = _NamedCache(named)  # type: ignore[no-untyped-call]
    return dispatcher  # type: ignore[no-any-return]


@cache
def cached_kernel(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a kernel of ours with its code on disk, once for each name: that of its types."""
    return compile_kernel(function, name, cached=True)


def _named(function: Callable[..., Any], name: str) -> FunctionType:
    """Return a copy of a function, whose name identifies the values that it captures.

    The linker finds compiled functions by their names.  Code from the disk cache has functions that
    another process compiled; one with the same name and another content would take their place.
    """
    plain = cast(FunctionType, function)
    copy = FunctionType(
        plain.__code__, plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__
    )
    copy.__qualname__ = copy.__name__ = f"{name}_{source_hash(function)}"
    return copy


def is_ours(*classes: type) -> bool:
    """Return whether all classes belong to this package; only then is their code cached."""
    return all(cls.__module__.split(".")[0] == __name__.split(".")[0] for cls in classes)


def source_hash(function: Callable[..., Any]) -> str:
    """Return a short hash of the sources of a function, compiled or not.

    The sources are the files of the function and of all functions that it captures, directly or
    indirectly, the names of these functions, and the values of all captured constants.
    """
    parts = {_file_hash(__file__)}  # which has the compiler's options
    waiting, visited = [_plain_function(function)], set()
    while waiting:
        current = waiting.pop()
        if current is None or current in visited:
            continue
        visited.add(current)
        path = current.__code__.co_filename
        parts.add(f"{Path(path).name} {_file_hash(path)}")
        parts.add(f"{current.__code__.co_qualname} {current.__code__.co_firstlineno}")
        captured = inspect.getclosurevars(current)
        for name, value in [*captured.nonlocals.items(), *captured.globals.items()]:
            if _is_constant(value):
                parts.add(f"{name}={value!r}")
            waiting.append(_plain_function(value))
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:12]


def _plain_function(value: Any) -> FunctionType | None:
    """Return a Python function, or that of a compiled function; None for any other value."""
    function = getattr(value, "py_func", value)
    return function if isinstance(function, FunctionType) else None


def _is_constant(value: Any) -> bool:
    """Return whether a value is None, a number, a string, or a tuple of these."""
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return value is None or isinstance(value, bool | int | float | str)


@cache
def _file_hash(path: str) -> str:
    """Return a hash of a file, or of its path if it does not exist (code from a string)."""
    source = Path(path)
    content = source.read_bytes() if source.is_file() else path.encode()
    return hashlib.sha256(content).hexdigest()
