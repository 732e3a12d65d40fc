"""A progress bar around any iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def with_progress(
    items: Iterable[T],
    total: int,
    show: bool | None,
    *,
    text: Callable[[T], str] | None = None,
    unit: str = "it",
    smoothing: float = 0.3,
) -> Iterator[T]:
    """Yield the items and show how many of them are done."""
    if show is False or total == 0:
        yield from items
        return
    if show:
        from tqdm.auto import tqdm  # a widget in Jupyter, text elsewhere
    else:
        from tqdm import tqdm
    disable, delay = (False, 0) if show else (None, 1)
    with tqdm(
        total=total, unit=unit, smoothing=smoothing, disable=disable, delay=delay, leave=bool(show)
    ) as bar:
        for item in items:
            if text is not None:
                bar.set_postfix_str(text(item), refresh=False)
            bar.update()
            yield item
