"""The sentence of an explorer, and notebook cells that repeat what was done.

The sentence has the data, the model and its error in words, some of which open.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from nmd_lab import datasets
from nmd_lab.api.fits import complete, decompose
from nmd_lab.datasets.film_ratings import small_folder
from nmd_lab.model.nonlinearities import NONLINEARITIES
from nmd_lab.model.nonlinearity import Nonlinearity
from nmd_lab.request.settings import ADMM, as_solver
from nmd_lab.result.selection import TIED, TRIAL, as_text
from nmd_lab.result.summary import two_digits

from .background import many
from .history import default_nonlinearity

Piece = tuple[str, str]  # words, and the popover that they open, or an empty string
SHAPES = {  # f in words, of which some have bounds
    "identity": "linear",
    "relu": "cut off at 0",
    "minmax": "kept between {} and {}",
    "modulus": "of absolute values",
    "square": "of squares",
    "monotone": "of a learned shape",
    "mixed": "a shape for each column",
}

CURVES = {
    "identity": "linear",
    "relu": "cut off at 0",
    "minmax": "between bounds",
    "modulus": "absolute value",
    "square": "square",
}
AVERAGE = "the average"  # the simplest rival of a guess
BETTER = 0.9  # part of the error of a rival below which a guess is better than it
ENDS, POINTS = (-1.5, 1.5), 41  # of a curve
WIDE, HIGH = 40, 24  # of its drawing, in pixels


class Number(NamedTuple):
    """The error of a model where entries are hidden, compared with that of rivals."""

    error: float
    before: str  # words in front of the number
    after: str = ""  # and behind it
    rivals: Mapping[str, float] = {}
    sign: str = "±"
    name: str = "this model"
    more: str = ""  # words behind the rivals
    value: str = ""  # the number, if it is not the error

    @property
    def pieces(self) -> list[Piece]:
        """The words; the number opens what is known of the error."""
        error, shown = self.error, self.shown
        rivals = ", ".join(
            f"{name} {self.signed(e)}{' (better)' * (e < error and self.signed(e) != shown)}"
            for name, e in self.rivals.items()
        )
        after = f"{self.after}; {rivals}" if rivals else self.after
        return [(self.before, ""), (self.shown, "number"), (f"{after}{self.more}.", "")]

    @property
    def shown(self) -> str:
        """The number with its sign or unit."""
        return self.value or self.signed(self.error)

    def signed(self, error: float) -> str:
        """Return an error with the sign of this number."""
        return f"{self.sign}{two_digits(error)}"

    @property
    def record(self) -> dict[str, Any]:
        """The numbers as the page draws them."""
        rivals = [
            {"name": name, "value": self.signed(e), "off": e} for name, e in self.rivals.items()
        ]
        about = {"name": self.name, "value": self.shown, "off": self.error}
        return about | {"rivals": rivals}


def range_words(low: float, high: float) -> str:
    r"""Return a range, with as few digits as move its ends by at most a hundredth of it.

    >>> range_words(0.00392, 1.0), range_words(-0.7, 254.0)
    (' of 0…\u20601', ' of 0…\u2060254')
    """

    def text(end: float) -> str:
        rounded = ["0", *(as_text(end, digits) for digits in (1, 2, 3))]
        near = (each for each in rounded if abs(float(each) - end) <= 0.01 * (high - low))
        return next(near, rounded[-1])

    return f" of {text(float(low))}…\N{WORD JOINER}{text(float(high))}"


def painted_words(strokes: Iterable[tuple[str, Mapping[str, float], str]]) -> str:
    """Return a line for each kind of strokes: its error, that of a rival, and the coverage."""
    said = []
    for stroke, errors, covered in strokes:
        (_, error), (rival, other) = errors.items()
        good = "worse than" if error >= other / BETTER else "about as good as"
        good = "better than" if error < BETTER * other else good
        off, by = two_digits(error), two_digits(other)
        said.append(f"under {stroke}: ±{off}, {good} {rival} (±{by}){covered}")
    return ".\n".join(said)


def model_words(fit: Any) -> list[Piece]:
    """Return the number of components and the shape of a fit or a posterior."""
    f = fit.nonlinearity
    words = SHAPES.get(str(f.name), f"with {f.label.split(':')[0] if f.label else f.name}")
    ends = [as_text(end, 3) for end in f.parameters] if str(f.name) == "minmax" else []
    shape = words.format(*ends)
    return [(many(fit.rank, "component"), "components"), (", ", ""), (shape, "shape")]


def choice_words(fit: Any) -> str:
    """Return which number of components was chosen, and which ones are as good."""
    table = fit.selection
    if "rank" not in table.attrs.get("options", "").split(", "):
        return ""
    rank, ranks = int(table["rank"][table.attrs["chosen"]]), table["rank"].values
    tied = np.unique(ranks[table[TIED].values & (ranks != rank)]).tolist()
    some = " and ".join(filter(None, [", ".join(map(str, tied[:-1])), *map(str, tied[-1:])]))
    also = f"; {some} {'is' if len(tied) == 1 else 'are'} as good within the noise" if tied else ""
    guess = "component guesses" if rank == 1 else "components guess"
    return f"{rank} {guess} hidden entries best of {table.sizes[TRIAL]} trials{also}"


def size_words(what: str, shape: tuple[int, int], share: float = 1.0) -> str:
    """Return what data are, their size, and what part is known if that is not all."""
    percent = as_text(100 * share, 2) if share < 0.995 else f"{min(100 * share, 99.9):.1f}"
    m, n = shape
    return what.format(m, n) + (f", {percent} % known" if share < 1 else "")


def shapes(chosen: str, errors: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the curves, and how much larger the lowest error of each is in trials."""
    best = errors.get(chosen, min(errors.values(), default=1.0))
    more = {name: _percent_more(error, best) for name, error in errors.items()}
    return [
        {
            "name": name,
            "text": text,
            "path": _path(name),
            "error": "" if name == chosen else more.get(name, ""),
            "chosen": name == chosen,
        }
        for name, text in CURVES.items()
    ]


