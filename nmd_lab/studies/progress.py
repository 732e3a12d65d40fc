"""A progress bar over the fits of a study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def with_progress(
    records: Iterable[dict[str, Any]], total: int, show: bool
) -> Iterator[dict[str, Any]]:
    """Pass records on and show how many are done, how long the rest will take, and what failed.

    Parameters
    ----------
    records : iterable of dict
        Records of fits.
    total : int
        How many there will be.
    show : bool
        Whether to show anything.
    """
    if not show or total == 0:
        yield from records
        return
    from tqdm.auto import tqdm  # a widget in Jupyter, text elsewhere

    bad: dict[str, int] = {}
    # The rate is that of the last twenty fits or so: the first ones compile.
    with tqdm(total=total, unit="fit", smoothing=0.05) as bar:
        for record in records:
            if record["status"] != "done":
                bad[record["status"]] = bad.get(record["status"], 0) + 1
                words = ", ".join(f"{count} {status}" for status, count in bad.items())
                bar.set_postfix_str(words, refresh=False)
            bar.update()
            yield record
