"""Several fits become one Dataset of scores."""

import pytest

import nmd_lab
from nmd_lab import metrics


def test_scores_of_fits_and_of_held_out_entries(small, rng):
    fits = {f"{f} {d}": nmd_lab.decompose(small, 2, f, d, max_iter=20) for f in ("relu", "identity")
            for d in ("frobenius", "l1")}  # fmt: skip
    held_out = rng.random(small.shape) < 0.2
    scores = nmd_lab.compare(fits, small, observed=held_out)
    assert list(scores.fit.values) == list(fits)
    for name, fit in fits.items():
        one = scores.sel(fit=name)
        assert one.relative_error == fit.relative_error
        assert one.objective == fit.objective
        assert one.stop_reason == fit.stop_reason
        assert one["rank"] == 2
        for measure in (metrics.rmse, metrics.mae):
            expected = measure(small, fit.reconstruct().values, observed=held_out)
            assert float(one[measure.__name__]) == pytest.approx(expected, rel=1e-12)
    assert len(set(scores.observations_hash.values)) == 1


def test_a_list_is_numbered_and_needs_no_data(small):
    fits = [nmd_lab.decompose(small * k, 2, max_iter=3) for k in (1, 2)]
    scores = nmd_lab.compare(fits)
    assert list(scores.fit.values) == [0, 1]
    assert "rmse" not in scores
    assert len(set(scores.observations_hash.values)) == 2
    assert scores.to_dataframe().shape == (2, 9)


def test_its_sentence_says_which_is_best_and_what_should_worry(small, rng):
    a, b = (nmd_lab.decompose(small, rank, max_iter=300, random_state=0) for rank in (1, 4))
    scores = nmd_lab.compare({"a": a, "b": b}, small)
    assert scores.rmse[1] < scores.rmse[0]
    excess = float(scores.rmse[0] - scores.rmse[1])
    best = f"b has the lowest root mean squared error, {float(scores.rmse[1]):.4g}."
    assert best in scores.sentence
    assert f"a is second and differs from it, with {excess:.2g} ± " in scores.sentence
    assert "does not differ significantly" in nmd_lab.compare({"b": b, "a": b}, small).sentence
    assert "different data" not in scores.sentence
    other = nmd_lab.decompose(2 * small, 4, max_iter=2, random_state=0)
    worried = nmd_lab.compare(b, other).sentence
    assert worried.startswith("Give X= for errors that compare.")
    assert worried.endswith("Not converged: 1. The fits are of different data.")
