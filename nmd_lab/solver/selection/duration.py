"""How long a choice takes: a bar of its trials, and a sentence before it if that is long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nmd_lab._runtime.progress import progress_bar

from .setting import Trial

WORK = 1000  # iterations of a choice that take as long as those of its first trials
WORK_RIDGE = 500  # the same where only the ridge is chosen
LONG = 10.0  # seconds from which a person is told before


class Duration:
    """Shows the trials of a choice.

    Parameters
    ----------
    show : callable
        Function that shows one more trial and a text.
    is_told : bool
        Whether to write a sentence, too, if the choice takes long.
    is_ridge_alone : bool
        Whether the rank is fixed.
    at_most : float
        Seconds after which a time limit ends the choice.
    """

    def __init__(
        self, show: Callable[[str], None], is_told: bool, is_ridge_alone: bool, at_most: float
    ) -> None:
        self._show, self._is_told, self._at_most = show, is_told, at_most
        self._work = WORK_RIDGE if is_ridge_alone else WORK
        self._text = ""

    def foresee(self, trial: Trial) -> None:
        """Tell how long the choice takes, by the speed of one of the first trials."""
        seconds = min(self._work * trial.seconds / max(trial.n_iter, 1), self._at_most)
        if seconds < LONG:
            return
        self._text = f"about {in_words(seconds)} in all"
        if self._is_told:
            print(
                f"The choice of settings takes about {in_words(seconds)}; time_limit= ends it "
                "sooner, and with rank= or alpha= there is less to choose.",
                file=sys.stderr,
            )

    def show(self) -> None:
        """Show one more trial."""
        self._show(self._text)


@contextmanager
def shown_duration(
    progress: bool | None, is_ridge_alone: bool, at_most: float
) -> Iterator[Duration]:
    """Show a bar of trials as a fit shows one of iterations; a sentence where there is no bar."""
    is_told = progress is None and not sys.stderr.isatty()
    with progress_bar(None, progress, unit="trial") as show:
        yield Duration(show, is_told, is_ridge_alone, at_most)


def in_words(seconds: float) -> str:
    """Return a duration as it is said.

    >>> in_words(14.2), in_words(140), in_words(8000)
    ('14 s', '2 min', '2.2 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
