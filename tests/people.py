"""A table of every kind of column, with holes, and what filling them must keep."""

import numpy as np
import pandas as pd


def people(m, seed=0):
    """Return a table of every kind without holes, with labels of its own."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(m, 2))
    cuts = ["never", "often", "always"]
    near = np.argmax(w @ [[2.0, -2.0, 0.0], [0.0, 0.0, 2.0]] + rng.normal(size=(m, 3)), axis=1)
    return pd.DataFrame(
        {
            "kg": (70 + 12 * w[:, 0] + 3 * rng.normal(size=m)).astype(np.float32),
            "dose": 0.01 * np.maximum(w @ [0.7, -0.7] + 0.2 * rng.normal(size=m), 0),
            "visits": pd.array(np.round(9 + 3 * w[:, 1] + rng.normal(size=m)), dtype="Int64"),
            "smokes": pd.array(w[:, 0] + 0.5 * rng.normal(size=m) > 0.3, dtype="boolean"),
            "mood": pd.Categorical.from_codes(
                np.digitize(w[:, 1] + 0.5 * rng.normal(size=m), [-0.6, 0.6]), cuts, ordered=True
            ),
            "town": pd.Categorical.from_codes(near, ["Ulm", "Bonn", "Köln"]),
            "sex": pd.Categorical.from_codes(
                (w[:, 0] + 0.3 * rng.normal(size=m) > 0).astype(int), ["f", "m"]
            ),
            "cm": 170 + 9 * w[:, 0] + 3 * rng.normal(size=m),
        },
        index=pd.Index([f"p{k}" for k in rng.permutation(m)], name="person"),
    )


def with_holes(frame, share=0.2, seed=1):
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < share)


def check_filled(filled, frame):
    """Check that a table is another one without its holes: types, order, labels, observed cells."""
    assert not filled.isna().to_numpy().any()
    pd.testing.assert_series_equal(filled.dtypes, frame.dtypes)
    pd.testing.assert_index_equal(filled.index, frame.index)
    pd.testing.assert_frame_equal(filled.where(frame.notna()), frame)
