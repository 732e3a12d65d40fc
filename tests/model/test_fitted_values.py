"""f(WH) at positions: of fits, of iterates, and without some components."""

import numpy as np
import pandas as pd
import pytest

import nmd_lab as nmd

RNG = np.random.default_rng(0)
HIDDEN = RNG.normal(size=(20, 2))
TABLES = {
    "plain": HIDDEN @ RNG.normal(size=(2, 6)),
    "large": 1e9 * (HIDDEN @ RNG.normal(size=(2, 6))),  # fitted in other units than those of X
    "mixed": pd.DataFrame(
        {
            "size": 100 * HIDDEN @ [1.0, 2.0],
            "yes": HIDDEN[:, 0] > 0,
            "kind": pd.Categorical(np.digitize(HIDDEN[:, 1], [-0.5, 0.5])),
        }
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_iterates_predict_what_their_fit_would(kind):
    states = []
    options = {"alpha": 0.1, "offsets": "both", "max_iter": 12, "tol": 0, "random_state": 0}
    fit = nmd.complete(TABLES[kind], 2, "identity", callback=states.append, **options)
    m, n = fit._shape
    last = states[fit.parameters["iteration"] - 1]
    rows = np.arange(m)[:, None]
    model = fit.reconstruct().values
    np.testing.assert_allclose(
        last.predict(rows, np.arange(n)).reshape(m, n), model, rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(
        last.predict(-1, 0, without=[0, 1]), fit.predict(-1, 0, without=[0, 1])
    )


@pytest.mark.parametrize("f", ["relu", "identity"])
def test_components_are_left_out(f):
    fit = nmd.complete(TABLES["plain"], 3, f, alpha=0.1, offsets="both", random_state=0, max_iter=5)
    (W, H), (mean, b, c) = fit._factors, fit.offsets
    inside = W[:, [0, 2]] @ H[[0, 2]] + mean + b[:, None] + c
    expected = np.maximum(inside, 0) if f == "relu" else inside
    found = fit.predict(np.arange(20)[:, None], np.arange(6), without=1)
    np.testing.assert_allclose(found.reshape(20, 6), expected)
    np.testing.assert_allclose(fit._fitted.without([1]).block(), expected)
    with pytest.raises(IndexError, match=r"without=\[3\] has 3, .* from 0 to 2"):
        fit.predict(0, 0, without=[3])
    with pytest.raises(TypeError, match="give integers"):
        fit.predict(0, 0, without="first")
