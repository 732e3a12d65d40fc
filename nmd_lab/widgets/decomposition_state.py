"""State of the decomposition explorer: data, settings and fit, without any widget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmd_lab._checks import check_share
from nmd_lab.baselines import truncated_svd
from nmd_lab.data.sparse import is_sparse
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.nonlinearities import NONLINEARITIES
from nmd_lab.model.proximal import make_pair
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.admm import State
from nmd_lab.solver.options import Options

from ._decomposition_data import NOISES, MatrixData, corrupted, corrupting_code
from ._held_out import HiddenEntries, relative
from .choosing_state import ChoosingState
from .code import fit_call
from .data_choices import load_matrix, matrix_choices
from .fields import Field, as_penalty, check_option

OWN_DATA = "your X"
"""Option for the data that the user gave."""

PENALTIES = ("auto", "balanced", "paper")
"""Rules for ρ that are suggested."""


class DecompositionState(ChoosingState):
    """A matrix, a model of it, and a fit that can be stopped.

    Parameters
    ----------
    X : matrix, optional
        Data; by default a data set of the library, chosen by its name.
    shape : (int, int), optional
        Height and width of the picture that each row of X is.
    **values
        Starting values of settings, see `fields`.

    Attributes
    ----------
    X : matrix or None
        Data of the user.
    options : dict of str to list of str
        Options of the settings whose options depend on the data.
    errors : dict of str to (float, float)
        Relative errors at observed and at hidden entries, of the finished fit and of the SVD.
    hidden : HiddenEntries or None
        The hidden entries at which the iterates of the fit are measured, see `LiveFit.held_out`.

    Raises
    ------
    TypeError
        If X is sparse.

    Examples
    --------
    >>> state = DecompositionState(rank=5, iterations=20)
    >>> state.start()
    >>> state.fit.join(60), state.fit.result.n_iter
    (True, 20)
    """

    fields = (
        Field("data", "Data", "choice", group="Data"),
        Field("noise", "Noise", "choice", NOISES, "Data", "Noise added to every entry",
              {"salt_and_pepper": "salt and pepper"}),
        Field("level", "Noise level", "number", (), "Data"),
        Field("missing", "Missing", "share", (), "Data", "Share of hidden entries"),
        Field("seed", "Seed", "integer", (), "Data", "Seed of noise, holes and random starts"),
        Field("nonlinearity", "f", "choice", tuple(NONLINEARITIES), "Model", "X ≈ f(W H)",
              {name: f.label for name, f in NONLINEARITIES.items()}),
        Field("low", "Lower bound", "number", (), "Model"),
        Field("high", "Upper bound", "number", (), "Model"),
        Field("loss", "Loss", "choice", tuple(LOSSES), "Model", "",
              {name: loss.label for name, loss in LOSSES.items()}),
        Field("rank", "Rank", "integer", (), "Model", "Number of components", auto=True),
        Field("alpha", "Ridge alpha", "number", (), "Solver", "Keeps W and H small", auto=True),
        Field("penalty", "Penalty", "text", PENALTIES, "Solver", "A rule or a number"),
        Field("tol", "Tolerance", "number", (), "Solver",
              "Relative gain that is worth 100 more iterations; 0: all iterations"),
        Field("iterations", "Iterations", "integer", (), "Solver", "Number of each run"),
    )  # fmt: skip
    numbers = MappingProxyType({"rank": 10, "alpha": 0.0})

    def __init__(self, X: Any = None, shape: tuple[int, int] | None = None, **values: Any) -> None:
        if is_sparse(X):
            raise TypeError("X is sparse: give it to CompletionExplorer, or X.toarray() here.")
        self.X, self._shape = X, shape
        self.options = {"data": ([OWN_DATA] if X is not None else []) + list(matrix_choices())}
        defaults = {
            "data": self.options["data"][0],
            "noise": "none",
            "level": 0.1,
            "missing": 0.0,
            "seed": 0,
            "nonlinearity": "relu",
            "low": 0.0,
            "high": 1.0,
            "loss": "frobenius",
            "rank": 10,
            "alpha": 0.0,
            "penalty": "auto",
            "tol": Options().tol,
            "iterations": 300,
        }
        super().__init__(defaults)
        self._data: tuple[Any, MatrixData] | None = None
        for name, value in values.items():
            self.set(name, value)
        if "rank" not in values:
            self.values["rank"] = min(10, *self.data.shape)
        self.fit.finishing = self._compare
        self._clear()

    def _clear(self) -> None:
        """Forget what belongs to a fit."""
        self.errors: dict[str, tuple[float, float]] = {}
        self.hidden: HiddenEntries | None = None

    def source(self) -> Any:
        """Return the original matrix."""
        return self.X if self.values["data"] == OWN_DATA else load_matrix(self.values["data"])

    @property
    def data(self) -> MatrixData:
        """The data with the noise and the holes of the present settings."""
        key = tuple(self.values[name] for name in ("data", "noise", "level", "missing", "seed"))
        if self._data is None or self._data[0] != key:
            shape = self._shape if self.values["data"] == OWN_DATA else None
            self._data = key, MatrixData(self.source(), self.values, shape)
        return self._data[1]

    def arguments(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the arguments of the fit without the matrix, see `ChoosingState.arguments`."""
        values = self.values if values is None else values
        return {
            "rank": values["rank"],
            "nonlinearity": self.nonlinearity(values),
            "loss": values["loss"],
            "penalty": as_penalty(values["penalty"]),
            "alpha": values["alpha"],
            "offsets": "none",
            "tol": values["tol"],
            "random_state": values["seed"],
            "max_iter": values["iterations"],
        }

    def reasons(self) -> dict[str, str]:
        """Return why settings have no effect now, by the name of each such setting."""
        values, reasons = self.values, {}
        if len(self.options["data"]) == 1:
            reasons["data"] = "there is only one matrix"
        if values["noise"] == "none":
            reasons["level"] = "no noise is added"
        if not self._has_bounds:
            reasons["low"] = reasons["high"] = f"{values['nonlinearity']} has no bounds"
        return reasons

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each checked setting that raises an error if it is wrong."""
        values = self.values

        def loss() -> None:
            if not 0 <= values["missing"] < 1:
                return
            pair = make_pair(self.nonlinearity(), values["loss"])
            observed = self.data.observed
            pair.loss.check_data(float(np.nanmin(observed)), float(np.nanmax(observed)))

        return {
            "missing": lambda: check_share("missing", values["missing"]),
            "level": lambda: corrupted(self.source(), values | {"missing": 0}),
            "seed": lambda: check_option("random_state", values["seed"]),
            "high": self.nonlinearity,
            "rank": lambda: self.check_rank(np.shape(self.source())),
            "alpha": lambda: check_option("alpha", values["alpha"]),
            "penalty": lambda: as_penalty(values["penalty"]),
            "tol": lambda: check_option("tol", values["tol"]),
            "iterations": lambda: check_option("max_iter", values["iterations"]),
            "loss": loss,
        }

    def start(self) -> None:
        """Start a fit with the present settings."""
        self._clear()
        data = self.fitted_data = self.data
        self._f = make_pair(self.nonlinearity(), self.values["loss"]).nonlinearity
        rows, columns = data.hidden
        if rows.size:
            self.hidden = HiddenEntries(data.original, rows, columns, self._f)
        measure = None if self.hidden is None else self.hidden.error
        self._launch(data.seen, absent_are_zeros=not data.has_holes, measure=measure)

    def reset(self) -> None:
        """Forget the fit."""
        self._clear()
        super().reset()

    def model(self, state: State, rows: Any, columns: Any) -> NDArray[np.floating]:
        """Return f(WH) of an iterate at the given rows and columns."""
        window: NDArray[np.floating] = self._f(state.W_aug[rows] @ state.H_aug[:, columns])
        return window

    def _compare(self, fit: Decomposition) -> None:
        """Measure the finished fit and the SVD of equal rank, and keep their errors."""
        data, errors = self.fitted_data, {}
        baseline = truncated_svd(data.observed, fit.rank)
        for name, each in ((f"{fit.nonlinearity.name}, {fit.loss.name}", fit), ("SVD", baseline)):
            model = each.labels.flatten(each.reconstruct().values)
            seen = ~np.isnan(data.observed)
            held_out = relative(data.original[data.hidden], model[data.hidden])
            errors[name] = relative(data.observed[seen], model[seen]), held_out
        if self.fit.result is fit:  # no new run has begun meanwhile
            self.errors = errors

    def code(self, name: str | None = None) -> str:
        """Return a notebook cell that repeats the fit, or that makes one if there is none.

        Parameters
        ----------
        name : str, optional
            Name of the user's X in the notebook.
        """
        result, values = self.fit.result, self.values
        if result is not None and self._arguments:
            values, arguments = values | self.fitted_settings, self._arguments
            holes = self.fitted_data.has_holes
        else:
            result, arguments = None, self.arguments()
            holes = values["missing"] > 0 or self.data.has_holes
        verb = "complete" if holes else "decompose"
        if arguments["alpha"] != "auto":
            arguments = {name: v for name, v in arguments.items() if name != "offsets"}
        if values["data"] != OWN_DATA:
            load = f"X = {matrix_choices()[values['data']].code}\n"
        else:
            load = "" if name == "X" else f"X = {name or '...'}  # your data\n"
        lines, seen = corrupting_code(values)
        return f"import nmd_lab as nmd\n{self.imports}\n{load}{lines}" + fit_call(
            result, verb, seen, arguments
        )
