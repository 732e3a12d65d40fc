"""NumPy formulas of all losses and nonlinearities, and the T-update by brute force.

Nothing here imports nmd_lab.  A part is a tuple of its name and its parameters.
"""

import numpy as np
from scipy.special import expit, gammaln, log_ndtr, logit


def forward(f, t):
    """f(t), entry by entry; f = (name, *parameters)."""
    return FORWARD[f[0]](np.asarray(t, dtype=float), *f[1:])


def _wrap(t, period, start=None):
    start = -period / 2 if start is None else start
    return (t - start) % period + start


def _piecewise(t, breaks, slopes, at=(0.0, 0.0)):
    """The integral of a step function, which passes through a point."""

    def integral(u):
        total = slopes[0] * u
        for k, b in enumerate(breaks):
            total = total + (slopes[k + 1] - slopes[k]) * np.maximum(u - b, 0)
        return total

    return at[1] + integral(t) - integral(np.float64(at[0]))


def _pieces(knots, values):
    """The breaks, the slopes and a point of straight lines between points, that go on beyond."""
    return knots[1:-1], np.diff(values) / np.diff(knots), (knots[0], values[0])


FORWARD = {
    "identity": lambda t: t,
    "relu": lambda t: np.maximum(t, 0),
    "minmax": np.clip,
    "modulus": np.abs,
    "square": lambda t: t * t,
    "leaky_relu": lambda t, slope: np.where(t > 0, t, slope * t),
    "soft_threshold": lambda t, size: np.sign(t) * np.maximum(np.abs(t) - size, 0),
    "absolute_offset": lambda t, size: np.abs(t) + size,
    "piecewise_linear": _piecewise,
    "monotone": lambda t, knots, values: _piecewise(t, *_pieces(knots, values)),
    "sigmoid": expit,
    "softplus": lambda t: np.logaddexp(0, t),
    "exp": lambda t: np.exp(np.clip(t, -300, 300)),
    "tanh": np.tanh,
    "power": lambda t, exponent: np.abs(t) ** exponent,
    "wrap": _wrap,
}


def kinks(f, x):
    """Points t at which f has a kink or a jump, or takes the value x."""
    name, *p = f
    if name == "monotone":
        return kinks(("piecewise_linear", *_pieces(*p)), x)
    one, inside = np.ones_like(x), np.clip(x, 1e-12, 1 - 1e-12)
    above = np.maximum(x, 1e-12)
    with np.errstate(all="ignore"):
        if name in ("square", "power"):
            root = np.maximum(x, 0) ** (1 / p[0] if p else 0.5)
            return [root, -root, 0 * x]
        if name == "piecewise_linear":
            edges, slopes = np.array(p[0]), p[1]
            at = [edges[0] - 1, *edges]
            lines = [(x - forward(f, a)) / s + a for a, s in zip(at, slopes, strict=True) if s]
            return [*lines, *(b * one for b in edges)]
        if name in ("identity", "relu", "modulus"):
            return [x, 0 * x, -x]
        return {
            "minmax": lambda a, b: [x, a * one, b * one],
            "leaky_relu": lambda slope: [x, 0 * x, x / slope],
            "soft_threshold": lambda size: [x + size, x - size, size * one, -size * one],
            "absolute_offset": lambda size: [x - size, size - x, 0 * x],
            "sigmoid": lambda: [logit(inside)],
            "softplus": lambda: [above + np.log(-np.expm1(-above))],
            "exp": lambda: [np.log(above)],
            "tanh": lambda: [np.arctanh(np.clip(x, -1 + 1e-12, 1 - 1e-12)), 0 * x],
        }[name](*p)


def branch_points(f, v, x):
    """Points of a periodic f around v: ends of branches, from both sides, and t with f(t) = x."""
    period, start = f[1], (f[2] if len(f) > 2 else -f[1] / 2)
    k = np.floor((v - start) / period)
    points = []
    for step in (-1, 0, 1, 2):
        end = start + (k + step) * period
        gap = 1e-15 * (np.abs(end) + period)
        points += [end, end - gap, end + gap, x + (k + step) * period]
    return points


def distance(d, x, y):
    """The loss, entry by entry; d = (name, *parameters)."""
    with np.errstate(all="ignore"):
        return DISTANCES[d[0]](x, y, *d[1:])


def _huber(x, y, delta):
    r = np.abs(x - y)
    return np.where(r <= delta, r * r / 2, delta * (r - delta / 2))


