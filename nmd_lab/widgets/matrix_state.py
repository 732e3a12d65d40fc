"""State of the decomposition explorer: data, hidden entries, settings, fit; no widget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nmd_lab.data.inputs import observe_dense
from nmd_lab.data.labels import Picture, is_frame, picture_of
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.split import split_observed
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.model import make_model
from nmd_lab.problem.state import State
from nmd_lab.request.options import Options
from nmd_lab.request.penalty import as_penalty_rule
from nmd_lab.request.settings import ADMM
from nmd_lab.result.decomposition import Decomposition

from .background import Measure, Memo, error_at, in_sample
from .history import Field, hidden_fields, prepared
from .live import Begun
from .model_state import DRAWS, ITERATIONS, MODEL, MOST_JUDGED, ModelState, Numbers
from .pictures import Paint, mask_code
from .words import PRINT_ERROR, PRINT_HIDDEN, Code, call, fit_call

Array = NDArray[Any]
Iterate = State | Decomposition
NO_PICTURE = (0, 0)  # layout of rows that are no pictures, whatever their labels
BRUSH_ITERATIONS = 100  # number of iterations after each stroke of the brush
NUMBERS = """numbers = held_out.select_dtypes("number").astype(float)
off = {0}.reconstruct().to_pandas()[numbers.columns] - numbers
off /= seen[numbers.columns].astype(float).std(ddof=0).replace(0, 1)
print(f"hidden numbers{1}: ±{{np.sqrt(np.nanmean(off**2)):.3g}} SD")
"""
CLASSES = """classes = held_out.select_dtypes(exclude="number")
right = {0}.impute(seen)[classes.columns] == classes
print(f"hidden classes{1}: {{100 * right.to_numpy()[classes.notna()].mean():.0f}} % right")
"""


class Given(NamedTuple):
    """What the user gave, as a matrix."""

    matrix: Any  # the matrix
    channels: int = 1  # neighbouring columns that make a pixel: 3 for a picture in colours
    code: str = ""  # what makes the matrix, after the name ``images``; empty if given as it is


def as_matrix(X: Any) -> Given:
    """Return X as a matrix: colours side by side, all but the first dimension stacked."""
    if isinstance(X, xr.DataArray) and X.ndim > 2:
        dims = tuple(map(str, X.dims[1:]))
        return Given(X.stack(pixel=dims), code=f".stack(pixel={dims!r})")
    if not isinstance(X, np.ndarray) or X.ndim != 3:
        return Given(X)
    if X.shape[2] not in (3, 4):
        raise ValueError(
            f"X has the shape {X.shape}: give a picture (height, width, 3), or pictures as rows, "
            f"explore(X.reshape(len(X), -1), shape={X.shape[1:]})."
        )
    return Given(X[..., :3].reshape(len(X), -1), 3, "[..., :3].reshape(len(images), -1)")


def with_gaps(X: Any, values: Mapping[str, Any]) -> Any:
    """Return X without the entries that are hidden at random."""
    share = float(values["missing"])
    return X if share == 0 else split_observed(X, share, int(values["seed"]))[0]


def gaps_code(values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the code of `with_gaps`, and the name of the matrix that the fit gets."""
    share = float(values["missing"])
    if share <= 0:
        return "", "X"
    split = call("nmd.split_observed", "X", test_size=share, random_state=int(values["seed"]))
    return f"seen, held_out = {split}\n", "seen"


class HiddenEntries:
    """Entries that a fit does not see, to measure the error of its iterates there."""

    def __init__(self, truth: Array, rows: Array, columns: Array, most: int = 100_000) -> None:
        self.count = rows.size
        drawn = in_sample(self.count, most)
        self._at = rows[drawn], columns[drawn]
        self._truth = truth[self._at]

    def error_of_means(self, seen: Array, state: Iterate, within: Array | None = None) -> float:
        """Return the error of the mean of what is seen of each column; `within` as of `error`."""
        counts = np.count_nonzero(~np.isnan(seen), axis=0)
        means = np.nansum(seen, axis=0) / np.maximum(counts, 1)
        return self._error(means[self._at[1]], state, within)

    def error(self, state: Iterate, within: Array | None = None) -> float:
        """Return the error of f(WH) at the entries, or at those of them that a mask has."""
        return self._error(np.asarray(state._fitted.at(*self._at)), state, within)

    def _error(self, predicted: Array, state: Iterate, within: Array | None) -> float:
        some = slice(None) if within is None else within[self._at]
        rows, columns = self._at
        at = rows[some], columns[some]
        return error_at(state._fitted.model, self._truth[some], predicted[some], *at)


