"""Data that are refused: what is wrong with them, and buttons that put it right."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nmd_lab.data.long_table import RepeatedPairs
from nmd_lab.data.refused_columns import DROPPED, description, refused_columns
from nmd_lab.data.typed_table import MOST_CATEGORIES
from nmd_lab.widgets.states.fields import FitState

from .history import History
from .view import View

Ways = dict[str, Callable[[], Any]]
"""What can be done, in words, and functions that return the data after it."""


class MendingView(View):
    """A question, and a button for each answer; `again` gives the view of what it makes."""

    can_fit = False

    def __init__(self, fault: str, ways: Ways, again: Callable[[Any], View]) -> None:
        super().__init__(FitState({}, {}), "fit.nc")
        self.fault, self.ways, self.said = fault, ways, "first a question about the data"
        self.actions["mend"] = lambda message: again(ways[message["way"]]())

    def parts(self, history: History) -> dict[str, Any]:
        """Return the question."""
        return {"facts": {"asked": {"fault": self.fault, "ways": list(self.ways)}}}

    def cannot_run(self) -> str:
        """Return why nothing runs here."""
        return self.fault


def ways_with_text(frame: Any) -> tuple[str, Ways] | None:
    """Return what is wrong with columns of text, and what can be done; None for other faults."""
    refused = refused_columns(frame)
    if not refused or not set(refused) <= set(DROPPED):
        return None
    names = [name for some in refused.values() for name in some]
    most = min(MOST_CATEGORIES, len(frame) // 2)
    classes = [name for name in refused.get("identifiers", []) if frame[name].nunique() <= most]
    others = [name for name in names if name not in classes]
    kind = " of text" * (set(refused) == {"identifiers"})
    count = f"{len(names)} columns" if len(names) > 1 else "column"
    ways: Ways = {
        f"leave out the {count}{kind} ({_listed(names)})": lambda: frame.drop(columns=names)
    }
    if classes:
        rest = f", leave out {_listed(others)}" if others else ""
        ways[f"treat {_listed(classes)} as classes{rest}"] = lambda: frame.drop(
            columns=others
        ).astype(dict.fromkeys(classes, "category"))
    return f"The table has {description(frame, refused)}.", ways


def ways_with_repeats(fault: RepeatedPairs) -> tuple[str, Ways]:
    """Return what is wrong with a long table, and what can be done."""
    frame, pair, value = fault.frame, list(fault.pair), fault.value
    count = int((~frame[frame.duplicated(pair)].duplicated(pair)).sum())
    cells = f"{count} cells have" if count > 1 else "One cell has"
    last = partial(frame.drop_duplicates, pair, keep="last")

    def mean() -> Any:
        means = frame.groupby(pair)[value].transform("mean")
        return frame.assign(**{value: means}).drop_duplicates(pair, keep="last")

    ways: Ways = {"take the mean": mean, "take the last": last}
    return f"{cells} several values: lines with the same {pair[0]} and {pair[1]}.", ways


def _listed(names: Any) -> str:
    return ", ".join(map(str, names))