def _percent_more(error: float, best: float) -> str:
    """Return how much larger an error is; nothing where there is no such number."""
    more = 100 * (error / best - 1) if best > 0 else math.inf
    return f"{more:+.0f} % error" if math.isfinite(more) else ""


def _path(name: str) -> str:
    """Return the path of a curve in an SVG drawing."""
    t = np.linspace(*ENDS, POINTS)
    f = NONLINEARITIES[name](*((-0.7, 0.7) if name == "minmax" else ()))
    x = np.asarray(f(t), dtype=float)
    across = np.linspace(2, WIDE - 2, POINTS)
    up = HIGH - 3 - (x - x.min()) / (np.ptp(x) or 1) * (HIGH - 6)
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(across, up, strict=True))


# Lines that print the number of the page
PRINT_ERROR = 'print(f"relative error {fit.relative_error:.4g}")\n'
PRINT_HIDDEN = 'print(f"hidden {}: ±{{{}:.3g}}")\n'
WIDTH = 88  # longest call on one line


class Code(str):
    """Code that stands for itself, not for a text."""


def expression(value: Any) -> str:
    """Return the code of a value.

    >>> import nmd_lab as nmd
    >>> expression(nmd.MinMax(0, 1)), expression("l1")
    ('nmd.MinMax(0.0, 1.0)', '"l1"')
    """
    if isinstance(value, Nonlinearity):
        kind, inner = type(value), ", ".join(map(repr, value.parameters))
        where = "nmd.nonlinearities" if value.form in (None, "monotone") else "nmd"
        return f"{where}.{kind.__name__}({inner})"
    if isinstance(value, ADMM):
        values = {f.name: getattr(value, f.name) for f in fields(value)}
        changed = {f.name: values[f.name] for f in fields(value) if values[f.name] != f.default}
        return call("nmd.ADMM", **changed)
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value.item() if hasattr(value, "item") else value)


def call(function: str, *positional: str, **named: Any) -> str:
    """Return the code of a call, with an argument a line if it is too long for one."""
    arguments = [*positional, *(f"{name}={expression(value)}" for name, value in named.items())]
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= WIDTH:
        return line
    return f"{function}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def fit_call(fit: Any, verb: str, data: str, arguments: Mapping[str, Any]) -> str:
    """Return the code of a fit."""
    named = dict(arguments)
    if fit is not None:
        validated = named.get("validation") is not None
        named |= stopping_arguments(fit, named.get("solver", "auto"), validated=validated)
    function = {"decompose": decompose, "complete": complete}[verb]
    defaults = {name: each.default for name, each in inspect.signature(function).parameters.items()}
    if defaults["nonlinearity"] is None:
        defaults["nonlinearity"] = default_nonlinearity(named.get("alpha", defaults["alpha"]))
    defaults["solver"] = as_solver(defaults["solver"])
    named = {name: value for name, value in named.items() if value != defaults[name]}
    return f"fit = {call(f'nmd.{verb}', data, **named)}\n"


def stopping_arguments(fit: Any, solver: Any, *, validated: bool) -> dict[str, Any]:
    """Return the arguments that stop a repeated fit where the first one stopped."""
    # The iteration that overflowed is not part of the result, but it has to be repeated
    overflowed = fit.stop_reason.code == "not finite"
    iterations = fit._n_iter + overflowed
    patient = {"solver": replace(as_solver(solver), patience=iterations)} if validated else {}
    return {"max_iter": iterations, **patient}


def name_in_notebook(value: Any) -> str | None:
    """Return the name of the variable that holds an object in the notebook, or None."""
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    shell = get_ipython()
    variables = {} if shell is None else shell.user_ns
    return next(
        (name for name, held in variables.items() if held is value and not name.startswith("_")),
        None,
    )


class DataSet(NamedTuple):
    """A data set of `nmd_lab.datasets`."""

    name: str  # name of the function that loads it
    arguments: dict[str, Any]  # arguments of the function

    @property
    def code(self) -> str:
        """Code that loads the data."""
        return call(f"nmd.datasets.{self.name}", **self.arguments)

    def load(self) -> Any:
        """Return the data."""
        return getattr(datasets, self.name)(**self.arguments)


def library() -> dict[str, DataSet]:
    """Return the data sets that an explorer offers without data, none of which is downloaded."""
    sets = {
        "digits": DataSet("digits", {}),
        "photograph of a flower": DataSet("photograph", {"name": "flower", "size": (213, 320)}),
        "photograph of a palace": DataSet("photograph", {"name": "china", "size": (213, 320)}),
    }
    if small_folder() is not None:
        sets["MovieLens, small"] = DataSet("movielens_small", {})
    size = {"n_users": 400, "n_items": 300, "n_ratings": 12_000}
    return sets | {"generated": DataSet("make_ratings", {**size, "random_state": 0})}
