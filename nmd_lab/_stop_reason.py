"""Why a fit stopped: a code for programs and a sentence for people."""

from __future__ import annotations

from typing import Any, Literal, Self, get_args

StopCode = Literal[
    "converged",
    "max_iter",
    "time_limit",
    "callback",
    "validation",
    "behind",
    "not finite",
    "interrupted",
    "not run",
    "direct",
    "draws",
    "other",
]
"""Codes of what ended a fit.

"converged": a stopping rule of `tol`.  "max_iter", "time_limit", "callback": the argument of that
name.  "validation": early stopping.  "behind": the start could no longer reach the objective of the
first start.  "not finite": an overflow.  "interrupted": Ctrl-C.  "not run": the start
was not run.  "direct": the method has no iterations.  "draws": a sampler
has done all its draws.  "other": the reason has no code, as in results
of functions outside the package.
"""


class StopReason(str):
    """Why a fit stopped: a string for people, with the attribute `code` for programs."""

    code: StopCode

    def __new__(cls, code: StopCode, text: str) -> Self:
        """Check the code and create the string."""
        if code not in get_args(StopCode):
            raise ValueError(f"code={code!r} is unknown: choose one of {list(get_args(StopCode))}.")
        reason = super().__new__(cls, text)
        reason.code = code
        return reason

    def __getnewargs__(self) -> tuple[StopCode, str]:  # type: ignore[override]
        """Return the arguments of `__new__`, for copying and pickling."""
        return self.code, str(self)

    @classmethod
    def read(cls, code: str, text: str) -> StopReason:
        """Return a reason from a file; "other" for a code of a newer version."""
        valid: Any = code if code in get_args(StopCode) else "other"
        return cls(valid, text)

    @classmethod
    def of(cls, reason: str) -> StopReason:
        """Return a `StopReason` unchanged, and any other string with the code "other"."""
        return reason if isinstance(reason, StopReason) else cls("other", reason)
