"""State of the decomposition explorer: data, settings and fit, without any widget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.data.inputs import observe_dense
from nmd_lab.data.labels import is_frame, picture_of
from nmd_lab.data.sparse import is_sparse
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.model import make_model
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.solver.options import Options
from nmd_lab.solver.penalty import as_penalty_rule
from nmd_lab.solver.settings import ADMM

from .background import Measure, Memo, in_sample
from .code import call
from .live_fit import Begun
from .matrix_data import (
    BRUSH_ITERATIONS,
    NO_PICTURE,
    HiddenEntries,
    MatrixData,
    as_matrix,
    fitting_code,
    gaps_code,
    guessed_shape,
    loading_lines,
    printing_code,
)
from .model_state import DRAWS, ITERATIONS, MODEL, MOST_JUDGED, ModelState, Numbers
from .paint import Paint, mask_code
from .settings import Field, hidden_fields, prepared

MOST_COMPARED = 2_000_000  # entries of a matrix that is fitted by a linear model, too, at most
OF_DATA = ("missing", "seed")  # settings that change the data of a fit
NOTHING_HIDDEN = HiddenEntries(np.empty((0, 0)), np.empty(0, np.intp), np.empty(0, np.intp))
JOIN = 5.0  # longest time that a stroke of the brush waits for a run to stop, in seconds


class DecompositionState(ModelState):
    """A matrix, a model of it, and a fit that can be stopped.

    Each stroke of the brush fits again from the factors before the first one, with all that is
    painted so far, so that a few lines of code repeat it.
    """

    fields = (
        *hidden_fields("missing", "entries"),
        Field("shape"),  # height and width of the picture that each row is; None: what rows seem
        *MODEL,
        Field("loss", "Loss", "choice", tuple(LOSSES), "again", "",
              {name: loss.label for name, loss in LOSSES.items()}, value="frobenius"),
        Field("rho", value="auto", check=as_penalty_rule),
        Field("tol", value=Options().tol, check="tol"),
        ITERATIONS._replace(value=300), DRAWS._replace(value=150),
    )  # fmt: skip
    numbers = MappingProxyType({"rank": 10, "alpha": 1.0})
    hidden_share = "missing"
    paint: Paint | None = None  # what the brush has done

    def __init__(self, X: Any, **values: Any) -> None:
        if is_sparse(X):
            raise TypeError("X is sparse: give X.toarray().")
        self.input, self._matrix = X, as_matrix(X)
        self.X = self._matrix.matrix
        self._memo = Memo()
        super().__init__({}, values)

    @property
    def fitted_data(self) -> MatrixData | None:
        """The data of the fit."""
        data: MatrixData | None = self.fit.begun.data
        return data

    @property
    def hidden(self) -> HiddenEntries:
        """The entries where the iterates of the fit are measured."""
        return NOTHING_HIDDEN if self.fitted_data is None else self.fitted_data.unseen

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix that is fitted; categories have a column for each."""
        return observe_dense(self.X).shape

    @property
    def has_kinds(self) -> bool:
        """Whether the data are a table whose columns are of several kinds."""
        return is_frame(self.X) and self.data.labels.table is not None

    def data_with(self, paint: Paint | None) -> MatrixData:
        """Return the data with the gaps of the present settings, and some paint."""
        values = self.values

        def made() -> MatrixData:
            return MatrixData(self.X, values, self._layout(), self._matrix.channels, paint)

        return self._memo("data", made, *(values[name] for name in (*OF_DATA, "shape")), paint)

    @property
    def data(self) -> MatrixData:
        """The data of the present settings, with the present paint."""
        return self.data_with(self.paint)

    def _layout(self) -> tuple[int, int] | None:
        """Return the shape of the picture that each row is; None for that of the labels, if any."""
        return self.values["shape"] or self.guessed

    @cached_property
    def guessed(self) -> tuple[int, int] | None:
        """Height and width of the pictures that rows of plain numbers seem to be."""
        if type(self.X) is not np.ndarray or self._matrix.channels > 1:
            return None
        return guessed_shape(np.asarray(self.X, dtype=float))

    def _check_shape(self) -> None:
        """Raise an error if rows cannot be pictures of the given shape."""
        layout = self._layout()
        if layout is not None and layout != NO_PICTURE and self._matrix.channels == 1:
            picture_of(xr.DataArray(np.zeros(np.shape(self.X)[1])), layout)

    def arguments(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the arguments of the fit without the matrix."""
        values = self.values if values is None else values
        return {
            "rank": values["rank"],
            "nonlinearity": self.nonlinearity(values),
            "loss": values["loss"],
            "solver": ADMM(rho=values["rho"]),
            "alpha": values["alpha"],
            "offsets": "none",
            "tol": values["tol"],
            "random_state": values["seed"],
            "max_iter": values["iterations"],
        }

    def checks(self) -> dict[str, Callable[[], Any]]:
        """Return a function for each checked setting that raises an error if it is wrong."""
        values = self.values

        def loss() -> None:
            if not 0 <= values["missing"] < 1 or values["nonlinearity"] == "auto":
                return  # a choice is of those that go with the data
            model = make_model(self.nonlinearity(), values["loss"])
            observed = self.data.observed
            model.loss.check_data(float(np.nanmin(observed)), float(np.nanmax(observed)))

        return super().checks() | {"shape": self._check_shape, "loss": loss}

    def set(self, name: str, value: Any) -> None:
        """Change a setting; draws are of entries that the data have hidden."""
        if name in OF_DATA and self.values[name] != value:
            self.forget_draws()
        super().set(name, value)

    def to_sample(self) -> tuple[Any, Any]:
        """Return the data of the sampler, and what is not hidden or painted over."""
        return self.X, self.data.mask

    def to_fit(self, begun: Begun) -> tuple[Any, dict[str, Any], Measure | None]:
        """Return the present data, and what measures the entries that a fit does not see."""
        data = begun.data = self.data
        options = {"absent_are_zeros": not data.has_holes, "observed": data.mask}
        return data.seen, options, data.unseen.error if data.unseen.count else None

    def undo(self) -> None:
        """Take the last stroke of the brush back; of the first one, come back to the fit before."""
        paint = None if self.paint is None else self.paint.before
        before = self.fit.begun.before
        if before is not None and before["begun"].data.paint is paint and not self.changed:
            self.paint = paint
            self.forget_draws()
            self.fit.recall(before)
            self.fit.tell()
        else:
            self.repaint(paint)

    def repaint(self, paint: Paint | None) -> None:
        """Take other painted entries, and fit again from the factors before the first stroke."""
        if self.fit.phase == "running" and self.fit.begun.before is None:
            self.fit.stop()
            self.fit.join(JOIN)
        data, before = self.data_with(paint), self.fit.begun.before
        if np.isnan(data.observed).all():
            raise ValueError("the brush would hide everything: take some of it back.")
        if before is None and self.fit.result is not None:
            before = self.fit.keep()
        self.paint = paint
        self.forget_draws()
        if before is None or not self.fit.begun.arguments or self.changed:
            return  # the paint only counts in the next run
        begun = replace(self.fit.begun, before=before, errors={})
        X, options, measure = self.to_fit(begun)
        init, length = before["result"], {"max_iter": BRUSH_ITERATIONS}
        arguments = begun.arguments | options | length | {"absent_are_zeros": False, "init": init}
        remembers = not np.isnan(before["begun"].data.observed[data.hidden]).all()
        make = partial(prepared, X, arguments)
        self.fit.start(make, BRUSH_ITERATIONS, measure, remembers=remembers, begun=begun)

    def known(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return some of what the fit has seen: values, rows and columns."""
        assert self.fitted_data is not None
        observed = self.fitted_data.observed
        rows, columns = np.nonzero(~np.isnan(observed))
        some = in_sample(rows.size, MOST_JUDGED)
        return observed[rows[some], columns[some]], rows[some], columns[some]

    def rivals(self, fit: Decomposition) -> dict[str, float]:
        """Return the errors of a linear model, and of the means of columns."""
        data, hidden, errors = self.fitted_data, self.hidden, dict[str, float]()
        if data is None or data.original.size > MOST_COMPARED:
            return {}
        linear = {"nonlinearity": "identity", "loss": "frobenius"}
        if self.fit.begun.arguments != self.fit.begun.arguments | linear:
            rival = self._rival(fit, data.seen, linear | {"observed": data.mask})
            errors["linear"] = hidden.error(rival)
        return errors | {"average": hidden.error_of_means(data.observed, fit)}

    def lines(self, source: str | None) -> str:
        """Return the lines that repeat the fit, or that make one if there is none."""
        result, begun = self.fit.result, self.fit.begun
        data, arguments, before = begun.data, begun.arguments, begun.before
        if not arguments or data is None or (result is None and before is None):
            result, before, data, arguments = None, None, self.data, self.arguments()
        load = loading_lines(source, self._matrix.code)
        body = fitting_code(data, arguments, result, before) + printing_code(data)
        return load + body + self._drawn_code(body, data.paint)

    def _drawn_code(self, before: str, paint: Paint | None) -> str:
        """Return the lines that make the posterior, with the mask of its paint."""
        settings, drawn = self.sample.settings, self.sample_code("X", before)
        if settings is None or not drawn:
            return ""
        if (
            settings.options["observed"] is not None
            and self.paint is not None
            and paint is not self.paint
        ):
            drawn = mask_code(gaps_code(self.values)[1], self.paint) + drawn
        if not self.has_kinds:
            return drawn
        known = "X" if np.isnan(self.data.original).any() or not settings.held_out else "seen"
        report = call("posterior.report", known, *["held_out"] * bool(settings.held_out))
        return f"{drawn}{printing_code(self.data, 'posterior')}{report}\n"
