"""The sentence of an explorer: data, model, error and intervals in words, some open popovers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nmd_lab._runtime.checks import evenly, many
from nmd_lab.api.messages import MIN_SWEEPS, message_of_chains
from nmd_lab.data.inputs import observe
from nmd_lab.data.sparse import SparseObservations
from nmd_lab.result.entries import entries_at
from nmd_lab.result.posterior import Posterior
from nmd_lab.result.selection import TIED, as_text, excess_text
from nmd_lab.result.summary import two_digits

Piece = tuple[str, str]  # words, and the popover that they open, or an empty string
Errors = Mapping[str, float]  # of models by their names, that of the fit first
SHAPES = {  # f in a sentence and alone, and as a path in a drawing of 40 x 24 pixels, to be chosen
    "identity": ("linear", "linear", "M2 21L38 3"),
    "relu": ("cut off at 0", "cut off at 0", "M2 21L20 21L38 3"),
    "minmax": ("kept between {} and {}", "between bounds", "M2 21L11.6 21L28.4 3L38 3"),
    "modulus": ("of absolute values", "absolute value", "M2 3L20 21L38 3"),
    "square": ("of squares", "square", "M2 3Q20 39 38 3"),
    "monotone": ("of a learned shape", "", ""),
    "mixed": ("a shape for each column", "", ""),
}
THIS = "this model"  # name of the fit among its rivals
AVERAGE = "the average"  # the simplest rival of a guess
NEARLY_NONE = 1e-4  # part of a range, or relative error, that is called 0
BETTER = 0.9  # part of the error of a rival below which a guess is better than it


class Number(NamedTuple):
    """The error of a model where entries are hidden, compared with that of rivals."""

    error: float
    before: str  # words in front of the number
    after: str = ""  # and behind it
    rivals: Mapping[str, float] = {}
    sign: str = "±"
    more: str = ""  # words behind the rivals
    value: str = ""  # the number, if it is not the error
    least: float = 0.0  # error up to which it is nearly none

    @classmethod
    def of_guess(cls, errors: Errors, things: tuple[str, str], limits: Any, more: str) -> Number:
        """Return the error of guesses; of the simplest one, the mean of each thing, in words."""
        (what, of), (low, high) = things, limits or (0.0, 0.0)
        range, least = range_words(low, high) * bool(limits), NEARLY_NONE * (high - low)
        (_, error), *rivals = errors.items()
        named = {f"each {of}'s average" if name == "average" else name: e for name, e in rivals}
        before = f"Held-out {what} are predicted to "
        return cls(error, before, range, named, more=more, least=least)

    @classmethod
    def of_seen(cls, fit: Any) -> Number:
        """Return the error of a fit that has seen everything."""
        where = "The relative error is ", " where seen; nothing is held out"
        return cls(fit._returned("relative_error"), *where, sign="", least=NEARLY_NONE)

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
        """Return an error with the sign of this number; nearly none as 0."""
        return f"{self.sign}{two_digits(error) if not error <= self.least else '0'}"

    def compared(self, now: float | None) -> str:
        """Return the number, and how much better or worse it is than another error."""
        if now is None or self.error == now:
            return self.shown
        if abs(self.error - now) < 0.005 * now:
            return f"{self.shown} (as now)"
        way = "better" if self.error < now else "worse"
        return f"{self.shown} ({two_digits(abs(self.error - now))} {way} than now)"

    @property
    def record(self) -> dict[str, Any]:
        """The numbers as the page draws them."""
        rivals = [{"name": n, "value": self.signed(e), "off": e} for n, e in self.rivals.items()]
        return {"name": THIS, "value": self.shown, "off": self.error, "rivals": rivals}


def range_words(low: float, high: float) -> str:
    r"""Return a range, with as few digits as move its ends by at most a hundredth of it.

    >>> range_words(0.00392, 1.0), range_words(-0.7, 254.0), range_words(-10.1, 7.8)
    (' of 0…\u20601', ' of 0…\u2060254', ' of -10…\u20607.8')
    """

    def text(end: float) -> str:
        rounded = ["0", *(as_text(end, digits) for digits in (1, 2, 3))]
        plain = (each for each in rounded if "e" not in each)
        near = (each for each in plain if abs(float(each) - end) <= 0.01 * (high - low))
        return next(near, f"{float(rounded[-1]):g}")

    return f" of {text(float(low))}…\N{WORD JOINER}{text(float(high))}"


def painted_words(stroke: str, errors: Errors, covered: str = "") -> str:
    """Return a line for a kind of strokes: its error, that of a rival, and the coverage."""
    (_, error), (rival, other) = errors.items()
    good = "worse than" if error >= other / BETTER else "about as good as"
    good = "better than" if error < BETTER * other else good
    off, by = two_digits(error), two_digits(other)
    return f"under {stroke}: ±{off}, {good} {rival} (±{by}){covered}"


def model_words(fit: Any) -> list[Piece]:
    """Return the number of components and the shape of a fit or a posterior."""
    f = fit.nonlinearity
    named = f"with {f.label.split(':')[0] if f.label else f.name}"
    words, *_ = SHAPES.get(str(f.name), (named,))
    ends = [as_text(end, 3) for end in f.parameters] if str(f.name) == "minmax" else []
    shape = words.format(*ends)
    return [(many(fit.rank, "component"), "components"), (", ", ""), (shape, "shape")]


def choice_words(table: Any) -> str:
    """Return which number of components was chosen by trials, and which ones are as good."""
    if "rank" not in table.attrs.get("options", "").split(", "):
        return ""
    rank, ranks = int(table["rank"][table.attrs["chosen"]]), table["rank"].values
    trials = many(ranks.size, "trial")
    tied = np.unique(ranks[table[TIED].values & (ranks != rank)]).tolist()
    some = " and ".join(filter(None, [", ".join(map(str, tied[:-1])), *map(str, tied[-1:])]))
    also = f"; {some} {'is' if len(tied) == 1 else 'are'} as good within the noise" if tied else ""
    return f"{many(rank, 'component')}: held-out error {excess_text(table)} of {trials}{also}"


def size_words(what: str, shape: tuple[Any, int], share: float = 1.0) -> str:
    """Return what data are, their size, and what part is known if that is not all."""
    percent = as_text(100 * share, 2) if share < 0.995 else f"{min(100 * share, 99.9):.1f}"
    m, n = shape
    return what.format(m, n) + (f", {percent} % known" if share < 1 else "")


def shapes(chosen: str, errors: Errors) -> list[dict[str, Any]]:
    """Return the curves, and how much larger the lowest error of each is in trials."""
    best = errors.get(chosen, min(errors.values(), default=1.0))

    def more(name: str) -> str:  # nothing where there is no such number
        error = 100 * (errors.get(name, math.inf) / best - 1) if best > 0 else math.inf
        return f"{error:+.0f} % error" if math.isfinite(error) else ""

    return [
        {
            "name": name,
            "text": text,
            "path": path,
            "error": "" if name == chosen else more(name),
            "chosen": name == chosen,
        }
        for name, (_, text, path) in SHAPES.items()
        if path
    ]


LEVEL = 0.9  # probability of the intervals
LEVELS = (0.1, 0.3, 0.5, 0.7, LEVEL)  # and of those that are compared with what they hold
TOO_FAR = 0.07  # difference from the level at which intervals are too narrow, or too wide
MAX_CHECKED = 5000  # entries that are checked; of more, as many that are spaced evenly


class Findings(NamedTuple):
    """Coverage of the intervals of a posterior at known entries."""

    held_out: bool  # whether the sampler has not seen the entries
    held: dict[float, float]  # fraction of the intervals that cover the value, by probability

    @property
    def summary(self) -> str:
        """The coverage in one line."""
        return self.covers(f" of the {'held-out' if self.held_out else 'known'} values")

    def covers(self, which: str = "") -> str:
        """Return the coverage as a part of a sentence."""
        coverage = self.held[LEVEL]
        few = ": they are too narrow" if coverage < LEVEL - TOO_FAR else ""
        few = ": they are too wide" if coverage > LEVEL + TOO_FAR else few
        level = f"{100 * LEVEL:.0f} % intervals"
        return f"{level} cover {100 * coverage:.0f} %{which}{few}"


def findings(posterior: Posterior, X: Any, held_out: SparseObservations | None) -> Findings | None:
    """Return the findings of a posterior at held-out entries, or at seen ones if there are none.

    Of a table they are of its numbers.  None without any, or if no column has two values.
    """
    unseen = held_out is not None and held_out.n_observed > 0
    compared = held_out if held_out and unseen else observe(X).as_sparse()
    if (table := posterior._labels.table) is not None:
        numbers = [at[0] for column, at in table.blocks() if not column.is_class]
        compared = compared.select(np.isin(compared.entries()[1], numbers))
        if not compared.n_observed:
            return None
    n = compared.n_observed
    some = evenly(n, MAX_CHECKED)  # as plots take them
    rows, columns, x = (each[some] for each in compared.entries())
    if pd.Series(x).groupby(columns).nunique().max() == 1:  # of constants, all is covered
        return None
    at, held = entries_at(rows, columns), {}
    for level in LEVELS:
        low, high = posterior.predict_interval(at, level=level).T
        held[level] = float(np.mean((low <= x) & (x <= high)))
    return Findings(unseen, held)


def doubt(posterior: Posterior) -> str:
    """Return what is to be done, and why, if the draws have not converged; empty if they have."""
    if not message_of_chains(posterior):
        return ""
    share, few = posterior._unsettled, posterior.trace.sizes["sweep"] < MIN_SWEEPS
    why = "too few to judge them" if few else f"another chain would differ in {share:.0%} of cells"
    return f"more draws may help: {why}"
