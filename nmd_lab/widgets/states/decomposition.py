"""State of the decomposition explorer: data, settings and fit, without any widget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab._checks import check_share
from nmd_lab._package import ResumableFit
from nmd_lab.data.pictures import picture_of
from nmd_lab.data.sparse import is_sparse
from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.model import make_model
from nmd_lab.model.nonlinearities import NONLINEARITIES
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.options import Options
from nmd_lab.solver.prepare import prepare
from nmd_lab.solver.sampler.options import SampleOptions
from nmd_lab.solver.settings import ADMM
from nmd_lab.widgets.live.held_out import HiddenEntries, error_at
from nmd_lab.widgets.live.recording import Measure
from nmd_lab.widgets.live.sample import SampleSettings

from .brush import Paint
from .choice import parted
from .data_choices import load_matrix, matrix_choices
from .decomposition_code import Cell, loading_lines, mask_code
from .fields import Field, as_rho, check_option
from .frame import guessed_shape
from .matrix_data import (
    NO_PICTURE,
    NOISES,
    MatrixData,
    as_matrix,
    as_shape,
    corrupted,
    corrupting_code,
)
from .painting import PaintingState

MOST_COMPARED = 2_000_000
"""Largest number of entries of a matrix that is fitted by a linear model, too."""

OWN_DATA = "your X"  # option for the data that the user gave

HIDDEN = 0.1
"""Share of the entries that are hidden at first, so that there is something to tell a model by."""

SHAPES = ("auto", "none")  # suggestions for the shape of a picture: from labels or values, or none
PENALTIES = ("auto", "balanced", "paper")  # rules for ρ that are suggested


class DecompositionState(PaintingState):
    """A matrix, a model of it, and a fit that can be stopped.

    Attributes
    ----------
    X : matrix or None
        Data of the user.
    options : dict of str to list of str
        Options of the settings whose options depend on the data.
    errors : dict of str to float
        Errors of the finished fit and of the linear model of its rank at the hidden entries, which
        both have not seen; empty if nothing is hidden.
    hidden : HiddenEntries or None
        The hidden entries at which the iterates of the fit are measured, see `LiveFit.held_out`.
    """

    fields = (
        Field("data", "Data", "choice", group="Data"),
        Field("noise", "Noise", "choice", NOISES, "Data", "Noise added to every entry",
              {"salt_and_pepper": "salt and pepper"}),
        Field("level", "Noise level", "number", (), "Data"),
        Field("missing", "Missing", "share", (), "Data", "Share of hidden entries"),
        Field("shape", "Picture", "text", SHAPES, "Data",
              "Height x width of the picture that each row is"),
        Field("seed", "Seed", "integer", (), "Data", "Seed of noise, holes and random starts"),
        Field("nonlinearity", "f", "choice", ("auto", *NONLINEARITIES), "Model", "X ≈ f(W H)",
              {name: f.label for name, f in NONLINEARITIES.items()}, auto=True),
        Field("low", "Lower bound", "number", (), "Model"),
        Field("high", "Upper bound", "number", (), "Model"),
        Field("loss", "Loss", "choice", tuple(LOSSES), "Model", "",
              {name: loss.label for name, loss in LOSSES.items()}),
        Field("rank", "Rank", "integer", (), "Model", "Number of components", auto=True),
        Field("alpha", "Ridge alpha", "number", (), "Solver", "Keeps W and H small", auto=True),
        Field("rho", "Penalty ρ", "text", PENALTIES, "Solver", "A rule or a number"),
        Field("tol", "Tolerance", "number", (), "Solver",
              "Relative gain that is worth 100 more iterations; 0: all iterations"),
        Field("iterations", "Iterations", "integer", (), "Solver", "Number of each run"),
        Field("draws", "Draws", "integer", (), "How sure", "Sweeps of the sampler after tuning"),
    )  # fmt: skip
    numbers = MappingProxyType({"rank": 10, "alpha": 1.0})
    fit_attributes = (*PaintingState.fit_attributes, "errors", "hidden")
    lengths = (*PaintingState.lengths, "shape")

    def __init__(self, X: Any = None, shape: tuple[int, int] | None = None, **values: Any) -> None:
        if is_sparse(X):
            raise TypeError("X is sparse: give X.toarray().")
        self.given, self._matrix = X, as_matrix(X)
        self.X = self._matrix.matrix
        self.options = {"data": ([OWN_DATA] if X is not None else []) + list(matrix_choices())}
        defaults = {
            "data": self.options["data"][0],
            "noise": "none",
            "level": 0.1,
            "missing": HIDDEN,
            "shape": "auto" if shape is None else " x ".join(map(str, shape)),
            "seed": 0,
            "nonlinearity": "auto",
            "low": 0.0,
            "high": 1.0,
            "loss": "frobenius",
            "rank": "auto",
            "alpha": "auto",
            "rho": "auto",
            "tol": Options().tol,
            "iterations": 300,
            "draws": 150,
        }
        super().__init__(defaults)
        self._data: tuple[Any, MatrixData] | None = None
        self._guess: tuple[Any, tuple[int, int] | None] | None = None
        for name, value in values.items():
            self.set(name, value)
        self.fit.finishing = self._compare
        self._clear()

    def _clear(self) -> None:
        """Forget what belongs to a fit."""
        self.errors: dict[str, float] = {}
        self.hidden: HiddenEntries | None = None
        self.before_brush = None

    def source(self) -> Any:
        """Return the original matrix."""
        return self.X if self.values["data"] == OWN_DATA else load_matrix(self.values["data"])

    def data_with(self, paint: Paint | None) -> MatrixData:
        """Return the data with the noise and the holes of the present settings, and some paint."""
        names = ("data", "noise", "level", "missing", "seed", "shape")
        key = (*(self.values[name] for name in names), paint)
        if self._data is None or self._data[0] != key:
            channels = self._matrix.channels if self.values["data"] == OWN_DATA else 1
            layout = self._layout()
            self._data = key, MatrixData(self.source(), self.values, layout, channels, paint)
        return self._data[1]

    def _layout(self) -> tuple[int, int] | None:
        """Return the shape of the picture that each row is; None for that of the labels, if any."""
        text = self.values["shape"].strip()
        if text == "none":
            return NO_PICTURE
        if text != "auto":
            return as_shape(text)
        if self._guess is None or self._guess[0] is not self.source():
            X = self.source()
            plain = type(X) is np.ndarray
            self._guess = X, guessed_shape(np.asarray(X, dtype=float)) if plain else None
        return self._guess[1]

    def _check_shape(self) -> None:
        """Raise an error if rows cannot be pictures of the given shape."""
        layout = self._layout()
        if layout is not None and layout != NO_PICTURE:
            picture_of(xr.DataArray(np.zeros(np.shape(self.source())[1])), layout)

    def arguments(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the arguments of the fit without the matrix, see `ChoosingState.arguments`."""
        values = self.values if values is None else values
        return {
            "rank": values["rank"],
            "nonlinearity": self.nonlinearity(values),
            "loss": values["loss"],
            "solver": ADMM(rho=as_rho(values["rho"])),
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
        if self._matrix.channels > 1 and values["data"] == OWN_DATA:
            reasons["shape"] = "the matrix is one picture in colours"
        if values["noise"] == "none":
            reasons["level"] = "no noise is added"
        if not self._has_bounds:
            reasons["low"] = reasons["high"] = f"{values['nonlinearity']} has no bounds"
        return reasons

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each checked setting that raises an error if it is wrong."""
        values = self.values

        def loss() -> None:
            if not 0 <= values["missing"] < 1 or values["nonlinearity"] == "auto":
                return  # a choice is of those that go with the data
            model = make_model(self.nonlinearity(), values["loss"])
            model.loss.check_data(*self.data.observed_limits)

        return {
            "missing": lambda: check_share("missing", values["missing"]),
            "level": lambda: corrupted(self.source(), values | {"missing": 0}),
            "seed": lambda: check_option("random_state", values["seed"]),
            "shape": self._check_shape,
            "high": self.nonlinearity,
            "rank": lambda: self.check_rank(np.shape(self.source())),
            "alpha": lambda: check_option("alpha", values["alpha"]),
            "rho": lambda: as_rho(values["rho"]),
            "tol": lambda: check_option("tol", values["tol"]),
            "iterations": lambda: check_option("max_iter", values["iterations"]),
            "draws": lambda: SampleOptions(draws=values["draws"]),
            "loss": loss,
        }

    def set(self, name: str, value: Any) -> None:
        """Change a setting; other data have no paint."""
        super().set(name, value)
        if name == "data":
            self.paint = None

    @property
    def share_hidden(self) -> float:
        """Share of the entries that neither fit nor sampler sees."""
        share: float = self.values["missing"]
        return share

    def sample_settings(self) -> SampleSettings:
        """Return what the sampler is called with; it does not see what is painted over."""
        return super().sample_settings()._replace(observed=self.data.mask)

    def sample_now(self) -> None:
        """Draw from the posterior with the present settings."""
        self._launch_sampler(corrupted(self.source(), self.values | {"missing": 0.0}))

    def start(self) -> None:
        """Start a fit with the present settings."""
        super().start()
        self.fit.reset(tell=False)  # first: nothing draws the old fit beside the new data
        self._clear()
        measure, data = self.prepare_measure(), self.fitted_data
        holes = data.has_holes
        self._launch(data.seen, absent_are_zeros=not holes, measure=measure, observed=data.mask)

    def prepare_measure(self) -> Measure | None:
        """Take the present data as those of the fit; measure the entries that it does not see."""
        data = self.fitted_data = self.data
        self.fitted_paint, self.errors = self.paint, {}
        rows, columns = data.hidden
        self.hidden = HiddenEntries(data.original, rows, columns) if rows.size else None
        return None if self.hidden is None else self.hidden.error

    def reset(self) -> None:
        """Forget the fit."""
        self._clear()
        super().reset()

    def loss_without(self, fitted: FittedValues, off: Collection[int]) -> tuple[float, float]:
        """Return the error at the observed entries with and without some components."""
        observed = self.fitted_data.observed
        seen = np.nonzero(~np.isnan(observed))
        with_all, without = (
            error_at(fitted.model, observed[seen], fitted.without(which).block()[seen], *seen)
            for which in ([], list(off))
        )
        return with_all, without

    def _compare(self, fit: Decomposition) -> None:
        """Keep the held-out errors of the fit, and of the linear model of its rank and entries."""
        data, hidden = self.fitted_data, self.hidden
        if hidden is None or data.original.size > MOST_COMPARED:
            return
        errors = {"this model": hidden.error(fit)}
        asked = self._arguments | {"nonlinearity": "identity", "loss": "frobenius"}
        if asked != self._arguments:
            model, named = parted(asked)
            rival = ResumableFit(
                prepare(data.seen, *model, absent_are_zeros=False, observed=data.mask, **named)
            )
            linear = rival.advance(fit.n_iter, lambda _: self.fit.result is not fit)
            errors["linear"] = hidden.error(linear)
        errors["column means"] = hidden.error_of_means(data.observed, fit)
        if self.fit.result is fit:  # no new run has begun meanwhile
            self.errors = errors

    def code(self, name: str | None = None) -> str:
        """Return a notebook cell that repeats the fit, or that makes one if there is none."""
        result, values = self.fit.result, self.values
        if result is not None and self._arguments:
            values, arguments = values | self.fitted_settings, self._arguments
            data = self.fitted_data
        else:
            result, arguments, data = None, self.arguments(), self.data
        source = name if values["data"] == OWN_DATA else matrix_choices()[values["data"]].code
        is_own = values["data"] == OWN_DATA
        load = loading_lines(source, self._matrix.code if is_own else "", is_own=is_own)
        paint = self.paint if result is None else self.fitted_paint
        before = None if result is None else self.before_brush
        cell = Cell(self.imports, load, values, data, arguments)
        return cell.code(result, paint, before) + self._drawn_code(paint)

    def _drawn_code(self, paint: Paint | None) -> str:
        """Return the lines that make the posterior, with the mask of its paint."""
        values, data = self.values | self.sampled_settings, "X"
        _, data = corrupting_code(values | {"missing": 0.0})
        drawn = self.sample_code(data)
        masked = self.sample.settings is not None and self.sample.settings.observed is not None
        if not (drawn and masked and self.paint is not None) or paint is self.paint:
            return drawn
        _, seen = corrupting_code(values)
        return mask_code(seen, self.paint) + drawn
