"""The draws of a posterior as plain arrays: WH plus offsets of each draw, and classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtr

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import COMPONENT
from nmd_lab.model.mixed import each_group

from .fitted import Fitted
from .mixture import (
    Array,
    Noise,
    Predictive,
    Tempering,
    level_masses,
    level_shares,
    products_kernel,
)
from .predictive import KINDS

CHAIN, DRAW, SWEEP, PROBE, CUT, PART = "chain", "draw", "sweep", "probe", "cut", "part"
GROUP, LIMIT = "group", "limit"
"""Dimensions of the draws and of the trace; the dimensions of X get other names if they clash."""

LIMITS = ("limit_row", "limit_column", "limit_code", "limit_value", "limit_upper")
"""Positions, codes (of `EntryLimits`), values and upper values of the entries with limits."""

ALL = slice(None)
"""Every draw."""

OF_NUMBERS = ("gaussian", "clipped", "before")
"""Kinds of noise of numbers, to which an ensemble gives a spread."""

TINY = np.finfo(np.float64).tiny
"""What a category has at least, so that the probabilities of all can be divided by their sum."""

ENOUGH = 60
"""Draws of all chains from which new rows are filled; a mean of 60 is within 1 % of that of 300."""

NUMBERS = 1 << 22
"""Largest number of draws times entries that are computed together: 32 MiB of doubles."""


class RowMixture(NamedTuple):
    """The prior of a row in each draw: a mixture of Gaussians, one for each group of rows.

    Attributes
    ----------
    shares : ndarray (draws, groups)
        Fractions of the rows in the groups.
    means, precisions : ndarray (draws, groups, d) and (draws, groups, d, d)
        Means and inverse covariances.
    """

    shares: NDArray[np.float64]
    means: NDArray[np.float64]
    precisions: NDArray[np.float64]

    @property
    def centres(self) -> NDArray[np.float64]:
        """Mean of a row in each draw (draws, d), over the groups."""
        shares = self.shares / self.shares.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("sc,sca->sa", shares, self.means))

    @property
    def covariances(self) -> NDArray[np.float64]:
        """Covariance of a row in each draw (draws, d, d), within and between groups."""
        shares = self.shares / self.shares.sum(axis=1, keepdims=True)
        within = np.einsum("sc,scab->sab", shares, np.linalg.inv(self.precisions))
        centred = self.means - self.centres[:, None]
        between = np.einsum("sc,sca,scb->sab", shares, centred, centred)
        return np.asarray(within + between)


class TemperedShares(NamedTuple):
    """How classes are drawn so that over all draws they have the tempered probabilities.

    The class of a draw is accepted with a probability, or another one is drawn from all.

    Attributes
    ----------
    shares, accepted : ndarray (rows, classes)
        Probability of each class, and probability with which that of a draw is accepted.
    """

    shares: NDArray[np.float64]
    accepted: NDArray[np.float64]


class Drawn(Fitted):
    """The fields of a posterior, which `Posterior` documents, and WH plus offsets of each draw."""

    noise: str | tuple[str, ...]
    draws: xr.Dataset
    trace: xr.Dataset
    mean: float
    levels: tuple[float, ...] | None
    _limits: xr.Dataset | None

    _owner = "the posterior"

    @property
    def rank(self) -> int:
        """Number of components.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> import nmd_lab as nmd
        >>> wine = load_wine(as_frame=True).data
        >>> posterior = nmd.sample(wine, 3, draws=50, random_state=0)
        >>> posterior.rank
        3
        """
        return self.draws.sizes[COMPONENT]

    @property
    def _dtype(self) -> np.dtype[Any]:
        """Type of predictions: that of X; float64 for draws without a note of it."""
        dtype: np.dtype[Any] = np.dtype(self.parameters.get("dtype", "float64"))
        return dtype

    @property
    def _n_draws(self) -> int:
        """Number of draws of all chains."""
        return self.draws.sizes[CHAIN] * self.draws.sizes[DRAW]

    def _stacked(
        self, draws: slice = ALL
    ) -> tuple[FloatArray, FloatArray, FloatArray | None, FloatArray | None]:
        """Return W (draws, m, rank), H (draws, n, rank), and the offsets of rows and columns.

        They are views where that is possible.
        """
        W, H = (self.draws.variables[name] for name in ("W", "H"))
        by_component = H.transpose(CHAIN, DRAW, COMPONENT, *H.dims[3:]).values
        of_rows, of_columns = (self._flat(f"{axis}_offsets") for axis in ("row", "column"))
        return (
            _writable(W.values.reshape(self._n_draws, -1, self.rank)[draws]),
            _writable(by_component.reshape(self._n_draws, self.rank, -1)[draws].transpose(0, 2, 1)),
            None if of_rows is None else of_rows[draws],
            None if of_columns is None else of_columns[draws],
        )

    @property
    def _row_prior(self) -> RowMixture:
        """The prior of a row of W, with its offset, in each draw."""
        if "row_precision" not in self.draws:
            raise ValueError(
                "draws lacks 'row_precision', the prior of rows: draw with nmd.sample()."
            )
        shares = self._flat("row_share")
        shares = np.ones((self._n_draws, 1)) if shares is None else shares
        means = self.draws["row_mean"].values.reshape(*shares.shape, -1)
        d = means.shape[2]
        precisions = self.draws["row_precision"].values.reshape(*shares.shape, d, d)
        return RowMixture(*(each.astype(np.float64) for each in (shares, means, precisions)))

    @property
    def _row_vectors(self) -> FloatArray:
        """Rows of W, with their offsets if there are some (draws, m, rank [+ 1])."""
        W, _, offsets, _ = self._stacked()
        return W if offsets is None else np.concatenate([W, offsets[:, :, None]], axis=2)

    @property
    def _noises(self) -> tuple[str, ...]:
        """Kind of the noise: one for all columns, or one for each."""
        return (self.noise,) if isinstance(self.noise, str) else self.noise

    @property
    def _predictives(self) -> list[Predictive]:
        """The distribution of a new observation given each draw: one, or one for each column."""
        found, spread = [], self._flat("spread")
        for j, kind in enumerate(self._noises):
            noise = self._noise_of(j)
            if spread is not None and kind in OF_NUMBERS:
                noise = noise._replace(sd=noise.sd * spread)
            found.append(KINDS[kind](noise))
        return found

    def _by_noise(
        self, predictives: Sequence[Predictive], columns: NDArray[np.integer], v: Array
    ) -> Iterator[tuple[Predictive, Any, Array]]:
        """Yield each distribution, the entries that have it, and v there, in units of the column.

        `columns` has the column of each entry, and `v` WH plus offsets there, along its last axis.
        """
        if self._kinds is None:
            yield predictives[0], slice(None), v
            return
        if columns.size and columns.min() < 0:
            raise ValueError(
                "columns holds a label that X does not have, whose kind is not known: give "
                "columns of X."
            )
        for j, at in each_group(columns, len(predictives)):
            centre, size = (
                float(self._kinds.column_models[j].centre),
                float(self._kinds.column_models[j].size),
            )
            yield predictives[j], at, np.ascontiguousarray(centre + size * v[..., at])

    def _block(self, statistic: Callable[[Predictive, Array], Array], i: Any, j: Any) -> Array:
        """Return a statistic of the draws for rows i and columns j, as a matrix."""
        m, n = (np.arange(size)[at].size for size, at in zip(self._shape, (i, j), strict=True))
        columns, out = np.tile(np.arange(self._shape[1])[j], m), np.empty(m * n)
        for predictive, at, v in self._by_noise(
            self._predictives, columns, self._with_spread(self._linear_block(i, j), columns)
        ):
            out[at] = statistic(predictive, v)
        return out.reshape(m, n)

    def _noise_of(self, column: int) -> Noise:
        """Return the parameters of the noise of a column, in its units."""
        f, loss, levels, size = self.nonlinearity, self.loss, self.levels, 1.0
        rho, beta, cuts = (self._flat(name) for name in ("rho", "beta", "cut_points"))
        assert rho is not None
        if self._kinds is not None:
            kind = self._kinds.column_models[column]
            f, loss, size = kind.nonlinearity, kind.loss, float(kind.size)
            rho, beta = rho[:, [column]], None if beta is None else beta[:, [column]]
            levels, padded, cuts = None, cuts, None
            if padded is not None and loss.classes == "ordered" and loss.level_values:
                levels = loss.level_values
                padded = padded.reshape(len(padded), len(self._kinds.column_models), -1)
                cuts = padded[:, column, : len(levels) - 1]
        return Noise(
            f,
            loss,
            sd=size / np.sqrt(rho.astype(float)),
            tempering=self._tempering(np.array([column])),
            beta=None if beta is None else beta.astype(float),
            cuts=None if cuts is None else cuts.astype(float),
            levels=levels,
        )

    def _tempering(self, positions: NDArray[np.integer]) -> Tempering:
        """Return the temperature of levels or classes, whose columns have these positions in X."""
        if (each := self._flat("temperature")) is None:
            return Tempering()
        temperature, frequency = float(each[:, positions[0]].mean()), self._flat("frequency")
        if frequency is None or frequency[0, positions[0]] == 1:  # an old file, or ordered levels
            return Tempering(temperature)
        return Tempering(temperature, frequency[0, positions].astype(float))

    def _with_draws(self, number: int = ENOUGH) -> Self:
        """Return the posterior with about so many draws, in proportion to those of each member."""
        chains, draws = (self.draws.sizes[dim] for dim in (CHAIN, DRAW))
        if (count := -(-number // chains)) >= draws:
            return self
        member = self._flat("member")
        member = np.zeros((chains, draws)) if member is None else member.reshape(chains, draws)
        order = np.argsort(member, axis=1, kind="stable")  # each member in its order
        evenly = ((np.arange(count) + 0.5) * draws / count).astype(np.intp)
        some = {DRAW: xr.DataArray(np.sort(order[:, evenly]), dims=(CHAIN, DRAW))}
        return cast(Self, replace(cast(Any, self), draws=self.draws.drop_vars(DRAW).isel(some)))

    def _linear_at(
        self, i: NDArray[np.integer], j: NDArray[np.integer], draws: slice = ALL
    ) -> NDArray[np.float64]:
        """Return WH plus offsets in some draws at single entries, as an array (draws, entries)."""
        W, H, rows, columns = self._stacked(draws)
        out = np.empty((W.shape[0], i.size))
        positions = (np.ascontiguousarray(each, dtype=np.int64) for each in (i, j))
        products_kernel(f"posterior_products_{W.dtype}")(W, H, self.mean, *positions, out)
        out[:, (i < 0) | (j < 0)] = self.mean  # -1: a row or column that X did not have
        for offsets, at in ((rows, i), (columns, j)):
            if offsets is not None:
                out += np.where(at < 0, 0, offsets[:, at])
        return out

    def _at_unknown_column(self, i: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return v in rows i (draws, rows) of a column that is one of X, at random in each draw."""
        W, H, rows, columns = self._stacked()
        each = np.arange(self._n_draws)
        j = np.random.default_rng(0).integers(self._shape[1], size=each.size)
        v = np.einsum("sir,sr->si", W[:, i], H[each, j], dtype=np.float64) + self.mean
        v += 0 if rows is None else rows[:, i]
        v += 0 if columns is None else columns[each, j][:, None]
        return np.asarray(v)

    def _drawn_at(
        self, i: NDArray[np.integer], j: NDArray[np.integer], draw: int | None = None
    ) -> NDArray[np.float64]:
        """Return v of new observations in one draw, or in all, at single entries (draws, entries).

        It is WH plus offsets, with the spread that an ensemble gives to numbers.
        """
        if draw is None:
            return self._with_spread(self._linear_at(i, j), j)
        here = slice(draw, draw + 1)
        v = self._linear_at(i, j, here)
        if "spread" not in self.draws:
            return v
        other = int(self._partners[draw])
        return self._with_spread(v, j, self._linear_at(i, j, slice(other, other + 1)), here)

    @property
    def _partners(self) -> NDArray[np.integer]:
        """Another draw for each one, at random, but always the same."""
        return np.random.default_rng(0).permutation(self._n_draws)

    def _with_spread(
        self,
        v: Array,
        columns: NDArray[np.integer],
        others: Array | None = None,
        draws: slice = ALL,
    ) -> Array:
        """Return v of draws (draws, entries), where numbers have their spread.

        A draw becomes a weighted mean of itself and of another one.  That keeps the mean of all,
        and more of the modes of the mixture than a common factor of the deviations would.
        """
        if (spread := self._flat("spread")) is None:
            return v
        others = v[self._partners] if others is None else others
        # The squares of a share and of the rest add to that of the spread
        share = 0.5 + 0.5 * np.sqrt(np.maximum(2 * spread[draws] ** 2 - 1, 0))
        is_number = np.isin(self._noises, OF_NUMBERS)[columns]
        return np.where(is_number, share * v + (1 - share) * others, v)

    def _linear_block(self, i: Any, j: Any) -> NDArray[np.float64]:
        """Return WH plus offsets in each draw for rows i and columns j, as (draws, entries)."""
        W, H, rows, columns = self._stacked()
        out = np.matmul(W[:, i], H[:, j].transpose(0, 2, 1)).astype(np.float64)
        out += self.mean
        if rows is not None:
            out += rows[:, i, None]
        if columns is not None:
            out += columns[:, None, j]
        return np.asarray(out.reshape(self._n_draws, -1))

    def _blocks(self, numbers: int = 1) -> Iterator[tuple[slice, slice]]:
        """Yield rows and columns of blocks that cover X, of at most `NUMBERS` numbers each.

        Parameters
        ----------
        numbers : int
            Numbers that are computed for each draw and entry.
        """
        m, n = self._shape
        entries = max(NUMBERS // (self._n_draws * numbers), 1)
        width = min(n, entries)
        height = max(entries // width, 1)
        for top in range(0, m, height):
            for left in range(0, n, width):
                yield slice(top, min(top + height, m)), slice(left, min(left + width, n))

    def _flat(self, name: str) -> FloatArray | None:
        """Return a variable of the draws as an array (draws, size), or None without it."""
        if name not in self.draws.variables:
            return None
        values: FloatArray = self.draws.variables[name].values
        return values.reshape(self._n_draws, math.prod(values.shape[2:]))

    def _mean_class_shares(
        self, rows: NDArray[np.integer], positions: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Return the probability of each class of a column over all draws (rows, classes)."""
        return self._tempering(positions).of(self._mixed_class_shares(rows, positions))

    def _mixed_class_shares(
        self, rows: NDArray[np.integer], positions: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """Return the mean over the draws of the probability of each class (rows, classes)."""
        cuts = self._noise_of(int(positions[0])).cuts
        assert cuts is not None
        step = max(NUMBERS // (self._n_draws * max(cuts.shape[1] + 1, positions.size)), 1)
        found = []
        for start in range(0, max(rows.size, 1), step):
            some = rows[start : start + step]
            if self._has_indicators(positions):
                found.append(self._shares_in_draws(some, positions).mean(axis=0))
            else:
                v = self._linear_at(some, np.repeat(positions, some.size))
                found.append(level_shares(cuts, v))
        return np.concatenate(found)

    def _shares_in_draws(
        self, rows: NDArray[np.integer], positions: NDArray[np.integer], draws: slice = ALL
    ) -> NDArray[np.float64]:
        """Return the probability of each class in each draw (draws, rows, classes)."""
        i, j = np.repeat(rows, positions.size), np.tile(positions, rows.size)
        v = self._linear_at(i, j, draws)
        v = v.reshape(len(v), rows.size, positions.size)
        cuts = [self._noise_of(int(position)).cuts for position in positions]
        if not self._has_indicators(positions):
            assert cuts[0] is not None
            return np.moveaxis(level_masses(cuts[0][draws], v[:, :, 0]), 0, -1)
        v -= np.concatenate([each[draws] for each in cuts if each is not None], axis=1)[:, None]
        shares: NDArray[np.float64] = ndtr(v) + TINY
        shares /= shares.sum(axis=-1, keepdims=True)
        return shares

    def _draw_classes(
        self,
        rows: NDArray[np.integer],
        positions: NDArray[np.integer],
        draw: int,
        tempered_shares: TemperedShares | None,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Return the position of a class for each row, from one draw.

        Over all draws they have the tempered probabilities, if these are given.
        """
        chosen = _choose(self._shares_in_draws(rows, positions, slice(draw, draw + 1))[0], rng)
        if tempered_shares is not None:
            shares, accepted = tempered_shares
            again = np.flatnonzero(rng.random(rows.size) > accepted[np.arange(rows.size), chosen])
            chosen[again] = _choose(shares[again], rng)
        return chosen.astype(np.float64)

    def _tempered_shares(
        self, rows: NDArray[np.integer], positions: NDArray[np.integer]
    ) -> TemperedShares | None:
        """Return how classes are drawn with their temperature; None for temperature 1."""
        if (tempering := self._tempering(positions)).temperature == 1:
            return None
        mixed = np.maximum(self._mixed_class_shares(rows, positions), TINY)
        shares = tempering.of(mixed)
        ratio = shares / mixed
        return TemperedShares(shares, ratio / ratio.max(axis=1, keepdims=True))

    def _has_indicators(self, positions: NDArray[np.integer]) -> bool:
        """Return whether columns of X are the indicators of categories."""
        table = self._labels.table
        return table is not None and table.of_matrix[int(positions[0])].has_indicators


def _writable(array: FloatArray) -> FloatArray:
    """Return an array for compiled code, which has one version for one kind of arrays."""
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else array.copy()


def _choose(shares: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return a position for each row of probabilities."""
    below = np.cumsum(shares, axis=1)[:, :-1]
    return np.asarray(np.sum(below < rng.random((len(shares), 1)), axis=1))