def _kl(x, y):
    positive = np.where(y > 0, x * (y / x - 1 - _log_ratio(y, x)), np.inf)
    return np.where(x > 0, positive, np.where(y >= 0, y, np.inf))


def _log_ratio(a, b):
    """log(a / b), with all digits where a is close to b."""
    near = np.abs(a - b) < 0.5 * np.abs(b)
    return np.where(near, np.log1p((a - b) / b), np.log(a) - np.log(b))


def _negative_binomial(x, y, dispersion):
    size = 1 / dispersion
    constant = gammaln(x + 1) + gammaln(size) - gammaln(x + size)
    with np.errstate(all="ignore"):
        value = (
            constant + (x + size) * np.log1p(y / size) - np.where(x > 0, x * np.log(y / size), 0)
        )
    return np.where((y > 0) | ((y == 0) & (x == 0)), value, np.inf)


def _ordinal(x, y, levels, cuts):
    code = np.searchsorted(levels, x)
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    a, b = ends[code] - y, ends[code + 1] - y
    flip = a + b > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)  # Φ has its digits on the left
    below, above = log_ndtr(a), log_ndtr(b)
    return -(above + np.log1p(-np.exp(below - above)))


DISTANCES = {
    "frobenius": lambda x, y: (x - y) ** 2 / 2,
    "l1": lambda x, y: np.abs(x - y),
    "huber": _huber,
    "quantile": lambda x, y, q: np.maximum(q * (x - y), (q - 1) * (x - y)),
    "logistic": lambda x, y: np.logaddexp(0, np.where(x == 1, -y, y)),
    "ordinal": _ordinal,
    "kl": _kl,
    "itakura_saito": lambda x, y: np.where(y > 0, (x - y) / y - _log_ratio(x, y), np.inf),
    "squared_log": lambda x, y: np.where(y > 0, _log_ratio(x, y) ** 2 / 2, np.inf),
    "negative_binomial": _negative_binomial,
}


def subproblem(t, v, x, rho, f, d):
    """What the T-update minimises."""
    return distance(d, x, forward(f, t)) + rho / 2 * (t - v) ** 2


_LOG = np.logspace(-9, np.log10(0.5), 14)
_FRACTIONS = np.concatenate([[1e-15], _LOG, 1 - _LOG[-2::-1]])
_STEPS = np.arange(1, 8) / 8


def _chunk(v, x, rho, f, d):
    points = [v, *(branch_points(f, v, x) if f[0] == "wrap" else kinks(f, x))]
    if d[0] == "huber":
        points += [q for shift in (-d[1], d[1]) if f[0] != "wrap" for q in kinks(f, x + shift)]
    if d[0] in ("kl", "itakura_saito", "squared_log", "negative_binomial") and f[0] != "wrap":
        points += kinks(f, 0 * x)
    points = np.stack([np.where(np.isfinite(q), q, v) for q in points])
    values = subproblem(points, v, x, rho, f, d)
    values = np.where(np.isnan(values), np.inf, values)
    column = np.arange(v.size)
    best = np.argmin(values, axis=0)
    t, value = points[best, column], values[best, column]
    reach = 1e-6 * (1 + np.abs(v))
    while not np.all(np.isfinite(value)):  # v and all kinks lie outside the loss's domain
        for q in (v - reach, v + reach):
            here = subproblem(q, v, x, rho, f, d)
            better = here < value
            t, value = np.where(better, q, t), np.where(better, here, value)
        reach = reach * 2
    radius = np.sqrt(2 * np.maximum(value, 0) / rho) * (1 + 1e-12)
    edges = np.sort(np.concatenate([[v - radius, v + radius], points]), axis=0)
    edges = np.clip(edges, v - radius, v + radius)
    piece, owner = np.nonzero(edges[1:] > edges[:-1])
    low, high = edges[piece, owner], edges[piece + 1, owner]
    v, x, rho = (u[owner] for u in (v, x, rho))
    steps = _FRACTIONS
    for _ in range(14):
        grid = low + steps[:, None] * (high - low)
        on_grid = subproblem(grid, v, x, rho, f, d)
        on_grid = np.where(np.isnan(on_grid), np.inf, on_grid)
        k = np.argmin(on_grid, axis=0)
        each = np.arange(k.size)
        here, at_here = grid[k, each], on_grid[k, each]
        order = np.argsort(-at_here)  # the smallest of each owner is written last
        better = at_here[order] < value[owner[order]]
        t[owner[order][better]] = here[order][better]
        value[owner[order][better]] = at_here[order][better]
        low, high = (
            np.where(k > 0, grid[np.maximum(k - 1, 0), each], low),
            np.where(k < len(steps) - 1, grid[np.minimum(k + 1, len(steps) - 1), each], high),
        )
        steps = _STEPS
    return t, value


