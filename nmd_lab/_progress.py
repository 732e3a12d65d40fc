"""A progress bar around any iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def progress_bar(
    total: int, show: bool | None, *, done: int = 0, unit: str = "it"
) -> Iterator[Callable[[str], None]]:
    """Give a function that shows one more item and a text."""
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


def with_progress(
    items: Iterable[T],
    total: int,
    show: bool | None,
    *,
    text: Callable[[T], str] = lambda item: "",
    unit: str = "it",
) -> Iterator[T]:
    """Yield the items and show how many of them are done."""
    with progress_bar(total, show, unit=unit) as update:
        for item in items:
            update(text(item))
            yield item
