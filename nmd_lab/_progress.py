"""A progress bar around any iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    total: int | None, show: bool | None, *, done: int = 0, unit: str = "it"
) -> Iterator[Callable[[str], None]]:
    """Give a function that shows one more item and a text; a total of None is unknown."""
    if show is False or total == 0:
        yield lambda text: None
        return
    if show:
        from tqdm.auto import tqdm  # a widget in Jupyter, text elsewhere
    else:
        from tqdm import tqdm
    disable, delay = (False, 0) if show else (None, 1)
    with tqdm(
        total=total, initial=done, unit=unit, disable=disable, delay=delay, leave=bool(show)
    ) as bar:

        def update(text: str) -> None:
            if text:
                bar.set_postfix_str(text, refresh=False)
            bar.update()

        yield update
