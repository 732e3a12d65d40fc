"""A rising f that is learned from the values of a column, or from values and limits.

The f of a column with limits is above 0 unless a value or a limit is below 0.  A column of
concentrations has values below a detection limit: a straight line would draw negative ones there,
and an f that is learned from the values alone would take the limits for values.

Columns may be linear in others, such as a length in two units, or a sum and its parts.  An f that
is learned for each column bends such relations.  The copy of a column in other units gets
the f of this column in its units.  All columns of another relation are straight.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.interpolate import BSpline
from scipy.optimize import nnls
from scipy.special import ndtr, ndtri
from scipy.stats import CensoredData, norm

from nmd_lab._runtime.checks import check_share
from nmd_lab._runtime.compiler import number_at

from .loss import Array, FloatArray
from .nonlinearity import PiecewiseLinear, shortest
from .ordinal import interval_mass

N_KNOTS = 20
"""Knots of a learned f; fewer fit the middle alone, more follow single values of small tables."""

MIN_SLOPE = 0.02
"""Smallest slope of a learned f, in units of the column: equal values at an end stay apart."""


class Monotone(PiecewiseLinear):
    """A rising, piecewise linear f that is learned, for columns whose values are skewed.

    Without knots it is learned from the values of the column, or of all of X.  f maps the quantiles
    of a normal variable, with the mean and the standard deviation of X, to those of X, and has
    straight tails unless `flat`.  With fewer than eight different values f is the straight line.

    `decompose` and `complete` continue from there: between rounds of iterations f becomes the
    rising function with the same knots, and the same rise between the first and the last one, that
    is nearest to X at the present WH, by weighted least squares in which changes of slope count,
    too.  It does so if the loss falls, whatever the loss.

    Parameters
    ----------
    t : sequence of float, optional
        Knots, ascending; at least two.
    x : sequence of float, optional
        Values of f there, ascending, in units of X.
    share : float, default 1
        Weight of the quantiles in the first f, in (0, 1]; the straight line has the rest.
    learns : bool, optional
        Whether a fit learns f, from the given knots on; by default only if none are given.
    flat : bool, default False
        Whether f is constant beyond given knots; otherwise its tails are straight.

    Raises
    ------
    ValueError
        If the numbers of t and x differ, do not ascend, or are not finite, or `share` is out of
        range.

    See Also
    --------
    PiecewiseLinear : An f of given pieces.

    Notes
    -----
    Least squares over rising functions is isotonic regression: R. E. Barlow and H. D. Brunk, "The
    isotonic regression problem and its dual", Journal of the American Statistical Association 67,
    1972.

    Examples
    --------
    >>> import numpy as np, nmd_lab as nmd
    >>> from sklearn.datasets import load_breast_cancer
    >>> area = load_breast_cancer(as_frame=True).data["mean area"].to_numpy()  # of tumours, skewed
    >>> f = nmd.nonlinearities.Monotone().for_data(area)
    >>> middle = float(f([area.mean()])[0])  # of a normal variable, to that of the data
    >>> bool(abs(middle - np.median(area)) < 0.02 * area.std())
    True
    """

    name = "monotone"
    form = "monotone"
    label = "monotone, learned"
    degree = 1
    monotone = True
    parameter_names = ("t", "x", "share", "learns", "flat")

    def __init__(
        self,
        t: Sequence[float] = (),
        x: Sequence[float] = (),
        share: float = 1.0,
        learns: bool | None = None,
        flat: bool = False,
    ) -> None:
        self.share = check_share("share", share, zero=False, one=True)
        self.t, self.x = (tuple(np.asarray(each, dtype=np.float64).tolist()) for each in (t, x))
        self.learns = not self.t if learns is None else bool(learns)
        self.flat = bool(flat)
        if self.flat and not self.t:
            raise ValueError("flat=True goes with knots: give t and x.")
        line = [(0.0, 1.0)] * 2  # before it is learned
        knots, values = (self.t, self.x) if self.t or self.x else line
        steps = [np.diff(each) for each in (knots, values)]
        if len(knots) != len(values) or len(knots) < 2 or not all((d > 0).all() for d in steps):
            raise ValueError(
                f"t={t!r} and x={x!r} are no knots: give two ascending sequences of one length, of "
                "two numbers or more, or none."
            )
        slopes = (steps[1] / steps[0]).tolist()
        ends = [0.0, 0.0] if self.flat else [slopes[0], slopes[-1]]
        if self.flat:
            self.ends = knots[0], knots[-1]
        super().__init__(knots, [ends[0], *slopes, ends[1]], (knots[0], values[0]))
        self.table = np.array(self.parameters)

    @staticmethod
    def forward(t: float, p: tuple[float, ...]) -> float:
        """Return slope * t + intercept of the piece of t."""
        n, table = int(p[0]) // 3, int(p[1])  # of n breaks, n + 1 slopes and n + 1 intercepts
        k = 0
        while k < n and t > number_at(table, k):
            k += 1
        value: float = number_at(table, n + k) * t + number_at(table, 2 * n + 1 + k)
        return value

    @property
    def settings(self) -> tuple[Any, ...]:
        """Knots and values, share, whether f is learned, and whether it is constant beyond them."""
        return self.t, self.x, self.share, self.learns, self.flat

    def __repr__(self) -> str:
        words = [f"[{', '.join(map(shortest, each))}]" for each in (self.t, self.x) if each]
        words += [f"share={self.share!r}"] if self.share < 1 else []
        words += [f"learns={self.learns}"] if self.learns == bool(self.t) else []
        words += ["flat=True"] if self.flat else []
        return f"Monotone({', '.join(words)})"

    def __str__(self) -> str:
        return f"Monotone({len(self.t)} knots)" if self.t else repr(self)

    def for_data(self, x: FloatArray, *, centred: bool = False) -> Monotone:
        """Return f with knots from values, the straight line for few; itself if it has knots."""
        if self.t:
            return self
        x = np.asarray(x, dtype=np.float64)
        values, counts = np.unique(x, return_counts=True)
        centre = float(x.mean()) if centred and x.size else 0.0
        spread = float(x.std()) if x.size else 0.0
        # Few different values, or rounding alone, determine no f.
        if values.size < 8 or spread < 1e-13 * float(np.abs(x).max()):
            return Monotone([0.0, 1.0], [centre, centre + 1.0])
        scores = ndtri((np.cumsum(counts) - counts / 2) / x.size)
        z = ndtri((np.arange(N_KNOTS) + 0.5) / N_KNOTS)
        quantiles = np.interp(z, scores, values)
        t = float(x.mean()) + spread * z
        knots = self.share * quantiles + (1 - self.share) * t
        rises = np.maximum(np.diff(knots), MIN_SLOPE * np.diff(t))
        middle = N_KNOTS // 2
        knots = knots[middle] + np.concatenate([[0.0], np.cumsum(rises)]) - rises[:middle].sum()
        return Monotone((t - centre).tolist(), knots.tolist(), self.share, self.learns)

    def pseudo_inverse(self, x: FloatArray) -> FloatArray:
        """Return t with f(t) = x; where f is constant beyond its knots, the knot of that end."""
        if not self.flat:
            return super().pseudo_inverse(x)
        return np.asarray(np.interp(x, self.x, self.t).astype(x.dtype))

    def within(self, low: float, high: float) -> Monotone:
        """Return f between two numbers, and constant beyond them."""
        ends = self.pseudo_inverse(np.array([low, high], dtype=np.float64)).tolist()
        inner = [
            (t, x)
            for t, x in zip(self.t, self.x, strict=True)
            if low < x < high and ends[0] < t < ends[1]
        ]
        t, x = zip((ends[0], low), *inner, (ends[1], high), strict=True)
        return Monotone(t, x, self.share, self.learns, flat=True)

    def learned(self, x: FloatArray, t: FloatArray, weights: FloatArray) -> Monotone:
        """Return f with the values at the knots that are nearest to X at values of WH."""
        if not self.learns or not self.t:
            return self
        knots, values = np.array(self.t), np.array(self.x)
        slowest = np.minimum(MIN_SLOPE * np.diff(knots), np.diff(values))
        wide = (np.asarray(each, dtype=np.float64) for each in (t, x, weights))
        best = nearest_values(knots, values, slowest, *wide)
        return Monotone(self.t, best.tolist(), self.share, learns=True, flat=self.flat)

    def scaled(self, size: float) -> Monotone:
        """Return the same f for data that are divided by `size`."""
        t, x = ([value / size for value in each] for each in (self.t, self.x))
        return Monotone(t, x, self.share, self.learns, self.flat)


PULL = 1e-3
"""Weight of the present rises, as a fraction of that of all data, where few data determine them."""

TURN = 0.05
"""Usual change of slope at a knot, as a fraction of the slope.  With more, f becomes a staircase
where data are few and noisy, since WH moves to its steps; with less, it nearly stays as it was."""


def nearest_values(
    knots: Array, values: Array, slowest: Array, t: Array, x: Array, weights: Array
) -> Array:
    """Return values at the knots of the smooth f that is nearest to data, by least squares.

    The rises are at least `slowest`, and their sum stays what it is: otherwise a ridge would bring
    WH to zero, and f would become ever steeper.  Changes of slope count like data, with the noise
    of these around the present f.

    Parameters
    ----------
    knots, values : ndarray (k,)
        Knots and present values of f there, both ascending.
    slowest : ndarray (k - 1,)
        Smallest rises, at most the present ones.
    t, x, weights : ndarray (n,)
        Arguments of f, what f should be there, and weights of the squared differences.

    Returns
    -------
    ndarray (k,)
        Values of f at the knots.
    """
    rises = np.diff(values)
    free = float((rises - slowest).sum())
    if not free > 0 or not weights.sum() > 0:
        return values
    # f is values[0] + shift + Σ rise of the part of each interval that lies below t.
    root = _root_of_gram(knots, t, x - values[0], weights)
    steps = np.tril(np.ones((knots.size, knots.size - 1)), -1)
    columns, misfit = root[:, :-1] @ steps, root[:, -1]
    constant = root[:, :-1].sum(axis=1)
    of_shift = constant / (constant @ constant)  # times a misfit: the best shift
    pull = np.sqrt(PULL * np.square(root[:, :-1]).sum() / rises.size) * np.eye(rises.size)
    off = misfit - columns @ rises
    off -= constant * (of_shift @ off)
    bends = _bends(knots, rises) * np.sqrt(np.square(off).sum() / weights.sum())
    system = np.vstack([columns - np.outer(constant, of_shift @ columns), pull, bends])
    wanted = [misfit - constant * (of_shift @ misfit), pull @ rises, np.zeros(len(bends))]
    # Each vertex of the simplex of rises is a column of differences to what is wanted.
    vertices = free * system - (np.concatenate(wanted) - system @ slowest)[:, None]
    # The nearest point of a simplex to 0 is a problem of nonnegative least squares.
    size = np.abs(vertices).max() or 1.0
    target = np.append(np.zeros(len(vertices)), 1.0)
    shares = nnls(np.vstack([vertices / size, np.ones(rises.size)]), target)[0]
    best = slowest + free * shares / shares.sum()
    shift = float(of_shift @ (misfit - columns @ best))
    return np.asarray(values[0] + shift + np.concatenate([[0.0], np.cumsum(best)]))


def _bends(knots: Array, rises: Array) -> Array:
    """Return the matrix from rises to changes of slope, in units of the usual ones."""
    slopes = rises / np.diff(knots)
    mean = rises.sum() / (knots[-1] - knots[0])
    usual = TURN * np.maximum(mean, np.maximum(slopes[1:], slopes[:-1]))
    return np.asarray(np.diff(np.diag(1 / np.diff(knots)), axis=0) / usual[:, None])


def _root_of_gram(knots: Array, t: Array, x: Array, weights: Array) -> Array:
    """Return R with RᵀR the weighted sums of products of the hat functions at t and of x."""
    ends = knots[[0, *range(knots.size), -1]]
    hats = BSpline.design_matrix(t, ends, 1, extrapolate=True)  # tails are straight
    both: Any = hats, x[:, None]
    columns = sparse.hstack(both, format="csr")
    gram = (columns.T @ columns.multiply(weights[:, None])).toarray()
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(np.sqrt(np.maximum(values, 0))[:, None] * vectors.T)


def f_within_limits(low: Array, high: Array) -> Monotone | None:
    """Return the f of a column, given the limits of its values; None for the straight line.

    It is the exponential function if normal logarithms are likelier than normal values.  Where
    values are likelier, and many would be negative below a limit, it is the line with an
    exponential tail to 0.
    """
    known, x = low == high, np.where(np.isfinite(low), low, high)
    # Fewer different known values determine no distribution.
    if np.unique(x[known]).size < 5 or x.min() < 0 or (x[~known] == 0).any():
        return None
    first = -1e4  # knot at which f is 0, in standard deviations or limits: no draw is there
    above = x > 0
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum([low[above], high[above]], 0))
    (of_x, centre, spread), (of_log, mean, sd) = _normal(low, high), _normal(*logs)
    if of_log - logs[0][known[above]].sum() > of_x:
        t = mean + sd * np.append(first, np.linspace(-5, 4, 19))
        return Monotone(t.tolist(), [0.0, *np.exp(t[1:]).tolist()])
    largest = float(high[np.isneginf(low)].max(initial=0))
    below_0, below = ndtr((np.array([0.0, largest]) - centre) / spread)
    if largest == 0 or below_0 < 0.01 * below:  # so few values below 0 are harmless
        return None
    t = np.concatenate([[first], np.linspace(-4, 1, 18), [2]])
    values = np.where(t < 1, np.exp(np.minimum(t, 1) - 1), t)
    least = float(x[above].min())
    return Monotone((least * t).tolist(), [0.0, *(least * values[1:]).tolist()])


def _normal(low: Array, high: Array) -> tuple[float, float, float]:
    """Return the largest log-likelihood of a normal distribution, with its mean and deviation."""
    with np.errstate(divide="ignore"):  # of a probability that is 0 by rounding
        mean, sd = norm.fit(CensoredData(interval=np.column_stack([low, high])))
    below, above = (low - mean) / sd, (high - mean) / sd
    mass = np.maximum(interval_mass(below, above), np.finfo(float).tiny)
    logs = np.where(low == high, -0.5 * below**2 - np.log(sd), np.log(mass))
    return float(logs.sum()), float(mean), float(sd)


MAX_REST, MAX_RATIO = 0.02, 0.8
"""Fraction of the variance of a column that others leave at most, and the ratio of this fraction to
that with the f of each column."""

MAX_OTHERS, MIN_ROWS, MAX_ROWS, MIN_EFFECT = 5, 50, 2000, 0.05
"""Number of other columns in a relation at most, of rows that know all of them at least, of rows
that are looked at, and smallest slope in standard deviations."""

LINE = Monotone([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0])


def with_relations(functions: list[Any], X: Array) -> list[Monotone]:
    """Return the f of each column of X (m, n), the same one or a line in relations."""
    X = X[:: -(-len(X) // MAX_ROWS)].astype(np.float64)
    learned = [f.for_data(x[~np.isnan(x)]) for f, x in zip(functions, X.T, strict=True)]
    T = [np.where(np.isnan(x), x, f.pseudo_inverse(x)) for f, x in zip(learned, X.T, strict=True)]
    x, t = _standard(X), _standard(np.column_stack(T))
    found = list(_relations(~np.isnan(X), x, t))
    straight = {j for column, others in found if len(others) > 1 for j in (column, *others)}
    copies: dict[int, Monotone] = {}
    for j, (k, *more) in found:
        if more or straight & {j, k}:
            straight |= {j, k}
        elif j not in copies:
            copies.setdefault(k, Monotone(learned[k].t, learned[k].x))
            both = ~np.isnan(X[:, [j, k]]).any(axis=1)
            slope, shift = np.polyfit(X[both, k], X[both, j], 1)
            knots = shift + slope * np.array([copies[k].t, copies[k].x])
            copies[j] = Monotone(*np.sort(knots).tolist())
    each = enumerate(functions)
    return [LINE if j in straight else copies.get(j, f) for j, f in each]


def _standard(X: Any) -> Array:
    """Return columns in standard deviations from their mean, 0 where missing."""
    frame = pd.DataFrame(X)
    return np.asarray(((frame - frame.mean()) / frame.std(ddof=0)).fillna(0.0))


def _relations(known: NDArray[np.bool_], x: Array, t: Array) -> Iterator[tuple[int, list[int]]]:
    """Yield columns of x that are linear in others, and these; but less so in their T."""
    for j in range(x.shape[1]):
        rest, rows, others = x[:, j], known[:, j], [j]
        while len(others) <= MAX_OTHERS:
            squares = np.square(x[rows]).sum(axis=0)
            shares = np.square(rest[rows] @ x[rows]) / np.where(squares > 0, squares, np.inf)
            shares[others] = -1.0
            others.append(int(np.argmax(shares)))
            rows = rows & known[:, others[-1]]
            if shares.max() <= 0 or rows.sum() < MIN_ROWS:
                break
            (left, slopes), (of_t, _) = (_rest(each[rows][:, others]) for each in (x, t))
            rest = np.zeros(len(x))
            rest[rows] = left
            if left.var() < min(MAX_REST * x[rows, j].var(), MAX_RATIO * of_t.var()):
                yield j, np.array(others[1:])[np.abs(slopes) > MIN_EFFECT].tolist()
                break


def _rest(x: Array) -> tuple[Array, Array]:
    """Return what the other columns leave of the first one, and its slopes on them."""
    y, *others = (x - x.mean(axis=0)).T
    slopes = np.linalg.lstsq(np.array(others).T, y)[0]
    return y - slopes @ others, slopes
