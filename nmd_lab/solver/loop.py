"""The loop of fits and of posteriors: step after step, until there is a reason to end.

It shows progress, asks for Ctrl-C, and lets the state be written before each step.
"""

from __future__ import annotations

from collections.abc import Callable

from nmd_lab._runtime.progress import Interruption, StopReason, progress_bar

Step = Callable[[], tuple[StopReason | None, str]]
"""Function that does one step, and returns a reason to end with it, and a text to show."""


def nothing() -> None:
    """Do nothing before a step."""


def loop(
    step: Step,
    total: int,
    *,
    done: int = 0,
    unit: str = "it",
    progress: bool | None = False,
    interruption: Interruption | None = None,
    before_each: Callable[[], None] = nothing,
) -> StopReason:
    """Do steps, of which some are done, and return the reason to end."""
    with progress_bar(total, progress, done=done, unit=unit) as show:
        while True:
            before_each()
            reason, text = step()
            done += 1
            show(text)
            if interruption is not None:
                interruption.begin()
            if reason is None and interruption:
                reason = interruption.reason(done)
            if reason is not None:
                return reason