class MatrixData:
    """A matrix as arrays with NaN where an entry is missing, and what of it a fit gets."""

    def __init__(
        self,
        X: Any,
        values: Mapping[str, Any],
        layout: tuple[int, int] | None,
        channels: int = 1,
        paint: Paint | None = None,
    ) -> None:
        observations = observe_dense(X)
        self.labels, self.original = observations.labels, observations.to_array()
        self.seen = with_gaps(X, values)  # what the fit gets, with the labels of X
        self.observed, self.mask = observe_dense(self.seen).to_array(), None
        if paint is not None and paint.n_painted:
            self.seen = X
            self.mask = paint.mask(~np.isnan(self.observed))  # what the fit sees of it
            self.observed = np.where(self.mask, observe_dense(self.seen).to_array(), np.nan)
        row = X[0] if isinstance(X, xr.DataArray) else xr.DataArray(np.zeros(self.shape[1]))
        is_plain = channels > 1 or layout == NO_PICTURE
        self.picture: Picture | None = None if is_plain else picture_of(row, layout)
        self.channels, self.values, self.paint = channels, dict(values), paint
        # Rows and columns of the entries that only the fit misses
        self.hidden = np.nonzero(np.isnan(self.observed) & ~np.isnan(self.original))
        self.has_holes = bool(np.isnan(self.observed).any())

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        m, n = self.original.shape
        return m, n

    @cached_property
    def unseen(self) -> HiddenEntries:
        """The entries where the iterates of a fit are measured."""
        rows, columns = self.hidden
        return HiddenEntries(self.original, rows, columns)

    @cached_property
    def unit(self) -> float:
        """What relative errors are multiplied by: nothing hidden leaves them relative."""
        if not self.unseen.count or self.labels.table is not None:
            return 1.0
        return float(np.sqrt(np.nanmean(np.square(self.observed)))) or 1.0

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest original value."""
        return float(np.nanmin(self.original)), float(np.nanmax(self.original))


def fitting_code(
    data: MatrixData,
    arguments: Mapping[str, Any],
    result: Decomposition | None,
    before: Mapping[str, Any] | None,
) -> str:
    """Return the lines that hide entries of X, and fit: before strokes and after them."""
    lines, seen = gaps_code(data.values)
    # Without a choice there are no offsets to name
    named = {k: v for k, v in arguments.items() if k != "offsets" or arguments["alpha"] == "auto"}

    def fit(result: Decomposition | None, paint: Paint | None, **options: Any) -> str:
        if paint is None or not paint.n_painted:
            holes = data.values["missing"] > 0 or bool(np.isnan(data.original).any())
            verb = "complete" if holes or options else "decompose"
            return fit_call(result, verb, seen, named | options)
        options["observed"] = Code("mask")
        return mask_code(seen, paint) + fit_call(result, "complete", "X", named | options)

    if before is None:
        return lines + fit(result, data.paint)
    first, now = fit(before["result"], before["begun"].data.paint), {"init": Code("fit")}
    return lines + first + fit(result, data.paint, **now, max_iter=BRUSH_ITERATIONS)


def printing_code(data: MatrixData, model: str = "fit") -> str:
    """Return the lines that print the number of the page for a model."""
    if not data.unseen.count:
        return PRINT_ERROR
    if data.labels.table is not None:
        there = {column.is_class for column in data.labels.table.of_matrix}
        kinds = (NUMBERS, False), (CLASSES, True)
        by = "" if model == "fit" else ", by draws"
        return "".join(code.format(model, by) for code, is_class in kinds if is_class in there)
    at = "held_out, " if data.mask is None else "X, "
    at += f"{model}.reconstruct()" + ("" if data.mask is None else ", observed=~mask")
    return PRINT_HIDDEN.format("entries", f"nmd.metrics.rmse({at})")


def loading_lines(source: str | None, making: str) -> str:
    """Return the lines that give X."""
    about = "" if source is not None and source.startswith("nmd.") else "  # your data"
    name = "images" if making else "X"
    lines = "" if source == name else f"{name} = {source or '...'}{about}\n"
    return f"{lines}X = images{making}\n" if making else lines


def guessed_shape(X: Array, most: float = 2.5, share: float = 0.75) -> tuple[int, int] | None:
    """Return the height and width of the pictures that rows seem to be, or None."""
    m, n = X.shape
    if n < 36 or m < 5:
        return None
    some = X[np.unique(np.linspace(0, m - 1, min(m, 200)).astype(int))]
    shuffled = np.random.default_rng(0).permutation(n)
    any_two = mean_difference(some, some[:, shuffled])
    best, shape = share, None
    for width in range(6, n // 6 + 1):
        height = n // width
        if n % width or max(height, width) > most * min(height, width):
            continue
        # Pixels one below the other are alike, more than those a column further left or right
        below, left, right = (
            mean_difference(some[:, :-lag], some[:, lag:]) / (any_two or 1.0)
            for lag in (width, width - 2, width + 2)
        )
        if below < best and below < 0.97 * min(left, right):
            best, shape = below, (height, width)
    return shape


def mean_difference(a: Array, b: Array) -> float:
    """Return the mean absolute difference of entries that are both there."""
    with np.errstate(all="ignore"):
        differences = np.abs(a - b)
    finite = differences[np.isfinite(differences)]
    return float(finite.mean()) if finite.size else 0.0


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
