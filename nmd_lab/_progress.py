"""A progress bar over the states of a run."""

from __future__ import annotations

from collections.abc import Iterator

from nmd_lab.solver.admm import State


def with_progress(states: Iterator[State], total: int, show: bool | None) -> Iterator[State]:
    """Pass states on and show how far the run is.

    Parameters
    ----------
    states : iterator of State
        The iteration.
    total : int
        Most iterations.
    show : bool or None
        None: only on a terminal, and only after a second.
    """
    if show is False:
        yield from states
        return
    if show:
        from tqdm.auto import tqdm  # a widget in Jupyter, text elsewhere
    else:
        from tqdm import tqdm
    disable, delay = (False, 0) if show else (None, 1)
    with tqdm(total=total, unit="it", disable=disable, delay=delay, leave=bool(show)) as bar:
        for state in states:
            bar.set_postfix_str(f"error {state.relative_error:.3g}", refresh=False)
            bar.update()
            yield state
