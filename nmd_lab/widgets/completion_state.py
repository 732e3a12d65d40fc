"""What the completion explorer knows and does, without anything to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import check_rank, check_share
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.solver.options import CONSTRAINTS, OFFSETS
from nmd_lab.solver.prepare import Prepared, prepare

from ._completion_data import BUNDLED, TABLE, Ratings, read_ratings, reading_code
from .code import fit_call
from .fields import Field, SettingsState, check_option
from .live_fit import LiveFit

YOURS = "your ratings"


class Entry(NamedTuple):
    """One entry of a row: the label of its column, what is known and what is predicted."""

    label: str
    known: float
    predicted: float


class CompletionState(SettingsState):
    """Partly observed entries, a model of them, and a fit that can be stopped.

    Parameters
    ----------
    ratings : matrix or DataFrame, optional
        A long table with one observation a line, or anything that `nmd_lab.complete` takes;
        without it one is chosen by name.
    row, column, value : str
        For a table: which of its columns hold the labels and the values.
    titles : mapping, optional
        Words for the labels of columns; by default the table's column "title", if there is one.
    **values
        Settings to begin with, see `fields`.

    Examples
    --------
    >>> state = CompletionState(data="generated", rank=3, iterations=20)
    >>> state.start()
    >>> state.fit.join(60), state.fit.phase
    (True, 'finished')
    """

    fields = (
        Field("data", "Data", "choice", group="Data"),
        Field("validation", "Held out", "share", (), "Data", "Share that validates the fit"),
        Field("seed", "Seed", "integer", (), "Data", "Of the split and the start"),
        Field("rank", "Rank", "integer", (), "Model", "Number of components"),
        Field("alpha", "Ridge alpha", "number", (), "Model", "Keeps components and offsets small"),
        Field("offsets", "Offsets", "choice", OFFSETS, "Model", "What is added to W H"),
        Field("constraint", "Constraint", "choice", CONSTRAINTS, "Solver", "Where T = W H holds"),
        Field("patience", "Patience", "integer", (), "Solver", "Iterations without a lower error"),
        Field("iterations", "Iterations", "integer", (), "Solver", "Of a run, and of a Continue"),
    )

    def __init__(
        self,
        ratings: Any = None,
        *,
        row: str = TABLE["row"],
        column: str = TABLE["column"],
        value: str = TABLE["value"],
        titles: Mapping[Any, str] | None = None,
        **values: Any,
    ) -> None:
        self.ratings = ratings
        self._columns = {"row": row, "column": column, "value": value}
        self._titles = titles
        self.options = {"data": ([YOURS] if ratings is not None else []) + list(BUNDLED)}
        super().__init__(
            {
                "data": self.options["data"][0],
                "validation": 0.1,
                "seed": 0,
                "rank": 8,
                "alpha": 15.0,
                "offsets": "both",
                "constraint": "auto",
                "patience": 20,
                "iterations": 200,
            }
        )
        self._loaded: tuple[str, Ratings] | None = None
        for name, given in values.items():
            self.set(name, given)
        if "rank" not in values:
            self.values["rank"] = min(8, *self.observations.shape)
        self.fit = LiveFit()
        self.running: dict[str, Any] = {}
        self._arguments: dict[str, Any] = {}

    @property
    def data(self) -> Ratings:
        """The chosen data."""
        name = self.values["data"]
        if self._loaded is None or self._loaded[0] != name:
            if name == YOURS:
                loaded = read_ratings(self.ratings, self._columns, self._titles)
            else:
                loaded = read_ratings(BUNDLED[name].load(), TABLE, None)
            self._loaded = name, loaded
        return self._loaded[1]

    @property
    def observations(self) -> SparseObservations:
        """What is observed of the chosen data."""
        return self.data.observations

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the fit, the data apart."""
        values = self.values
        arguments = {
            "rank": values["rank"],
            "offsets": values["offsets"],
            "alpha": values["alpha"],
            "constraint": values["constraint"],
            "random_state": values["seed"],
            "max_iter": values["iterations"],
        }
        if values["validation"] > 0:
            arguments |= {"validation": values["validation"], "patience": values["patience"]}
        return arguments

    def reasons(self) -> dict[str, str]:
        """Return for each setting that has no effect now why that is so."""
        idle = {}
        if len(self.options["data"]) == 1:
            idle["data"] = "there is only one set"
        if self.values["validation"] == 0:
            idle["patience"] = "nothing is held out"
        return idle

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return for settings what raises an error if they are wrong."""
        values = self.values
        return {
            "validation": lambda: check_share("validation", values["validation"]),
            "seed": lambda: check_option("random_state", values["seed"]),
            "rank": lambda: check_rank(values["rank"], self.observations.shape),
            "alpha": lambda: check_option("alpha", values["alpha"]),
            "patience": lambda: check_option("patience", values["patience"]),
            "iterations": lambda: check_option("max_iter", values["iterations"]),
        }

    @property
    def changed(self) -> bool:
        """Whether the settings are no longer those of the fit that is there."""
        now = {n: v for n, v in self.values.items() if n != "iterations"}
        return bool(self.running) and now != self.running

    def start(self) -> None:
        """Begin a fit with the settings as they are."""
        arguments, matrix = self.arguments(), self.data.matrix
        self.running = {n: v for n, v in self.values.items() if n != "iterations"}
        self._arguments, self._fitted = arguments, self.observations

        def make() -> Prepared:
            named = dict(arguments)
            rank = named.pop("rank")
            return prepare(matrix, rank, "identity", "frobenius", absent_are_zeros=False, **named)

        self.fit.start(make, self.values["iterations"])

    def proceed(self) -> None:
        """Go on with the fit that is there."""
        self.fit.proceed(self.values["iterations"])

    def reset(self) -> None:
        """Forget the fit."""
        self.running = {}
        self.fit.reset()

    def entries(self, row: int, top: int) -> tuple[list[Entry], list[Entry]]:
        """Return the known entries of a row, and the best that it does not know yet.

        Parameters
        ----------
        row : int
            Position of the row.
        top : int
            How many of each at most, from the largest value down.
        """
        observations = self.observations
        predicted = np.full(observations.shape[1], np.nan)
        if self.fit.phase != "ready" and self._fitted is observations:
            predicted = self._predictions(row)
        own = slice(observations.indptr[row], observations.indptr[row + 1])
        columns, values = observations.indices[own], observations.values[own]
        labels, titles = self.data.labels("columns"), self.data.titles

        def entry(column: int, value: float) -> Entry:
            label = labels[column]
            return Entry(str(titles.get(label, label)), value, float(predicted[column]))

        order = np.argsort(-values, kind="stable")[:top]
        known = [entry(int(columns[k]), float(values[k])) for k in order]
        if np.isnan(predicted).all():
            return known, []
        unknown = predicted.copy()
        unknown[columns] = -np.inf
        best = [k for k in np.argsort(-unknown, kind="stable")[:top] if unknown[k] > -np.inf]
        return known, [entry(int(k), float("nan")) for k in best]

    def _predictions(self, row: int) -> NDArray[Any]:
        """Return the model's row: of the result, or of the last state while it runs."""
        fit, state = self.fit.result, self.fit.state
        n = self._fitted.shape[1]
        if fit is not None and self.fit.phase != "running":
            return fit.predict(np.full(n, row), np.arange(n))
        if state is None:
            return np.full(n, np.nan)
        model: NDArray[Any] = state.left[row] @ state.right
        return model

    def code(self, name: str | None = None) -> str:
        """Return a cell that repeats the fit, or one with these settings if there is none.

        Parameters
        ----------
        name : str, optional
            How the notebook calls the user's ratings.
        """
        result = self.fit.result if self.running else None
        values = {**self.values, **(self.running if result is not None else {})}
        arguments = self._arguments if result is not None else self.arguments()
        yours = values["data"] == YOURS
        given, columns = (self.ratings, self._columns) if yours else (None, TABLE)
        source = (name or "...") if yours else BUNDLED[values["data"]].code
        lines, data = reading_code(given, source, columns)
        return f"import nmd_lab as nmd\n\n{lines}" + fit_call(result, "complete", data, arguments)
