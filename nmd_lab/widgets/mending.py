"""Questions about faulty data, and ways to put them right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from nmd_lab.data.frames import DROPPED, description, refused_columns
from nmd_lab.data.long_table import RepeatedPairs
from nmd_lab.data.typed_table import MOST_CATEGORIES

from .code import name_in_notebook
from .history import History
from .settings import FitState
from .view import View


class Way(NamedTuple):
    """A way to put data right."""

    mended: Callable[[], Any]  # returns the data after it
    code: str  # behind the code of the data before it


Ways = dict[str, Way]  # by the words of their buttons


class MendingView(View):
    """A question, and a button for each answer; `again` gives the view of what it makes."""

    can_fit = False

    def __init__(self, fault: str, ways: Ways, X: Any, again: Callable[[Any], View]) -> None:
        super().__init__(FitState({}, {}), "fit.nc")
        self.fault, self.ways, self.said = fault, ways, "first a question about the data"

        def mend(message: Mapping[str, Any]) -> View:
            way = ways[message["way"]]
            view, name = again(way.mended()), self.data_code or name_in_notebook(X)
            view.data_code = None if name is None else f"{name}{way.code}"
            view.state.imports = self.state.imports
            return view

        self.actions["mend"] = mend

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
    listed = ", ".join(map(str, names))
    most = min(MOST_CATEGORIES, len(frame) // 2)
    classes = [name for name in refused.get("identifiers", []) if frame[name].nunique() <= most]
    others = [name for name in names if name not in classes]
    kind = " of text" * (set(refused) == {"identifiers"})
    count = f"{len(names)} columns" if len(names) > 1 else "column"
    left_out = Way(lambda: frame.drop(columns=names), f".drop(columns={names!r})")
    ways: Ways = {f"leave out the {count}{kind} ({listed})": left_out}
    if classes:
        rest = f", leave out {', '.join(map(str, others))}" if others else ""
        types = dict.fromkeys(classes, "category")
        treat = f"treat {', '.join(map(str, classes))} as classes{rest}"
        dropped = f".drop(columns={others!r})" if others else ""
        ways[treat] = Way(
            lambda: frame.drop(columns=others).astype(types), f"{dropped}.astype({types!r})"
        )
    return f"The table has {description(frame, refused)}.", ways


def ways_with_repeats(fault: RepeatedPairs) -> tuple[str, Ways]:
    """Return what is wrong with a long table, and what can be done."""
    frame, pair, value = fault.frame, list(fault.pair), fault.value
    count = int((~frame[frame.duplicated(pair)].duplicated(pair)).sum())
    cells = f"{count} cells have" if count > 1 else "One cell has"
    last = partial(frame.drop_duplicates, pair, keep="last")
    last_code = f'.drop_duplicates({pair!r}, keep="last")'

    def mean() -> Any:
        means = frame.groupby(pair)[value].transform("mean")
        return frame.assign(**{value: means}).drop_duplicates(pair, keep="last")

    means_code = f'X.groupby({pair!r})[{value!r}].transform("mean")'
    mean_code = f".pipe(lambda X: X.assign(**{{{value!r}: {means_code}}})){last_code}"
    ways: Ways = {"take the mean": Way(mean, mean_code), "take the last": Way(last, last_code)}
    return f"{cells} several values: lines with the same {pair[0]} and {pair[1]}.", ways
