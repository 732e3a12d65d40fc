"""Why a fit stopped: a code for programs and a sentence for people."""

from __future__ import annotations

from typing import Literal, Self, get_args

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
    "other",
]
"""What ended a fit.

"converged": a rule of `tol`.  "max_iter", "time_limit", "callback": these arguments.
"validation": early stopping.  "behind": a start that would not reach the first one's objective.
"not finite": an overflow.  "interrupted": Ctrl-C.  "not run": a start that was left out.
"direct": a method without iterations.  "other": a reason without a code, as in files of version
0.1.0 and in results of functions outside the package.
"""


class StopReason(str):
    """The sentence that says why a fit stopped; its attribute `code` is for programs.

    Parameters
    ----------
    code : str
        One of `StopCode`.
    text : str
        One sentence.

    Examples
    --------
    >>> reason = StopReason("max_iter", "max_iter: 500 iterations done")
    >>> reason.code
    'max_iter'
    >>> print(reason)
    max_iter: 500 iterations done
    """

    code: StopCode

    def __new__(cls, code: StopCode, text: str) -> Self:
        """Check the code and make the sentence."""
        if code not in get_args(StopCode):
            raise ValueError(f"code={code!r} is unknown: choose one of {list(get_args(StopCode))}.")
        reason = super().__new__(cls, text)
        reason.code = code
        return reason

    def __getnewargs__(self) -> tuple[StopCode, str]:  # type: ignore[override]
        """Return what copying and pickling need."""
        return self.code, str(self)

    @classmethod
    def of(cls, reason: str) -> StopReason:
        """Return a reason as it is, and a sentence without a code as "other"."""
        return reason if isinstance(reason, StopReason) else cls("other", reason)
