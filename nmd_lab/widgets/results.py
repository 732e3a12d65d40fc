"""The explorers of results, which fit nothing: of a fit or a posterior, and of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from nmd_lab._runtime.checks import many
from nmd_lab.api.messages import message_of_chains
from nmd_lab.data.labels import picture_of
from nmd_lab.fit.loop import VALIDATION
from nmd_lab.result import netcdf
from nmd_lab.result.decomposition import Decomposition
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.selection import TRIAL
from nmd_lab.result.summary import fit_facts, headline_of, posterior_facts, validation_error
from nmd_lab.studies import Study
from nmd_lab.studies.cell import POSTERIOR_SCORES, select
from nmd_lab.studies.summary import (
    CONFIDENCE,
    choices,
    label_text,
    labels_of,
    rank_test,
    ranked,
    trials,
    variable,
)

from .background import Record, Run, Shape, some_of
from .charts import chart, curves_chart, table, texts, trials_charts
from .given import PRINT_ERROR, call, is_photograph
from .pictures import Frame, frame_of
from .state import Field, State
from .words import THIS, Number, Piece, size_words


class ResultState(State):
    """A fit or a posterior, of whose data nothing is known: nothing can be fitted here."""

    def __init__(self, outcome: Decomposition | Posterior, shape: Shape | None = None) -> None:
        super().__init__(outcome, {})
        row = outcome._labels.label_columns(np.zeros((1, outcome._shape[1])))
        self.picture = picture_of(row.isel(component=0, drop=True), shape)
        self.posterior, run = None, Run(phase="finished", message="")
        self.name = "posterior" if isinstance(outcome, Posterior) else "fit"
        self.filename = f"{self.name}-copy.nc"
        self.buttons = {}
        self.actions["arrange"] = self.order.arrange
        if isinstance(outcome, Posterior):
            run.warnings = tuple(message_of_chains(outcome).values())
            run.message, self.posterior = str(outcome.stop_reason), outcome
        else:
            error, self.trials = validation_error(outcome), outcome.selection
            run.result, run.errors = outcome, {} if error is None else {THIS: error}
        self.fit.recall(run)

    @property
    def result(self) -> Any:
        """The fit or the posterior."""
        return self.input

    def cannot_run(self) -> str:
        """Return why nothing runs here."""
        return f"a {self.name} holds no data: give the data to make a new one"

    @property
    def title(self) -> str:
        """What is shown, and its size."""
        (m, n), table = self.input._shape, self.input._labels.table
        if table is not None:  # classes have several columns of the matrix
            return size_words(f"a {self.name} of {{}} rows × {{}} columns", (m, len(table.columns)))
        return size_words(f"a {self.name} of {{}} × {{}}", (m, n))

    def number(self, *, of_fit: bool = False) -> Number | None:
        """Return the error of a fit, by which it was chosen, or the mean SD of a posterior."""
        outcome = self.input
        if self.off:  # without data its error is not known
            return None
        if self.posterior is None:
            if not self.trials.sizes[TRIAL] or VALIDATION in outcome.history:
                return super().number() or Number.of_seen(outcome)
            of = headline_of(outcome)
            return Number(float(of["value"]), "Its error is ", f" {of['text']}")
        if outcome._labels.table is not None:
            return None
        spread = float(np.mean(self.drawn(self.frame())[1]))
        return Number(spread, "A prediction is uncertain by ", " on average (standard deviation)")

    @property
    def shown(self) -> Any:
        """The model of a fit with its components as they are; None of a posterior."""
        return None if self.posterior else self.input._fitted

    def frame(self) -> Frame:
        """Return which entries are shown."""
        return frame_of(self.input._shape, self.picture, rows=self.rows(self.input._shape[0]))

    def parts(self) -> Record:
        """Return facts and pictures, of a fit curves, trials, components and plane, or a table."""
        outcome, frame, labels = self.input, self.frame(), self.input._labels
        nothing, spread = np.broadcast_to(np.nan, outcome._shape), None
        parts: Record = {"facts": {}}
        parts |= self.model_parts(frame, labels, nothing, nothing, self.posterior)
        if self.posterior is None:
            facts = fit_facts(outcome)
            hidden = some_of(outcome.history, VALIDATION)
            seen = {} if hidden else some_of(outcome.history, "relative_error")
            parts["curves"] = curves_chart({"hidden": hidden, "seen": seen})
            parts |= {"dots": trials_charts(self.trials), "drawing": self.drawing(frame, labels)}
        else:
            facts, spread = posterior_facts(outcome), self.drawn(frame)[1]
        shown = np.frombuffer(parts["modelled"], "<f4")
        # As of the data: a linear model goes a little beyond them
        low, high = map(float, np.nanpercentile(shown, (1, 99)))
        pixels = shown.reshape(-1, frame.width)
        if frame.picture is None and labels.table is None and is_photograph(pixels):
            parts |= {"facts": {"stage": "photograph"}, "scatter": None}  # as of its data
        listed = table("facts", ("", ""), [pair for pair in facts.items() if pair[1]])
        layers = self.pictures(frame, (low, high), texts(labels, "rows"), {"spread": spread})
        return parts | {"pictures": layers, "tables": [listed, *parts.get("tables", [])]}

    def lines(self, source: str | None) -> str:
        """Return the lines that show the same without an explorer."""
        if self.posterior is not None:
            return f"posterior = {source or '...'}\nprint(posterior)\n"
        reading = "" if source == "fit" else f"fit = {source or '...'}\n"
        plots = "fit.plot.convergence()\nfit.plot.components()\n"
        plots += "fit.plot.selection()\n" * bool(self.trials.sizes[TRIAL])
        return f"{reading}{PRINT_ERROR}{plots}"


NO_DIMENSION = "none"  # option for a chart without colours or without panels
MAX_LISTED = 24  # fits of a point, or models, in a table


Labels = dict[str, Any]  # of a model, and of the conditions that the chart tells apart


def best_at_each(results: xr.Dataset, metric: str, dims: Sequence[str]) -> list[Labels]:
    """Return the labels of the model with the lowest mean error at each position along dimensions.

    Numbers of the last dimension, along which lines are drawn, rise.
    """
    points, x = [], dims[-1]
    results = results.sortby(x) if is_numeric(results, x) else results
    for at in np.ndindex(*(results.sizes[dim] for dim in dims)):
        here = results.isel({dim: [k] for dim, k in zip(dims, at, strict=True)})
        if not (models := ranked(here, metric)).empty:
            conditions = {d: here[d].item() for d in trials(here) if here.sizes[d] == 1}
            points.append(labels_of(here, models.index[0]) | conditions)
    return points


def is_numeric(results: xr.Dataset, name: Any) -> bool:
    """Return whether the labels of a dimension, or the values of a variable, are numbers."""
    return results[name].dtype.kind in "iuf"


class StudyState(State):
    """The results of a study, the chart with its points, and the details of one."""

    filename = "study-copy.nc"

    def __init__(self, study: Study | xr.Dataset, **values: Any) -> None:
        self.results = study.results if isinstance(study, Study) else study
        sizes = {str(dim): size for dim, size in self.results.sizes.items() if dim != "seed"}
        if not sizes:
            raise ValueError("results has no dimension but the seed: give a study that varies one.")
        metrics = [str(n) for n in self.results.data_vars if is_numeric(self.results, n)]
        named = {name: label_text(name) for name in metrics}
        self.fields = [
            Field("metric", "Measure", "choice", metrics, "data", option_labels=named),
            Field("x", "Along x", "choice", [*sizes], "data"),
            Field("color", "Colour", "choice", [NO_DIMENSION, *sizes], "data"),
            Field("panel", "Panels", "choice", [NO_DIMENSION, *sizes], "data"),
        ]
        self.selected: Labels | None = None  # those of the point that was clicked
        x = max(sizes, key=lambda dim: (dim == "rank", is_numeric(self.results, dim), sizes[dim]))
        varied = [dim for dim in sizes if dim != x and sizes[dim] > 1]
        color = next(iter(varied), NO_DIMENSION)
        conditions = (dim for dim in trials(self.results) if dim in varied and dim != color)
        panel = next(conditions, NO_DIMENSION)
        first = {"metric": variable(self.results, None), "x": x, "color": color, "panel": panel}
        super().__init__(study, values, first=first)
        self.buttons, self.points = {}, list[Labels]()
        self._shown: Record | None = None
        self.actions["point"] = self._choose

    def unused(self) -> list[str]:
        """Return the names of the settings that have no effect now."""
        return ["x", "color", "panel"] if len(self.results.sizes) <= 2 else []

    def check(self, field: Field) -> None:
        """Raise an error if a setting is wrong."""
        _, x, color, panel = self.values.values()
        shown, now = {"color": (color, [x]), "panel": (panel, [x, color])}.get(field.name, ("", []))
        if shown != NO_DIMENSION and shown in now:
            raise ValueError(f"{shown} is shown already: choose another, or none.")

    def cannot_run(self) -> str:
        """Return why nothing runs here."""
        return "a study is shown, not fitted: study.best() fits its best model"

    # Results

    @property
    def result(self) -> xr.Dataset:
        """The results, or those of the point that was clicked."""
        chosen = self.selected
        if chosen is None:
            return self.results
        return self.memo("cells", lambda: select(self.results, chosen), chosen)

    def score(self, labels: Labels) -> tuple[float, float]:
        """Return the mean of the measure at some labels, and its standard deviation over seeds."""
        cells = select(self.results, labels)[self.values["metric"]]
        by_seed = cells.mean([dim for dim in cells.dims if dim != "seed"])
        spread = float(by_seed.std(ddof=1)) if by_seed.size > 1 else 0.0
        return float(by_seed.mean()), spread

    def write(self, path: Path) -> None:
        """Write the results, or those of the point, to a file."""
        netcdf.write(self.result, path)

    @property
    def models(self) -> pd.DataFrame:
        """The errors of the models in all conditions, the best model first."""
        metric = self.values["metric"]
        return self.memo("models", lambda: ranked(self.results, metric), metric)

    def _labels(self, place: int = 0) -> Labels:
        """Return the labels of a model, the best one over all conditions by default."""
        return labels_of(self.results, self.models.index[place])

    # The sentence

    @property
    def title(self) -> str:
        """The size of the study."""
        return f"a study of {many(np.unique(self.results['fit'].values).size, 'fit')}"

    @property
    def model(self) -> list[Piece]:
        """The model that is best over all conditions, and what is at the end of a grid."""
        if self.models.empty:
            return []
        best, results = self._labels(), self.results
        grids = {name: results[name].values for name in best if is_numeric(results, name)}
        ends = [n for n, x in grids.items() if x.size > 1 and best[n] in (x.min(), x.max())]
        words = f" ({label_text(' and '.join(ends))} at the end of the grid)" * bool(ends)
        return [(f"best is {_words(best)}{words}", "")]

    def number(self, *, of_fit: bool = False) -> Number | None:
        """Return the lowest mean of the measure, and the difference from the next model."""
        if self.models.empty:
            return None
        mean, _ = self.score(self._labels())
        conditions = math.prod(self.results.sizes[dim] for dim in trials(self.results))
        where = f", mean of {conditions} conditions" if conditions > 1 else ""
        name, after = self._measure(), where + self._difference()
        return Number(mean, f"Its {name} is ", after, value=f"{mean:.3g}")

    def _measure(self) -> str:
        """Return the name of the measure for a reader."""
        metric = self.results[self.values["metric"]]
        return label_text(metric.attrs.get("long_name", metric.name))

    @property
    def tested(self) -> pd.DataFrame | None:
        """The paired differences from the best model; None where the lowest is not the best."""
        results, metric = self.results, self.values["metric"]
        if len(self.models) < 2 or metric in POSTERIOR_SCORES:
            return None
        return self.memo("tested", lambda: rank_test(results, metric, CONFIDENCE, {}), metric)

    def _difference(self) -> str:
        """Return the paired difference of the next model in words."""
        results, tested = self.results, self.tested
        if tested is None:
            return ""
        more, *ends = tested[["difference", "low", "high"]].iloc[1]
        places = max(0, 1 - math.floor(math.log10(more))) if more > 0 else 2
        text = f"; {_words(self._labels(1))} is {more:.{places}f} worse"
        if results.sizes["seed"] < 2:
            return f"{text}, with one seed"
        text += "," if ends[0] > 0 else ", not"
        low, high = (f"{end:.{places}f}" for end in ends)
        paired = f"paired by {results.sizes['seed']} seeds"
        return f"{text} clearly (95 % interval {low} to {high}, {paired})"

    # The page

    def parts(self) -> Record:
        """Return the chart, the fits of the chosen point or of the best model, and all models."""
        wrong = {"color", "panel"} & set(self.problems())
        if self._shown is None or not wrong:  # meanwhile, the chart before it stays
            self._shown = self.memo("chart", self._chart, *self.values.values())
        chosen, best = self.selected, [] if self.models.empty else [self._labels()]
        return {
            "dots": {"study": self._shown},
            "facts": {"point": self.points.index(chosen) if chosen in self.points else None},
            "tables": [*map(self.fits_at, best if chosen is None else [chosen]), self._ranking()],
        }

    def _choose(self, message: Mapping[str, Any]) -> None:
        """Choose a point, or no point by a second click on it."""
        point = self.points[message["id"]]
        self.selected = None if point == self.selected else point

    def _chart(self) -> Record:
        """Return the chart of the present layout, and keep the labels of its points."""
        results, sizes = self.results, self.results.sizes
        metric, x, color, panel = self.values.values()
        shown = [dim for dim in dict.fromkeys((panel, color, x)) if dim != NO_DIMENSION]
        self.points = best_at_each(results, metric, shown)
        if not self.points:
            raise ValueError(f"{metric} is NaN everywhere: choose another measure.")
        joined, texts = is_numeric(results, x), [*map(label_text, results[x].values)]
        places = [*map(float, results[x].values if joined else range(len(texts)))]
        hidden = (dim for dim in (*trials(results), "seed") if dim not in shown)
        averaged = [label_text(dim) for dim in hidden if sizes[dim] > 1]
        said = f"mean over {' and '.join(averaged)}" if averaged else ""
        bands = f"; {'bands' if joined else 'bars'}: ± SD over seeds" * (sizes["seed"] > 1)
        return chart(
            said + bands,
            label_text(x),
            self._measure(),
            [self._drawn(k, places) for k in range(len(self.points))],
            color="" if color == NO_DIMENSION else label_text(color),
            ticks=[list(tick) for tick in zip(places, texts, strict=True)],
            joined=joined,
        )

    def _drawn(self, k: int, places: list[float]) -> Record:
        """Return a point as the chart has it; bars of different colours stand side by side."""
        _, x, color, panel = self.values.values()
        point, results, (mean, spread) = self.points[k], self.results, self.score(self.points[k])
        place = places[results[x].values.tolist().index(point[x])]
        if color in point and not is_numeric(results, x):
            colors = results[color].values.tolist()
            place += 0.1 * (colors.index(point[color]) - (len(colors) - 1) / 2)
        return {
            "panel": f"{label_text(panel)} {label_text(point[panel])}" if panel in point else "",
            "label": label_text(point[color]) if color in point else "",
            "x": place,
            "y": mean,
            "low": mean - spread,
            "high": mean + spread,
            "id": k,
            "name": _labels_text(point),
        }

    def _ranking(self) -> Record:
        """Return the table of the models, the best one first."""
        models, metric = self.models, label_text(self.values["metric"])
        tested, paired = self.tested, self.results.sizes["seed"] > 1
        rows = [
            [*map(label_text, self._labels(k).values()), f"{mean:.4g}"]
            for k, mean in enumerate(models.mean(axis=1))
        ]
        head = [*map(label_text, self._labels() if rows else ()), metric]
        if tested is not None and paired:
            head.append("worse by, 95 %")
            ends = tested[["low", "high"]].to_numpy()
            worse = ("" if np.isnan(low) else f"{low:.2g} to {high:.2g}" for low, high in ends)
            rows = [[*row, each] for row, each in zip(rows, worse, strict=True)]
        said = "the best model first; a click on a point shows its fits, a second click goes back"
        return _shortened(head, rows, said, "models")

    def fits_at(self, point: Labels) -> Record:
        """Return the table of the fits behind a point."""
        cells, metric = select(self.results, point), self.values["metric"]
        dims = [str(dim) for dim in cells.dims if cells.sizes[dim] > 1]
        # What fits chose by held-out entries
        chosen = [str(name) for name in cells.data_vars if str(name).endswith("_chosen")]
        names = [n for n in dict.fromkeys([metric, *chosen, "n_iter", "seconds"]) if n in cells]
        frame = cells[names].to_dataframe().reset_index()
        texts = [frame[dim].map(label_text) for dim in dims]
        texts += [frame[name].map(partial(_value_text, of=name)) for name in names]
        rows = pd.concat(texts, axis=1).to_numpy().tolist()
        mean, spread = self.score(point)
        caption = f"{_labels_text(point)}: {mean:.4g} (SD over seeds {spread:.2g})"
        head = [label_text(n.replace("n_iter", "iterations")) for n in dims + names]
        return _shortened(head, rows, caption, "fits")

    # Code

    def lines(self, source: str | None) -> str:
        """Return the lines that print the models with differences, or the mean of the point."""
        metric, is_study = self.values["metric"], isinstance(self.input, Study)
        results = f"{source or '...'}{'.results' if is_study else ''}"
        lines, errors = f"results = {results}\n", f'results["{metric}"]'
        point = ""
        if self.selected is not None:
            point = f"{lines}print({call(f'{errors}.sel', f'{self.selected!r}')}.mean().item())\n"
        if is_study and choices(self.results) and metric not in POSTERIOR_SCORES:
            return f'print({source or "..."}.rank_test("{metric}").head(24).to_string())\n{point}'
        if point:
            return point
        mean = call(f"{errors}.mean", f"{[*trials(self.results), 'seed']!r}", skipna=False)
        ranked = ".to_series().dropna().sort_values().head(24)" if choices(self.results) else ""
        return f"{lines}print({mean}{ranked})\n"


def _shortened(head: list[str], rows: list[list[str]], caption: str, what: str) -> Record:
    """Return a table with its first rows; the caption has their number."""
    if len(rows) > MAX_LISTED:
        caption += f" (the first {MAX_LISTED} of {len(rows)} {what})"
    return table(what, head, rows[:MAX_LISTED], caption=caption)


def _words(labels: Mapping[str, Any]) -> str:
    """Return the labels of a model on one line; a word needs no name."""
    each = (x if isinstance(x, str) else f"{dim} {label_text(x)}" for dim, x in labels.items())
    return label_text(", ".join(each))


def _labels_text(labels: Mapping[str, Any]) -> str:
    """Return the labels of a point on one line."""
    return ", ".join(f"{label_text(name)} {label_text(value)}" for name, value in labels.items())


def _value_text(each: Any, of: str) -> str:
    """Return a result of a cell: a number with four digits, or a text; seconds have their unit."""
    return f"{each:.4g}{' s' * (of == 'seconds')}" if isinstance(each, float | int) else str(each)
