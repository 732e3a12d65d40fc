"""The explorer of a matrix: pictures, a table, the brush, components and the plane of the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab._runtime.checks import many
from nmd_lab.api.fits import ResumableFit
from nmd_lab.data.inputs import observe_dense
from nmd_lab.data.labels import is_frame, picture_of
from nmd_lab.data.sparse import is_sparse
from nmd_lab.data.typed_table import table_of
from nmd_lab.data.units import facts_of, units_of_columns
from nmd_lab.model.losses import LOSSES
from nmd_lab.model.model import make_model
from nmd_lab.request.options import Options
from nmd_lab.request.penalty import as_penalty_rule
from nmd_lab.request.settings import ADMM
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.files import TABLES, check_export, write_table
from nmd_lab.result.files import as_table as as_frame
from nmd_lab.result.posterior import Posterior

from .background import FitRun, Record, Settings, Shape
from .charts import Grid, row_texts
from .fitting import DRAWS, ITERATIONS, MODEL, ModelState, prepared, split_code
from .given import NO_PICTURE, Code, MatrixData, as_given, fit_call, guessed_shape, is_photograph
from .pictures import MANY_MISSING, Frame, Paint, at, frame_of, mask_code
from .state import Field, hidden_fields, option
from .words import AVERAGE, THIS, Number, Piece, model_words, painted_words, size_words

# Of too few entries to hide some, or of one row or column alone
SIMPLE = {"missing": 0.0, "nonlinearity": "identity", "rank": 1, "alpha": 0.0}
BRUSH_ITERATIONS = 100  # number of iterations after each stroke of the brush
OF_DATA = ("missing", "seed")  # settings that change the data of a fit


class MatrixState(ModelState):
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
        Field("tol", value=Options().tol, check=option("tol")),
        ITERATIONS._replace(value=300), DRAWS._replace(value=150),
    )  # fmt: skip
    numbers: Mapping[str, Any] = {"rank": 10, "alpha": 1.0}
    hidden_share = "missing"

    def __init__(self, X: Any, *, take: bool = False, **values: Any) -> None:
        if is_sparse(X):
            raise TypeError("X is sparse: give X.toarray().")
        self.brought = as_given(X, take=take)
        self.X = self.brought.data
        observations = observe_dense(self.X)
        self.shape, self.limits = observations.shape, observations.range()
        table, self._units = observations.labels.table, None
        if is_frame(self.X) and table is None:
            facts = facts_of(observations, by_column=observations.is_small_table)
            if units_of_columns(facts) is not None:  # numbers in units of their own
                self._units = table = table_of(self.X, numbers_too=True)
        self.has_kinds = is_frame(self.X) and table is not None
        self.draws_itself = table is None and math.prod(self.shape) <= 300_000
        self.linear = {"nonlinearity": "identity", "loss": self._loss("frobenius")}
        self.may_be_photograph = self.brought.channels > 1 or is_photograph(self.X)
        self.paint = Paint(self.shape)
        self.shows_fit = False  # whether a table is that of the fit although there are draws
        is_small = 1 in np.shape(self.X) or np.size(self.X) < 40
        super().__init__(X, values, first=SIMPLE if is_small else {})
        self.about = self.brought.words
        if self.brought.button is not None:
            self.buttons["take"] = self.brought.button
        if self.guessed is not None:
            self.buttons["flat"] = "rows as numbers", "No longer show each row as a picture"
        self.actions |= {
            "flat": lambda _: self.set("shape", NO_PICTURE),
            "brush": lambda m: self.repaint(self.paint.touched(self.frame(), m)),
            "undo": lambda _: self.undo(),
            "arrange": self.order.arrange,
            "swap": lambda _: self._swap(),
            "take": lambda _: MatrixState(X, take=not take, **values),
        }

    # Data

    @property
    def data(self) -> MatrixData:
        """The data with the gaps of the present settings, and the present paint."""
        return self._data(self.values)

    def _data(self, values: Settings) -> MatrixData:
        """Return the data with the gaps of some settings, and the present paint."""
        paint = self.paint

        def data() -> MatrixData:
            return MatrixData(self.X, values, self._layout(values["shape"]), paint, self._units)

        return self.memo("data", data, *(values[name] for name in (*OF_DATA, "shape")), paint)

    def shown_data(self) -> MatrixData:
        """Return the data of the settings; those of the fit, or the first ones, for wrong ones."""
        wrong = {*OF_DATA, "shape"} & set(self.problems())
        if self.fit.data is not None and (wrong or self.fit.phase == "running"):
            shown: MatrixData = self.fit.data
            return shown
        return self._data(self.values | {f.name: f.value for f in self.fields if f.name in wrong})

    def _layout(self, shape: Shape | None) -> Shape | None:
        """Return the shape of the picture that each row is; None for that of the labels, if any."""
        return NO_PICTURE if self.brought.channels > 1 else shape or self.guessed

    @cached_property
    def guessed(self) -> tuple[int, int] | None:
        """Height and width of the pictures that rows of plain numbers seem to be."""
        if type(self.X) is not np.ndarray or self.brought.channels > 1:
            return None
        return guessed_shape(np.asarray(self.X, dtype=float))

    def _is_photograph(self, data: MatrixData) -> bool:
        """Return whether the matrix is one picture, whose rows are no cases."""
        return self.may_be_photograph and data.picture is None and data.labels.table is None

    # Settings and fit

    def set(self, name: str, value: Any) -> None:
        """Change a setting; draws are of entries that the data have hidden."""
        if name in OF_DATA and self.values[name] != value:
            self.forget_draws()
        super().set(name, value)

    def check(self, field: Field) -> None:
        """Raise an error if a setting is wrong."""
        super().check(field)
        name, values = field.name, self.values
        if name == "shape" and (layout := self._layout(values[name])) not in (None, NO_PICTURE):
            picture_of(xr.DataArray(np.zeros(np.shape(self.X)[1])), layout)
        # A choice is of those that go with the data
        if name == "loss" and 0 <= values["missing"] < 1 and values["nonlinearity"] != "auto":
            model, seen = make_model(self.nonlinearity(values), values["loss"]), self.data.observed
            model.loss.check_data(float(np.nanmin(seen)), float(np.nanmax(seen)))

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a fit with some settings, without the matrix."""
        return {
            "rank": values["rank"],
            "nonlinearity": self.nonlinearity(values),
            "loss": self._loss(values["loss"]),
            "solver": ADMM(rho=values["rho"]),
            "alpha": values["alpha"],
            "offsets": "none",
            "tol": values["tol"],
            "random_state": values["seed"],
            "max_iter": values["iterations"],
        }

    def _loss(self, name: str) -> Any:
        """Return the loss as a fit takes it: by column, if these have units of their own."""
        if self._units is None:
            return name
        return {} if name == "frobenius" else dict.fromkeys(self.X.columns, name)

    def to_fit(self, run: FitRun) -> None:
        """Give the present data to a fit, which is measured at the entries that it does not see."""
        data = run.data = self.data
        run.X, run.measure = data.seen, data.judged.error if data.hides else None
        has_holes = bool(np.isnan(data.observed).any())
        run.options = {"absent_are_zeros": not has_holes, "observed": data.mask}

    def to_sample(self, values: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        """Return what a sampler sees, the entries that are hidden, and the mask of the brush."""
        data = self.data
        hidden = np.where(np.isnan(data.observed), data.original, np.nan)
        return data.seen, hidden if data.hides else None, data.mask

    def judged(self) -> Any:
        """Return the held-out entries, or without any some that are seen."""
        return self.fit.data.judged

    # Draws

    @property
    def drawn_table(self) -> Posterior | None:
        """The draws that the cells of a table show; None where these are of the fit."""
        return self.posterior if self.has_kinds and not self.shows_fit else None

    def _swap(self) -> None:
        """Turn a table from the draws to the fit, and back; make the draws if there are none."""
        if self.posterior is None:
            self.how_sure()
        else:
            self.shows_fit = not self.shows_fit
            self.active = self.fit if self.shows_fit else self.sample

    def how_sure(self) -> None:
        """Draw from the posterior, and show the draws."""
        self.shows_fit = False
        super().how_sure()

    # The brush

    def undo(self) -> None:
        """Take the last stroke of the brush back; of the first one, come back to the fit before."""
        paint, before = self.paint.before, self.fit.before
        if paint is None or before is None or before.data.paint is not paint or self.changed:
            return super().undo()
        self.paint = paint
        self.forget_draws()
        self.fit.recall(before)
        self.fit.tell()

    def repaint(self, paint: Paint) -> None:
        """Take other painted entries, and fit again from the factors before the first stroke."""
        if interrupts := self.fit.phase == "running" and self.fit.before is None:
            self.fit.stop()
            self.fit.join(5.0)  # seconds
        painted, self.paint = self.paint, paint
        data, before = self.data, self.fit.before
        if np.isnan(data.observed).all():
            self.paint = painted
            raise ValueError("the brush would mask all of it: take some back.")
        if before is None and self.fit.result is not None:
            before = self.fit.run
        self.forget_draws()
        if interrupts and (before is None or self.fit.is_look):  # before a choice was made
            return self.run(preview=self.fit.is_look)
        if before is None or not self.fit.arguments or self.changed:
            return  # the paint only counts in the next run
        settings, arguments = self.fit.settings, self.fit.arguments
        run = FitRun(settings, arguments, before=before, planned=BRUSH_ITERATIONS)
        self.to_fit(run)
        run.options["absent_are_zeros"] = False
        more = run.options | {"max_iter": BRUSH_ITERATIONS, "init": before.result}
        run.remembers = not np.isnan(before.data.observed[data.hidden]).all()

        def work(run: FitRun) -> None:
            self._iterate(run, ResumableFit(prepared(run.X, arguments, **more)))

        self.fit.begin(run, work)

    @property
    def painted(self) -> str:
        """Words on what was painted, for below the picture."""
        data, fit = self.fit.data, self.result
        if fit is None or not data.hides:
            return ""
        paint, judged, hidden = data.paint, data.judged, np.isnan(data.observed)

        def words(stroke: str, under: Any) -> str:
            means = self.fit.run.means[judged.columns]
            average = judged.error_of(means, fit._fitted.model, under)
            return painted_words(stroke, {THIS: judged.error(fit._fitted, under), AVERAGE: average})

        return str(self.memo("painted", lambda: paint.in_words(words, hidden), fit, paint))

    # The sentence

    @property
    def title(self) -> str:
        """The data and their size."""
        data, extent = self.shown_data(), self.brought.extent
        table, known = data.labels.table, ~np.isnan(data.original)
        size: Any = extent.format(data.shape[0]), data.shape[1]
        words = "a matrix of {} × {}" if extent == "{}" else "{} rows × {} columns"
        if table is not None:  # classes have several columns of the matrix
            words, known = "{} rows × {} columns", known[:, table.first_columns]
            size = size[0], len(table.columns)
        elif data.picture is not None:
            kind = f"images of {data.picture.shape[0]} × {data.picture.shape[1]}"
            guessed = self.values["shape"] is None and self.guessed is not None
            words = f"{{}} rows, shown as {kind}" if guessed else f"{{}} {kind}"
        elif self._is_photograph(data):
            words, size = extent.format("a photograph of {} × {}"), np.shape(self.input)[:2]
        return size_words(words, size, float(np.mean(known)))

    @property
    def model(self) -> list[Piece]:
        """The model of what is shown: of the fit, or of the draws of a table."""
        drawn = self.drawn_table
        if drawn is None:
            return super().model
        return [*model_words(drawn), (f", mean of {many(drawn.trace.sizes['sweep'], 'draw')}", "")]

    def number(self, *, of_fit: bool = False) -> Number | None:
        """Return the error where entries are hidden, compared with the rivals."""
        data, fit, errors = self.fit.data, self.result, self.fit.errors
        if errors and data.is_constant:
            words = "Each column has one value, which is predicted to "
            return Number(errors[THIS], words, least=math.inf)
        if errors and self.has_kinds and fit._fitted.model.is_mixed:
            shown = (None, []) if of_fit else (self.drawn_table, self.off)
            return self._number_of_table(data, *shown)
        return super().number(of_fit=of_fit)

    @property
    def things(self) -> tuple[str, str]:
        """What is guessed, and of what each has an average."""
        data = self.fit.data
        is_picture = data.picture is not None or self._is_photograph(data)
        return ("pixels", "pixel") if is_picture else ("entries", "column")

    def _number_of_table(self, data: Any, drawn: Posterior | None, off: list[int]) -> Number:
        """Return the error of numbers, in SD, and the fraction of classes that are guessed."""
        fit, name = self.result, "errors of draws" if drawn else f"errors, some off: {bool(off)}"
        fitted = (self.shown or fit._fitted).without(off)
        grid = Grid(data.labels.table, data.original, data.observed, fitted, drawn)
        found = self.memo(name, grid.judged, data, fit, drawn, off)
        (numbers, right), (by_means, commonest) = found
        if math.isnan(numbers):
            value, after = (f"{100 * each:.0f} %" for each in (right, commonest))
            after = f", the commonest class in {after}"
            return Number(1 - right, "Held-out classes are predicted right in ", after, value=value)
        both = f", {100 * right:.0f} % of classes", f" and {100 * commonest:.0f} %"
        classes, more = ("", "") if math.isnan(right) else both
        more += "" if drawn is None else self.covered
        before, after = "Held-out numbers are predicted to ", f" SD{classes}"
        return Number(numbers, before, after, {"each column's average": by_means}, more=more)

    # The page

    def parts(self) -> Record:
        """Return the pictures, curves, components, plane, trials and errors."""
        data, frame, parts = self.shown_data(), self.frame(), super().parts()
        of, drawn, facts = (data.labels, data.original), self.drawn_table, parts["facts"]
        facts["painted"], whole = self.painted, None if self.off else self.posterior
        parts["pictures"] = self._pictures(data, frame, whole)  # draws have all components
        parts |= self.model_parts(frame, *of, data.observed, drawn)
        if self._is_photograph(data):
            facts["stage"], parts["scatter"] = "photograph", None
        if drawn is not None:  # these are of the fit, of which nothing is shown
            parts |= {"components": None, "scatter": None}
        if not self.has_kinds and self.fit.phase != "running":
            parts["drawing"] = self.drawing(frame, *of, self.shown and self.judged())
        elif self.has_kinds and self.shown is not None:
            facts["swap"] = "components of the fit" if drawn else "most uncertain cells"
        return parts

    def curves(self) -> dict[str, dict[int, float]]:
        """Return the curves of errors by iteration, in the unit of the data where it is known."""
        data, run = self.fit.data or self.shown_data(), self.fit.run
        seen = {k: data.unit * error for k, error in run.recorded("relative_error").items()}
        columns = getattr(data.labels.table, "columns", ())
        hidden = "hidden" + ", with classes" * any(column.is_class for column in columns)
        return {"seen": seen, hidden: run.guesses}

    @property
    def off(self) -> list[int]:
        """The components that are switched off; draws have all."""
        return [] if self.drawn_table is not None else super().off

    @property
    def shown(self) -> Any:
        """The model of the fit, if it is of the data that are shown."""
        others = any(self.values[name] != self.fit.settings.get(name) for name in OF_DATA)
        return None if others and self.fit.phase != "running" else super().shown

    def frame(self) -> Frame:
        """Return which entries are shown: selected rows, those of a component, or all."""
        data = self.shown_data()
        return frame_of(data.shape, data.picture, self.brought.channels, self.rows(data.shape[0]))

    def _pictures(self, data: MatrixData, frame: Frame, posterior: Posterior | None) -> Record:
        """Return the pictures that do not change while the fit runs."""
        run = self.history.compared

        def pictures() -> Record:
            seen = data.observed
            if data.picture is not None and data.values["missing"] <= MANY_MISSING:  # only strokes
                seen = np.where(self.paint.signs == 0, data.original, seen)
            layers = {"original": at(frame, data.original), "seen": at(frame, seen)}
            if posterior is not None:
                layers["spread"] = self.drawn(frame)[1]
            if run is not None:
                layers["beside"] = frame.means(data.shape, run.result._fitted.block)
            limits = data.limits if self._is_photograph(data) else data.scale
            return self.pictures(frame, limits, row_texts(data.labels), layers)

        of = data, frame.rows.tolist(), run and run.result, posterior
        return self.memo("pictures", pictures, *of)

    # Code

    def lines(self, source: str | None) -> str:
        """Return the lines that repeat the fit, or that make one if there is none."""
        run = self.fit.run
        if run.result is None and run.before is None:
            run = FitRun(arguments=self.arguments(self.values), data=self.data)
        body = f"{fitting_code(run)}{run.data.printing()}"
        drawn, report = self._drawn_code(body, run.data.paint)
        filled = f"filled = {'posterior' if drawn else 'fit'}.impute(X)\n"
        filled *= run.data.has_gaps or self.has_kinds
        return self.brought.loading(source) + body + drawn + filled + report

    @property
    def endings(self) -> dict[str, tuple[str, ...]]:
        """Endings of the files that can be written, by what is in them."""
        fills = is_frame(self.X) or self.shown_data().has_gaps
        return super().endings | ({"the filled table": TABLES} if fills else {})

    def write(self, path: Path) -> None:
        """Write the result, or the table without missing cells among those that are left out."""
        if path.suffix.lower() not in TABLES:
            return super().write(path)
        check_export(path, kind="table", shape=self.X.shape)
        model = self.posterior or self.result
        filled = as_frame(model.impute(self.X), model)
        write_table(self.brought.with_filled(filled), path, plain=True)

    def _drawn_code(self, before: str, paint: Paint) -> tuple[str, str]:
        """Return the lines that make the posterior, with the mask of its paint, and a report."""
        run, drawn = self.sample.run, self.sample_code("X", before)
        if not drawn:
            return "", ""
        if run.arguments["observed"] is not None and paint is not self.paint:
            seen = "seen" if self.values["missing"] > 0 else "X"
            drawn = mask_code(seen, self.paint) + drawn
        if not self.has_kinds:
            return drawn, ""
        share = run.settings["missing"]
        known = "X" if self.data.has_missing or not share else "seen"
        report = f"posterior.report({known}{', held_out' * bool(share)})\n"
        return drawn + self.data.printing("posterior"), report


def fitting_code(run: FitRun) -> str:
    """Return the lines that hide entries of X, and fit: before strokes and after them."""
    data, arguments, before = run.data, run.arguments, run.before
    share = float(data.values["missing"])
    lines = split_code("X", share, int(data.values["seed"])) if share > 0 else ""
    seen = "seen" if lines else "X"
    # Without a choice there are no offsets to name
    named = {k: v for k, v in arguments.items() if k != "offsets" or arguments["alpha"] == "auto"}

    def fit(result: Decomposition | None, paint: Paint, **options: Any) -> str:
        if not paint.n_painted:
            holes = share > 0 or data.has_missing
            verb = "complete" if holes or options else "decompose"
            return fit_call(result, verb, seen, named | options)
        options["observed"] = Code("mask")
        return mask_code(seen, paint) + fit_call(result, "complete", "X", named | options)

    if before is None:
        return lines + fit(run.result, data.paint)
    first, now = fit(before.result, before.data.paint), {"init": Code("fit")}
    return lines + first + fit(run.result, data.paint, **now, max_iter=BRUSH_ITERATIONS)
