"""Draws of rows in order with the longest memory."""

import numpy as np

from nmd_lab.data.inputs import observe
from nmd_lab.data.row_places import RowPlaces
from nmd_lab.kernels.products import storage_of
from nmd_lab.sampler.ordered_rows import PHIS, SHORTEST, RowOrder, draw_ordered_rows
from nmd_lab.sampler.priors import RowPrior
from nmd_lab.sampler.row_updates import OtherFactor, StreamId


def test_many_components_and_strong_memory_stay_finite():
    """The longest memory, the shortest steps, and more entries in a row than one chunk."""
    rng = np.random.default_rng(0)
    m, n, d = 60, 700, 12
    T = rng.normal(size=(m, n))
    T[5:40] = np.nan
    places = RowPlaces(np.cumsum(rng.choice([1e-9, 1.0, 1e6], m)), *np.zeros((2, m), np.int64))
    other = OtherFactor(rng.normal(size=(n, d)), np.zeros(n))
    phi = np.full(d, PHIS[-1])
    seen, rows = observe(T).as_sparse(), np.zeros((m, d))
    order = RowOrder.of(places)
    assert order.steps.min() == SHORTEST
    prior = RowPrior(np.zeros((1, d)), np.eye(d)[None], phi=phi)
    entries, key = (storage_of(seen), None, seen.values), StreamId(1, 1, 0)
    draw_ordered_rows(order, rows, *entries, other, prior, np.ones(1), key)
    assert np.isfinite(rows).all()
    assert np.abs(rows).max() < 10
