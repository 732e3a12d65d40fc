"""The explorer of a matrix: pictures, a table, the brush, components and the plane of the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nmd_lab.model.fitted_values import FittedValues
from nmd_lab.result.posterior import Posterior

from .background import many
from .charts import row_texts, texts
from .history import History, PastRun
from .matrix_state import NO_PICTURE, OF_DATA, DecompositionState, MatrixData
from .model_state import THIS
from .photographs import is_photograph
from .pictures import MANY_MISSING, STROKES, Frame, Paint, at, drawn_at, frame_of, pictures_part
from .tables import Grid
from .view import Guess, ModelView
from .words import AVERAGE, Number, Piece, model_words, painted_words, range_words, size_words

MOST_DRAWN = 300_000  # entries of a matrix whose intervals are drawn in the background, at most


class DecompositionView(ModelView):
    """Pictures of the data and of the model, the brush, components and the plane of the rows."""

    state: DecompositionState

    def __init__(self, state: DecompositionState) -> None:
        super().__init__(state)
        self.shows_fit = False  # whether a table is that of the fit although there are draws
        if state.guessed is not None:
            self.buttons["flat"] = "rows as numbers", "No longer show each row as a picture"
        self.actions |= {
            "flat": lambda _: self.state.set("shape", NO_PICTURE),
            "brush": self._brush,
            "undo": lambda _: self.state.undo(),
            "arrange": self.order.arrange,
            "swap": self._swap,
        }

    def _swap(self, message: Mapping[str, Any]) -> None:
        """Turn a table from the draws to the fit, and back; make the draws if there are none."""
        if self.state.posterior is None:
            self._how_sure(message)
        else:
            self.shows_fit = not self.shows_fit
            self.state.active = self.state.fit if self.shows_fit else self.state.sample

    def _how_sure(self, message: Mapping[str, Any]) -> None:
        """Draw from the posterior, and show the draws."""
        self.shows_fit = False
        super()._how_sure(message)

    @property
    def title(self) -> str:
        """The data and their size."""
        data = self.state.data if not self.state.problems() else self._data()
        if data is None:
            return ""
        table, known, (m, n) = data.labels.table, ~np.isnan(data.original), data.shape
        if table is not None:  # classes have several columns of the matrix
            share = float(np.mean(known[:, table.first_columns]))
            return size_words("{} rows × {} columns", (m, len(table.columns)), share)
        share = float(np.mean(known))
        if data.picture is not None:
            kind = f"pictures of {data.picture.shape[0]} × {data.picture.shape[1]}"
            guessed = self.state.values["shape"] is None and self.state.guessed is not None
            words = f"{{}} rows, shown as {kind}" if guessed else f"{{}} {kind}"
            return size_words(words, (m, n), share)
        what = "a photograph of {} × {}" if self._is_photograph(data) else "a matrix of {} × {}"
        return size_words(what, (m, n // data.channels), share)

    @property
    def draws_itself(self) -> bool:
        """Whether draws take little time; cells of a table stay those of the fit."""
        table = self.state.data.labels.table is not None
        return not table and math.prod(self.state.shape) <= MOST_DRAWN

    def _is_photograph(self, data: MatrixData) -> bool:
        """Return whether the matrix is one picture, whose rows are no cases."""
        if data.picture is not None or data.labels.table is not None:
            return False
        X = self.state.X
        return data.channels > 1 or self.memo("is photograph", lambda: is_photograph(X))

    @property
    def _drawn_table(self) -> Posterior | None:
        """The draws that the cells of a table show; None where these are of the fit."""
        data = self.state.fitted_data
        is_table = data is not None and data.labels.table is not None
        return self.state.posterior if is_table and not self.shows_fit else None

    @property
    def model(self) -> list[Piece]:
        """The model of what is shown: of the fit, or of the draws of a table."""
        drawn = self._drawn_table
        if drawn is None:
            return super().model
        return [*model_words(drawn), (f", mean of {many(drawn.trace.sizes['sweep'], 'draw')}", "")]

    def number(self, *, of_fit: bool = False) -> Number | None:
        """Return the error where entries are hidden, compared with the rivals."""
        data, fit = self.state.fitted_data, self.result
        if data is not None and fit is not None and data.unseen.count:
            if not self.guess().errors:
                return None
            if fit._fitted.model.is_mixed and data.labels.table is not None:
                return self._number_of_table(data, None if of_fit else self._drawn_table)
        return super().number()

    def guess(self) -> Guess:
        """Return how well the model guesses what is hidden."""
        data, guess = self.state.fitted_data, super().guess()
        if data is None:
            return guess
        is_picture = data.picture is not None or self._is_photograph(data)
        guess = guess._replace(range=range_words(*data.limits))
        return guess._replace(things="pixels", of="pixel") if is_picture else guess

    @property
    def painted(self) -> str:
        """Words on what was painted, for below the picture."""
        data, fit, hidden = self.state.fitted_data, self.result, self.state.hidden
        if data is None or data.paint is None or fit is None or not hidden.count:
            return ""
        paint, seen = data.paint, data.observed

        def strokes() -> Iterator[tuple[str, dict[str, float], str]]:
            for stroke, sign in STROKES.items():
                under = (paint.signs == sign) & np.isnan(seen)
                if under.any():
                    error, other = hidden.error(fit, under), hidden.error_of_means(seen, fit, under)
                    yield stroke, {THIS: error, AVERAGE: other}, ""

        return self.memo("painted", lambda: painted_words(strokes()), fit, paint)

    def _number_of_table(self, data: MatrixData, drawn: Posterior | None) -> Number:
        """Return the error of numbers, in SD, and the fraction of classes that are guessed."""
        fitted, units = self.result._fitted, self.result._fitted.model
        table, of = data.labels.table, (data, fitted.W, drawn)
        assert table is not None
        grid = Grid(table, data.original, data.observed, fitted, drawn)
        name = "errors of the fit" if drawn is None else "errors of draws"
        found = self.memo(name, lambda: grid.judged(units), *of)
        (numbers, right), (by_means, commonest) = found
        if math.isnan(numbers):
            value, after = (f"{100 * each:.0f} %" for each in (right, commonest))
            after = f", the commonest class in {after}"
            return Number(1 - right, "Hidden classes are guessed right in ", after, value=value)
        classes = "" if math.isnan(right) else f", {100 * right:.0f} % of classes"
        more = "" if math.isnan(right) else f" and {100 * commonest:.0f} %"
        more += "" if drawn is None else self.guess().covered
        before, after = "Hidden numbers are guessed to ", f" SD{classes}"
        return Number(numbers, before, after, {"each column's average": by_means}, more=more)

    def curves(self) -> dict[str, dict[int, float]]:
        """Return the curves of errors by iteration, in the unit of the data where it is known."""
        data, recording = self.state.fitted_data, self.state.fit.recording
        unit = 1.0 if data is None else data.unit
        seen = {k: unit * error for k, error in dict(recording.seen).items()}
        table = None if data is None else data.labels.table
        has_classes = table is not None and any(column.is_class for column in table.columns)
        hidden = "hidden, with classes" if has_classes else "hidden"
        return {"seen": seen, hidden: recording.hidden}

    def parts(self, history: History) -> dict[str, Any]:
        """Return the pictures, curves, components, plane, trials and errors."""
        data, parts = self._data(), super().parts(history)
        if data is None:
            return parts
        fitted, frame, posterior = self._fitted(), self._frame_of(data), self.state.posterior
        parts["facts"]["painted"], off = self.painted, self.factors.off(fitted)
        whole = None if off else posterior  # of which alone draws know the uncertainty
        parts["pictures"] = self._pictures(data, frame, history, whole)
        shown = None if fitted is None else fitted.without(off)
        if shown is not None:
            parts["modelled"] = frame.arranged(frame.means(data.shape, shown.block))
        elif posterior is not None:
            parts["modelled"] = frame.arranged(self._drawn_at(posterior, frame)[0])
        if data.labels.table is not None:
            parts |= self._grid(data, shown)
        said, rows = self.lost(fitted), self._rows(data)
        if data.picture is not None and rows is not None and not said:
            said = f"{many(rows.size, 'picture')} shown; Escape on them shows all"
        parts |= self.factors.parts(fitted, frame, data.labels, said)
        if self._is_photograph(data):
            parts["facts"]["stage"], parts["scatter"] = "photograph", None
        if self._drawn_table is not None:  # these are of the fit, of which nothing is shown
            parts |= {"components": None, "scatter": None}
        if data.labels.table is not None and fitted is not None:
            is_fit = self._drawn_table is None
            parts["facts"]["swap"] = "least sure cells" if is_fit else "components of the fit"
        if data.labels.table is None and self.state.fit.phase != "running":
            seen = None if fitted is None else self.memo("known", self.state.known, data)
            parts["drawing"] = self.factors.drawing(fitted, frame, data.labels, data.original, seen)
        return parts

    def _grid(self, data: MatrixData, shown: Any) -> dict[str, Any]:
        """Return the cells of a table, and those of which its draws are least sure."""
        assert data.labels.table is not None
        drawn, names = self._drawn_table, texts(data.labels, "rows")
        grid = Grid(data.labels.table, data.original, data.observed, shown, drawn)
        doubts = self.memo("doubts", lambda: grid.least_sure(names), data, drawn)
        return {
            "tables": [] if doubts is None else [doubts],
            "grid": grid.shown(self._rows(data), names, self.order),
        }

    def frame(self) -> Frame | None:
        """Return which entries are shown as pictures; None without data."""
        data = self._data()
        return None if data is None else self._frame_of(data)

    def _data(self) -> MatrixData | None:
        """Return the data of the settings, or those of the fit where the settings are wrong."""
        wrong = {*OF_DATA, "shape"} & set(self.state.problems())
        if self.state.fit.phase == "running" or wrong:
            return self.state.fitted_data
        return self.state.data

    def _fitted(self) -> FittedValues | None:
        """Return the model of the last iterate, if it is of the data that are shown."""
        fit = self.state.fit
        others = any(self.state.values[name] != fit.begun.settings.get(name) for name in OF_DATA)
        state = None if others and fit.phase != "running" else fit.state
        return self.factors.sorted(None if state is None else state._fitted)

    def _rows(self, data: MatrixData) -> Any:
        """Return selected rows, or those of a component; None for neither."""
        return self.factors.shown_rows(self._fitted(), self.selection, data.shape[0])

    def _frame_of(self, data: MatrixData) -> Frame:
        """Return which entries are shown: selected rows, those of a component, or all."""
        rows = self._rows(data)
        key = None if rows is None else rows.tolist()
        of_data = data.shape, data.picture, data.channels
        return self.memo("frame", lambda: frame_of(*of_data, rows), data, key)

    def _pictures(
        self, data: MatrixData, frame: Frame, history: History, posterior: Posterior | None
    ) -> dict[str, Any]:
        """Return the pictures that do not change while the fit runs."""
        run: PastRun | None = history.runs.get(history.left or 0)

        def pictures() -> dict[str, Any]:
            seen, paint = data.observed, self.state.paint
            if data.picture is not None and data.values["missing"] <= MANY_MISSING:  # only strokes
                unmarked = True if paint is None else paint.signs == 0
                seen = np.where(unmarked, data.original, seen)
            layers = {"original": at(frame, data.original), "seen": at(frame, seen)}
            if posterior is not None:
                layers["spread"] = self._drawn_at(posterior, frame)[1]
            if run is not None:
                layers["beside"] = frame.means(data.shape, run.fit._fitted.block)
            more = dict[str, Any]()
            more["beside_title"] = "" if run is None else history.words(run)
            more["n_painted"] = 0 if paint is None else paint.n_painted
            return pictures_part(frame, data.limits, row_texts(data.labels), layers, **more)

        return self.memo("pictures", pictures, data, frame, run and run.fit, posterior)

    def _drawn_at(self, posterior: Posterior, frame: Frame) -> tuple[Any, Any]:
        """Return mean and standard deviation of a posterior where pictures are shown."""
        return self.memo("drawn", lambda: drawn_at(posterior, frame), posterior, frame)

    def _brush(self, stroke: Mapping[str, Any]) -> None:
        """Hide entries under the brush, and continue from the present factors."""
        data, frame, paint = self._data(), self.frame(), self.state.paint
        if data is None or frame is None:
            raise ValueError("the settings of the data are wrong: put them right first.")
        paint = Paint(data.shape) if paint is None else paint
        self.state.repaint(paint.touched(frame, stroke))
