"""What the decomposition explorer knows and does, without anything to look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nmd_lab._checks import check_rank, check_share
from nmd_lab.baselines import truncated_svd
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.model.nonlinearities import MinMax, Nonlinearity
from nmd_lab.model.proximal import make_pair
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.admm import State
from nmd_lab.solver.prepare import Prepared, prepare

from ._decomposition_data import NOISES, Data, corrupted, corrupting_code
from .code import fit_call
from .data_choices import load_matrix, matrices
from .fields import Field, SettingsState, as_penalty, check_option
from .live_fit import LiveFit

YOURS = "your X"
MODELS = ("relu", "square", "minmax", "modulus", "identity")
LOSSES = ("frobenius", "l1", "kl")
CORRUPTION = ("data", "noise", "level", "missing", "seed")
LEVELS = {
    "gaussian": "standard deviation, in the units of X",
    "salt_and_pepper": "share of the entries",
    "poisson": "counts per unit of X",
}
LIVE = 20_000
"""Hidden entries at which a running fit is judged, at most."""


class DecompositionState(SettingsState):
    """A matrix, a model of it, and a fit that can be stopped.

    Parameters
    ----------
    X : matrix, optional
        The data; without it one is chosen by name.
    shape : (int, int), optional
        Height and width of the picture that each row of X is.
    **values
        Settings to begin with, see `fields`.

    Examples
    --------
    >>> state = DecompositionState(rank=5, iterations=20)
    >>> state.start()
    >>> state.fit.join(60), state.fit.result.n_iter
    (True, 20)
    """

    fields = (
        Field("data", "Data", "choice", group="Data"),
        Field("noise", "Noise", "choice", NOISES, "Data", "Added to every entry"),
        Field("level", "Noise level", "number", (), "Data"),
        Field("missing", "Missing", "share", (), "Data", "Share of the entries that is hidden"),
        Field("seed", "Seed", "integer", (), "Data", "Of noise, holes and random starts"),
        Field("nonlinearity", "f", "choice", MODELS, "Model", "X ≈ f(W H)"),
        Field("low", "Lower bound", "number", (), "Model"),
        Field("high", "Upper bound", "number", (), "Model"),
        Field("loss", "Loss", "choice", LOSSES, "Model"),
        Field("rank", "Rank", "integer", (), "Model", "Number of components"),
        Field("alpha", "Ridge alpha", "number", (), "Solver", "Keeps W and H small"),
        Field("penalty", "Penalty", "words", ("balanced", "paper"), "Solver", "A rule or a number"),
        Field("iterations", "Iterations", "integer", (), "Solver", "Of a run, and of a Continue"),
    )

    def __init__(self, X: Any = None, shape: tuple[int, int] | None = None, **values: Any) -> None:
        if sparse.issparse(X) or isinstance(X, SparseObservations):
            raise TypeError("X is sparse: give it to CompletionExplorer, or X.toarray() here.")
        self.X, self._shape = X, shape
        self.options = {"data": ([YOURS] if X is not None else []) + list(matrices())}
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
            "penalty": "balanced",
            "iterations": 300,
        }
        super().__init__(defaults)
        self._data: tuple[Any, Data] | None = None
        for name, value in values.items():
            self.set(name, value)
        if "rank" not in values:
            self.values["rank"] = min(10, *self.data.shape)
        self.fit = LiveFit()
        self.fit.finishing = self._compare
        self._forget()

    def _forget(self) -> None:
        self.errors: dict[str, tuple[float, float]] = {}
        self.held_out: dict[int, float] = {}
        self.running: dict[str, Any] = {}
        self._code: tuple[str, dict[str, Any]] | None = None

    def source(self) -> Any:
        """Return the original matrix."""
        return self.X if self.values["data"] == YOURS else load_matrix(self.values["data"])

    @property
    def data(self) -> Data:
        """The data as the settings want them."""
        key = tuple(self.values[name] for name in CORRUPTION)
        if self._data is None or self._data[0] != key:
            shape = self._shape if self.values["data"] == YOURS else None
            self._data = key, Data(self.source(), self.values, shape)
        return self._data[1]

    def nonlinearity(self) -> str | Nonlinearity:
        """Return f as a fit takes it."""
        if self.values["nonlinearity"] == "minmax":
            return MinMax(self.values["low"], self.values["high"])
        return str(self.values["nonlinearity"])

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the fit, the matrix apart."""
        values = self.values
        return {
            "rank": values["rank"],
            "nonlinearity": self.nonlinearity(),
            "loss": values["loss"],
            "penalty": as_penalty(values["penalty"]),
            "alpha": values["alpha"],
            "random_state": values["seed"],
            "max_iter": values["iterations"],
        }

    def reasons(self) -> dict[str, str]:
        """Return for each setting that has no effect now why that is so."""
        values, idle = self.values, {}
        if len(self.options["data"]) == 1:
            idle["data"] = "there is only one matrix"
        if values["noise"] == "none":
            idle["level"] = "no noise is added"
        if values["nonlinearity"] != "minmax":
            idle["low"] = idle["high"] = f"{values['nonlinearity']} has no bounds"
        return idle

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return for settings what raises an error if they are wrong."""
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
            "rank": lambda: check_rank(values["rank"], np.shape(self.source())),
            "alpha": lambda: check_option("alpha", values["alpha"]),
            "penalty": lambda: as_penalty(values["penalty"]),
            "iterations": lambda: check_option("max_iter", values["iterations"]),
            "loss": loss,
        }

    @property
    def changed(self) -> bool:
        """Whether the settings are no longer those of the fit that is there."""
        now = {n: v for n, v in self.values.items() if n != "iterations"}
        return bool(self.running) and now != self.running

    def start(self) -> None:
        """Begin a fit with the settings as they are."""
        self._forget()
        arguments, data = self.arguments(), self.data
        verb = "complete" if data.has_holes else "decompose"
        self.running = {n: v for n, v in self.values.items() if n != "iterations"}
        self._code = verb, arguments

        def make() -> Prepared:
            named = dict(arguments)
            rank, f, loss = (named.pop(name) for name in ("rank", "nonlinearity", "loss"))
            zeros = verb == "decompose"
            return prepare(data.seen, rank, f, loss, absent_are_zeros=zeros, **named)

        self._fitted = data
        self._f = make_pair(arguments["nonlinearity"], arguments["loss"]).nonlinearity
        self.fit.start(make, self.values["iterations"])

    def proceed(self) -> None:
        """Go on with the fit that is there."""
        self.fit.proceed(self.values["iterations"])

    def reset(self) -> None:
        """Forget the fit."""
        self._forget()
        self.fit.reset()

    def model(self, state: State, rows: Any, columns: Any) -> NDArray[np.floating]:
        """Return a part of f(WH) at some state."""
        part: NDArray[np.floating] = self._f(state.left[rows] @ state.right[:, columns])
        return part

    def judge(self, state: State) -> None:
        """Measure a state at hidden entries, at some of them if there are many."""
        rows, columns = self._fitted.hidden
        if rows.size and state.iteration not in self.held_out:
            step = -(-rows.size // LIVE)
            i, j = rows[::step], columns[::step]
            model = self._f(np.einsum("ij,ji->i", state.left[i], state.right[:, j]))
            truth = self._fitted.original[i, j]
            self.held_out[state.iteration] = _relative(truth, model)

    def _compare(self, fit: Decomposition) -> None:
        """Measure the finished fit, and the SVD of equal rank, on observed and hidden entries."""
        data = self._fitted
        baseline = truncated_svd(data.observed, fit.rank)
        for name, each in ((f"{fit.nonlinearity.name}, {fit.loss.name}", fit), ("SVD", baseline)):
            model = each.labels.flatten(each.reconstruct().values)
            seen = ~np.isnan(data.observed)
            held_out = _relative(data.original[data.hidden], model[data.hidden])
            self.errors[name] = _relative(data.observed[seen], model[seen]), held_out

    def typical_rows(self, component: int) -> NDArray[np.intp]:
        """Return the rows that have most of a component."""
        assert self.fit.state is not None
        order = np.argsort(-np.abs(self.fit.state.W[:, component]), kind="stable")
        rows: NDArray[np.intp] = order[: self._fitted.default_rows().size]
        return rows

    def code(self, name: str | None = None) -> str:
        """Return a cell that repeats the fit, or one with these settings if there is none.

        Parameters
        ----------
        name : str, optional
            How the notebook calls the user's X.
        """
        fitted = self._code is not None and self.fit.result is not None
        values = {**self.values, **(self.running if fitted else {})}
        if values["data"] != YOURS:
            load = f"X = {matrices()[values['data']].code}\n"
        else:
            load = "" if name == "X" else f"X = {name or ...}  # your data\n"
        if fitted and self._code is not None:
            verb, arguments = self._code
        else:
            holes = values["missing"] > 0 or self.data.has_holes
            verb, arguments = "complete" if holes else "decompose", self.arguments()
        lines, seen = corrupting_code(values)
        result = self.fit.result if fitted else None
        return f"import nmd_lab as nmd\n\n{load}{lines}" + fit_call(result, verb, seen, arguments)


def _relative(truth: NDArray[np.floating], model: NDArray[np.floating]) -> float:
    """Return the Frobenius error relative to the truth, NaN where there is nothing to compare."""
    size = float(np.linalg.norm(truth))
    return float(np.linalg.norm(truth - model)) / size if size else float("nan")
