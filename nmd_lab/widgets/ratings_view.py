"""The explorer of ratings: the error where some are hidden, one person, films for them, a map."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nmd_lab.data.sparse import SparseObservations
from nmd_lab.model.fitted_values import FittedValues

from .charts import MOST_COMPONENTS, order_of, plane_part, texts
from .history import Field, History
from .live import LEVEL
from .ratings_state import LISTED, SORTS, CompletionState
from .view import Guess, ModelView

MOST_SUGGESTIONS = 500  # number of row labels that are suggested
MOST_MAPPED, NAMED = 3000, 120  # columns in the map, the most rated ones, and candidates for a name
REASONS, LEAST_MOVE = 2, 0.05  # ratings that say why a column is suggested, at most
NEAR = 6  # number of columns that light up beside one
YOU = "you"  # label of a person who is not in the data
DRAWN = "predicted by the draws; ● are hidden from them"


class CompletionView(ModelView):
    """Curves, results of the posterior, components, and the entries of one row."""

    state: CompletionState
    filename = "completion.nc"

    def __init__(self, state: CompletionState) -> None:
        super().__init__(state)
        self.before = self.search = ""
        self.sort: str = SORTS[0]
        self.asked = str(state.data.labels("rows")[0])
        self.actions |= {
            "ask": self._ask,
            "rate": lambda m: self.state.person.rate(m["column"], m["number"]),
        }

    @property
    def title(self) -> str:
        """The data and their size."""
        entries = self.state.observations
        (m, n), (who, what) = entries.shape, self._things
        return f"{entries.n_observed} ratings of {n} {what} by {m} {who}"

    @property
    def _things(self) -> tuple[str, str]:
        """The words for rows and for columns."""
        labels = self.state.observations.labels
        named = (("rows", labels.rows), ("columns", labels.columns))
        who, what = (f"{dims[0]}s" if len(dims) == 1 else plain for plain, dims in named)
        return who, what

    def guess(self) -> Guess:
        """Return how well the model guesses the ratings that are hidden, on their scale."""
        ends = self.state.person.ends
        scale = "" if ends is None else " of {:g}…\N{WORD JOINER}{:g}".format(*ends)
        what = self._things[1]
        return super().guess()._replace(things="ratings", of=what[:-1], range=scale)

    def code(self, explorer: Any) -> str:
        """Return a notebook cell that repeats the fit, and prints the suggestions."""
        code, state, (row, problem) = super().code(explorer), self.state, self._row()
        if state.fit.result is None or problem:
            return code
        drawn, sort = state.posterior is not None, self._sort(row)
        of = "" if state.columns is not None else "observed = X\n"
        if of and not isinstance(state.data.matrix, SparseObservations):
            of = "observed = nmd.observations_from_sparse(X)\n"
        imports = "import numpy as np\nimport pandas as pd\n\n"
        return f"{imports}{code}{of}{state.person.code(row, sort, state.least, drawn=drawn)}"

    def _sort(self, row: int | None) -> str:
        """Return the order of the suggestions; those for a row have no difference for it alone."""
        return self.sort if row is None else self.sort.replace("for_you", "highest")

    def select(self, selection: dict[str, Any] | None) -> None:
        """Show the entries of the row that was picked, also if it is the only one of a lasso."""
        before, now = self.selection or {}, selection or {}
        super().select(selection)
        row, rows = now.get("row"), now.get("rows") or []
        if row is None or row == before.get("row"):
            row = rows[0] if len(rows) == 1 and rows != before.get("rows") else None
        if row is not None:
            self.asked = str(self.state.data.labels("rows")[row])

    def parts(self, history: History) -> dict[str, Any]:
        """Return curves, intervals, components, the map of the columns, and the lists of a row."""
        state, shown = self.state, self.factors.sorted(self.state.shown)
        row, problem = self._row()
        state.off = self.factors.off(shown)
        labels, data = state.observations.labels, state.data
        columns = data.column_titles() if data.titles else texts(labels, "columns")
        parts = super().parts(history)
        parts |= self.factors.parts(shown, None, labels, self.lost(shown), columns)
        parts["facts"] |= {"lists": self._lists(row, problem)}
        parts["scatter"] = self._map(shown, row, problem)
        return parts

    def _map(self, shown: FittedValues | None, row: int | None, problem: str) -> Any:
        """Return the columns in the plane of two components, and where the person points."""
        if shown is None or (rank := shown.H.shape[0]) < 2:
            return None
        state, (a, b) = self.state, self.factors.shown_plane(rank)
        often = np.argsort(-state.counts, kind="stable")[:MOST_MAPPED]
        often = often[state.counts[often] >= state.least]
        x, y = shown.H[a, often], shown.H[b, often]
        plane = plane_part(rank, (a, b), (x, y), often) | {
            "things": self._things[1],
            "labels": state.data.column_titles(often),
            "named": list(range(min(often.size, NAMED))),
            "groups": [],
            "color": "",
            "values": [],
            "total": int(often.size),
        }
        if state.active.phase != "running":  # along which things slide
            every = np.ascontiguousarray(shown.H[:, often], dtype="<f4")
            plane["every"] = every[:MOST_COMPONENTS].tobytes()
        model, at = state.model_of(row, drawn=False)
        if model is not None and not problem and often.size:
            order, signs = order_of(state.shown or shown)
            w = np.asarray(model.W[at])[order] * signs
            # As far away as columns are: only the direction of a person means something here
            size = math.sqrt(float(np.mean(x**2 + y**2))) / (math.hypot(w[a], w[b]) or 1.0)
            plane["person"] = {"name": self.asked, "x": float(w[a] * size), "y": float(w[b] * size)}
        return plane

    def _ask(self, message: Mapping[str, Any]) -> None:
        """Change the row, the order of the list, or look for an item that can be rated."""
        name, text = message["name"], message["value"]
        self.search = text if name == "search" else ""
        if name == "row":
            self.before = self.before if self.asked == YOU else self.asked
            self.asked = text.strip()
        elif name == "item" and text:
            self.state.person.offer(text)
        elif name == "sort" and text in SORTS:
            self.sort = text
        elif name == "least" and text.isdecimal():
            self.state.least = int(text)

    def _row(self) -> tuple[int | None, str]:
        """Return the row that is asked for, None for the new person, and what is wrong with it."""
        if self.asked == YOU:
            return None, ""
        try:
            return self.state.data.find(self.asked), ""
        except ValueError as error:
            return 0, str(error)

    def _fields(self, problem: str) -> list[dict[str, Any]]:
        """Return the inputs above the list of ratings."""
        data, person = self.state.data, self.state.person
        rows = [YOU, *map(str, data.labels("rows")[:MOST_SUGGESTIONS])]
        fields = [Field("row", "Person", "text", rows, help="Label of a row, such as a user")]
        if self.asked == YOU:
            found = data.column_titles(person.search(self.search))
            about = "Words of a title, to rate it, too"
            fields = [Field("item", "+ title", "text", found, help=about, searched=True)]
        values = {"row": self.asked, "item": ""}
        return [field.shown(values, {"row": problem}) for field in fields]

    def _lists(self, row: int | None, problem: str) -> dict[str, Any]:
        """Return the ratings of a row or of the new person, and the best of the other columns."""
        state, person, sort = self.state, self.state.person, self._sort(row)
        known, best = [[], []]
        if not problem:
            known, best = (list(each.itertuples()) for each in state.entries(row, LISTED, sort))
        hidden = set() if row is None else set(state.hidden_of(row).tolist())

        def rating(entry: Any) -> dict[str, Any]:
            if row is not None:
                return {"rating": f"{entry.observed:g}"}
            stars = person.ratings.get(entry.column)
            return {"number": 0 if stars is None else person.levels.index(stars) + 1}

        def for_you(entry: Any) -> dict[str, Any]:
            return {} if math.isnan(entry.for_you) else {"for_you": f"{entry.for_you:+.1f}"}

        return {
            "you": row is None,
            "person": self.asked,
            "turn": self.before if row is None else YOU,
            "fields": self._fields(problem),
            "levels": person.levels,
            "known": [
                self._line(each) | {"hidden": each.column in hidden} | rating(each)
                for each in known
            ],
            "top": [self._line(each) | for_you(each) | {"n": each.n} for each in best],
            "sort": sort,
            "least": state.least,
            "about": self._about(row, {each.column: each for each in best}),
        }

    def _line(self, entry: Any) -> dict[str, Any]:
        """Return one column of the data with its prediction; its interval on the scale."""
        low, high = self.state.person.ends or (math.nan, math.nan)
        drawn, ends = not math.isnan(entry.low), None
        if drawn and high > low:
            ends = np.array([entry.low, entry.high, entry.predicted])
            ends = np.clip((ends - low) / (high - low), 0, 1).round(3).tolist()
        return {
            "column": entry.column,
            "title": entry.label,
            "near": self._near(entry.column),
            "predicted": "" if math.isnan(entry.predicted) else f"{entry.predicted:.1f}",
            "text": f"{100 * LEVEL:.0f} %: {entry.low:.3g} to {entry.high:.3g}" if drawn else "",
            "ends": ends,
        }

    def _near(self, column: int) -> list[int]:
        """Return the columns with enough ratings that are most like one."""
        shown, counts = self.state.shown, self.state.counts
        if shown is None or self.state.active.phase == "running":
            return []

        def directions() -> tuple[Any, Any]:
            often = np.flatnonzero(counts >= self.state.least)
            H = np.asarray(shown.H) / (np.linalg.norm(shown.H, axis=0) + 1e-12)
            return often, H

        often, H = self.memo("directions", directions, shown.H, self.state.least)
        like = often[np.argsort(-(H[:, column] @ H[:, often]), kind="stable")[: NEAR + 1]]
        return [int(k) for k in like if k != column][:NEAR]

    def _reasons(self, entry: Any) -> str:
        """Return which ratings of the new person move one column, and by how much."""
        column, state, ratings = entry.column, self.state, self.state.person.ratings
        of = column, dict(ratings), state.posterior, state.fit.result, list(state.off)
        moved = self.memo("reasons", lambda: state.because(column), *of)
        most = sorted(moved, key=lambda k: -abs(moved[k]))[:REASONS]
        most = [k for k in most if abs(moved[k]) > LEAST_MOVE]
        ends = f"{100 * LEVEL:.0f} % in {entry.low:.1f} to {entry.high:.1f}, "
        about = f"{entry.label}: {entry.predicted:.1f}, {ends * (entry.low <= entry.high)}"
        if not most:
            return f"{about}none of your stars alone moves it by more than {LEAST_MOVE}"
        titles = zip(state.data.column_titles(most), most, strict=True)
        why = [f"{title} ({ratings[k]:g}★) {moved[k]:+.1f}" for title, k in titles]
        return f"{about}for you {entry.for_you:+.1f}, of it {', '.join(why)}"

    def _about(self, row: int | None, best: Mapping[Any, Any]) -> str:
        """Return what the stars of the new person do; or what is missing for suggestions."""
        state, column = self.state, (self.selection or {}).get("column")
        share = 100 * state.sample.done // max(state.sample.planned, 1)
        follow = f"draws follow ({share} %): with 90 % intervals, and another list"
        later = follow if state.sample.phase == "running" else ""
        later = "by the fit without what is off, which has no intervals" if state.off else later
        if state.model_of(row)[0] is None:
            return "suggestions follow once the model is fitted"
        if row is not None:
            return later or DRAWN * (state.posterior is not None)
        if not state.person.ratings:
            return "give some stars: the list follows them"
        if column is not None and column in best:
            return self._reasons(best[column])
        moved = round(state.added().mean(), 1) + 0.0  # no -0.0
        added = f"your stars add {moved:+.1f} to all {self._things[1]}, and “for you” to each"
        added += ", which orders the quarter predicted highest" * (self.sort == SORTS[0])
        return f"{added}; a click on one says why" + f"; {later}" * bool(later)