def brute_prox(v, x, rho, f, d):
    """The global minimiser of ``subproblem`` and its value, by nested grids on smooth parts."""
    v, x, rho = (np.array(u, dtype=float).ravel() for u in np.broadcast_arrays(v, x, rho))
    parts = [_chunk(*(u[i : i + 2048] for u in (v, x, rho)), f, d) for i in range(0, v.size, 2048)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def inputs(f, d, n, dtype=np.float64, seed=0):
    """v, x and rho of many magnitudes; half of them edge cases."""
    rng = np.random.default_rng(seed)

    def spread():
        return rng.normal(size=n) * 10 ** rng.uniform(-3, 1.5, n)

    name, half = d[0], n // 2
    x = np.abs(spread())
    x[: half // 2] = rng.choice([1e-6, 0.01, 0.5, 1, 2, 7, 1e3], half // 2)
    if name in ("frobenius", "l1", "huber", "quantile"):
        x[half // 2 : half] = 0
        x = np.where(rng.random(n) < 0.3, -x, x)
    elif name in ("kl", "negative_binomial"):
        x = np.where(rng.random(n) < 0.5, np.floor(x), x)
    elif name == "logistic":
        x = rng.integers(0, 2, n).astype(float)
    elif name == "ordinal":
        x = rng.choice(d[1], n).astype(float)
    rho = 10 ** rng.uniform(-4, 4, n)
    rho[:half] = rng.choice([1e-4, 1e-2, 0.5, 1, 2, 2.5, 100, 1e4], half)
    near = branch_points(f, spread(), x) if f[0] == "wrap" else kinks(f, x)
    values = [*near, 0 * x, x, x + 1 / rho, x - 1 / rho, 1 / rho, spread(), spread()]
    v = spread()
    table = np.stack([np.where(np.isfinite(u), u, 0) for u in values])
    v[:half] = table[rng.integers(len(values), size=n), np.arange(n)][:half]
    v[:half] *= rng.choice([1, 1, -1], half)
    if f[0] in ("exp", "sigmoid", "softplus"):  # beyond, exp(t) is no number
        v = np.clip(v, -250, 250)
    return v.astype(dtype), x.astype(dtype), rho.astype(dtype)


def largest_excess(t, v, x, rho, f, d):
    """Largest excess of the objective at t over brute force, relative to it, with its input.

    No excess is what rounding t by two units in the last place could cost, or rounding inside the
    formulas of f and d, which shows where the best value is nearly 0.
    """
    dtype = t.dtype
    v, x, rho = (np.asarray(u, dtype=float) for u in (v, x, rho))
    best, value = brute_prox(v, x, rho, f, d)
    attained = subproblem(t.astype(float), v, x, rho, f, d)
    y = forward(f, best)
    size = np.abs(x) + np.abs(y) + np.abs(best)
    allowed = value + 2e-15 * size
    for step in (-2e-15, 2e-15):
        near = distance(d, x, y + step * (1 + size)) + rho / 2 * (best - v) ** 2
        allowed = np.where(np.isfinite(near), np.maximum(allowed, near), allowed)
    for direction in (-np.inf, np.inf):
        rounded = best.astype(dtype)
        for _ in range(2):
            rounded = np.nextafter(rounded, dtype.type(direction))
            near = subproblem(rounded.astype(float), v, x, rho, f, d)
            allowed = np.where(np.isfinite(near), np.maximum(allowed, near), allowed)
    with np.errstate(all="ignore"):
        excess = np.where(attained <= allowed, 0.0, (attained - allowed) / allowed)
    excess = np.where(np.isnan(excess) | ~np.isfinite(t), np.inf, excess)
    i = int(np.argmax(excess))
    shown = (
        f"v={v[i]!r} x={x[i]!r} rho={rho[i]!r}: t={t[i]!r} gives {attained[i]!r}, "
        f"{best[i]!r} gives {value[i]!r}"
    )
    return float(excess[i]), shown
