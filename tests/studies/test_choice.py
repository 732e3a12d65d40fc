"""Arguments that are "auto": each fit of a study chooses, and the results say what."""

from __future__ import annotations

import numpy as np
import pytest

import nmd_lab as nmd
from nmd_lab.result import netcdf
from nmd_lab.studies import configuration
from nmd_lab.studies.grid import NO_NOISE, NOTHING_HIDDEN, Task
from nmd_lab.studies.methods import Method

SOME = {"n_splits": 2, "metrics": "rmse"}


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(5)
    return rng.normal(size=(40, 2)) @ rng.normal(size=(2, 25)) + 0.1 * rng.normal(size=(40, 25))


@pytest.fixture(scope="module")
def study(noisy):
    made = nmd.Study(noisy, method=["admm", "svd"], nonlinearity="identity", offsets="none",
                     rank=[2, 12], alpha=[0, 30, "auto"], **SOME)  # fmt: skip
    made.run(progress=False)
    return made


def test_what_was_chosen_is_in_the_results(study):
    results = study.results
    assert results.alpha.values.tolist() == ["0", "30", "auto"]
    chosen = [name for name in results.data_vars if name.endswith("_chosen")]
    assert chosen == ["alpha_chosen", "offset_alpha_chosen"]
    ours = results.sel(solver="admm", alpha="auto")
    assert (ours.status == "done").all()
    assert (ours.alpha_chosen > 0).all()
    assert results.alpha_chosen.attrs["long_name"] == "chosen ridge"
    given = results.alpha_chosen.where(results.fit != ours.fit)
    assert not np.isfinite(given.sel(solver="svd")).any()
    assert not np.isfinite(given.sel(alpha=["0", "30"])).any()
    labels = {"solver": "admm", "rank": 12, "alpha": "auto", "seed": 1}
    fit = study.cell(**labels).fit()
    assert results.alpha_chosen.sel(labels).item() == fit.parameters["alpha"]
    plain = results.held_out_rmse.sel(solver="admm", rank=12, alpha="0")
    assert (ours.held_out_rmse.sel(rank=12) < plain).all()


def test_numbers_beside_the_word_are_labels_too(study):
    cell = study.cell(solver="admm", rank=2, alpha=30, seed=0)
    assert cell.arguments["alpha"] == 30
    assert study.table(alpha=30).equals(study.table(alpha="30"))
    assert len(study.table(alpha=[0, "auto"])) == 4 + 2
    with pytest.raises(ValueError, match=r"alpha=31 is not in the study: choose from \['0', '30'"):
        study.table(alpha=31)


def test_the_simplest_model_counts_what_was_chosen(noisy):
    """Ranks beside the word are text, which would put 12 before 2."""
    made = nmd.Study(noisy, nonlinearity="identity", rank=[12, 2, "auto"], alpha=1, **SOME)
    results = made.run(progress=False)
    results["held_out_rmse"][:] = 1.0
    results["rank_chosen"].loc[{"rank": "auto"}] = [3, 4]
    assert made.best().parameters["rank"] == 2
    results["rank_chosen"].loc[{"rank": "auto"}] = [1, 2]
    parameters, fit = made.best()
    assert parameters["rank"] == "auto"
    assert 1 <= fit.parameters["rank"] <= 25
    assert fit.parameters["n_observed"] == noisy.size
    results["held_out_rmse"].loc[{"rank": "12"}] = 0.5
    assert made.best().parameters["rank"] == 12


def test_of_two_words_the_stronger_ridge_is_simpler(noisy):
    made = nmd.Study(noisy, nonlinearity="identity", rank=2, alpha=["auto", 0.5], **SOME)
    results = made.run(progress=False)
    results["held_out_rmse"][:] = 1.0
    for chosen, best in (([1, 2], "auto"), ([0.1, 0.2], 0.5)):
        results["alpha_chosen"].loc[{"alpha": "auto"}] = chosen
        assert made.best().parameters["alpha"] == best


def test_all_that_can_be_chosen(tmp_path):
    X = np.clip(nmd.datasets.digits(40).values * 8 - 2, 0, 6).round()
    made = nmd.Study(X, loss="auto", **SOME)
    path = tmp_path / "study.nc"
    results = made.run(path, progress=False)
    assert results.sizes == {"seed": 2}
    fit = made.cell(seed=0).fit()
    first = results.isel(seed=0)
    for name in ("rank", "alpha", "offset_alpha", "offsets"):
        assert first[f"{name}_chosen"].item() == fit.parameters[name], name
    assert first.nonlinearity_chosen.item() == repr(fit.nonlinearity)
    assert first.loss_chosen.item() == fit.loss.name
    again = netcdf.read(path)
    for name in results.data_vars:
        np.testing.assert_array_equal(again[name], results[name])
    assert made.table("rank_chosen").shape == (1, 2)
    with pytest.raises(ValueError, match="metric='loss_chosen'"):
        made.table("loss_chosen")
    resumed = nmd.Study(X, loss="auto", **SOME).run(path, progress=False)
    assert resumed.seconds.equals(results.seconds)


def test_hidden_entries_choose_nothing(noisy):
    settings = {"missing": 0.3, "n_splits": 1, "nonlinearity": "auto"}
    cell = nmd.Study(noisy, **settings).cell()
    other = noisy.copy()
    other.ravel()[cell.hidden] += 1000
    changed = nmd.Study(other, **settings).cell()
    np.testing.assert_array_equal(cell.X, changed.X)
    a, b = cell.fit(), changed.fit()
    assert a.parameters["alpha"] == b.parameters["alpha"]
    np.testing.assert_array_equal(a.W, b.W)
    assert a.selection.attrs["held_out_entries"] <= a.parameters["n_observed"]
    assert a.parameters["n_observed"] == round(0.7 * noisy.size)


def test_a_method_without_a_choice_is_left_out(noisy):
    made = nmd.Study(noisy, method=["admm", "svd"], rank=[2, "auto"], alpha=1, **SOME)
    results = made.run(progress=False)
    auto = results.sel(rank="auto")
    assert (auto.status.sel(solver="admm") == "done").all()
    assert (auto.status.sel(solver="svd") == "left out").all()
    assert "rank='auto'" in auto.stop_reason.values.flat[-1]
    assert (results.sel(rank="2").status == "done").all()


def test_offset_alpha_is_an_option_of_ours_alone(noisy):
    made = nmd.Study(noisy, method=["admm", "svd"], rank=2, alpha=1, offset_alpha=[1, 50],
                     offsets="both", **SOME)  # fmt: skip
    results = made.run(progress=False)
    ours, svd = (results.sel(solver=name) for name in ("admm", "svd"))
    assert (ours.sel(offset_alpha=1).held_out_rmse != ours.sel(offset_alpha=50).held_out_rmse).all()
    assert ours.sel(offset_alpha=1).fit[0] == made_without(noisy).results.fit[0]
    np.testing.assert_array_equal(svd.sel(offset_alpha=1).fit, svd.sel(offset_alpha=50).fit)


def made_without(X):
    """Return a study whose ridge of the offsets is that of the factors, by default."""
    made = nmd.Study(X, rank=2, alpha=1, offsets="both", **SOME)
    made.run(progress=False)
    return made


def key(**arguments):
    """Return the key of a fit by `complete`."""
    arguments = {"rank": 2} | arguments
    return Task(Method.of("admm"), arguments, NOTHING_HIDDEN, NO_NOISE, 0).key


def test_equal_fits_have_one_key():
    plain = key(alpha=1)
    assert plain == key(alpha=1, nonlinearity="identity", offsets="none", offset_alpha=1)
    assert plain == key(alpha=1, offsets="auto", offset_alpha="auto")
    others = [key(), key(alpha=2), key(alpha=1, offset_alpha=2), key(alpha=1, rank="auto"),
              key(alpha=1, nonlinearity="auto"), key(nonlinearity="identity"),
              key(offset_alpha=1)]  # fmt: skip
    assert len({plain, *others}) == 1 + len(others)


@pytest.mark.parametrize(
    ("argument", "text"),
    [({"rank": "atuo"}, "rank='atuo'"), ({"alpha": "atuo"}, "alpha='atuo'"),
     ({"nonlinearity": "atuo"}, "nonlinearity='atuo'"), ({"rank": ["auto", "auto"]}, "twice"),
     ({"offset_alpha": -1}, "offset_alpha=-1")],
)  # fmt: skip
def test_other_words_are_refused(argument, text, noisy):
    with pytest.raises((ValueError, TypeError), match=text):
        nmd.Study(noisy, **argument)


def test_a_file_can_say_auto(noisy, tmp_path):
    np.save(tmp_path / "x.npy", noisy)
    config = tmp_path / "study.toml"
    config.write_text(
        '[data]\nfile = "x.npy"\n[study]\nrank = ["auto", 2]\nalpha = "auto"\nloss = "auto"\n'
        'nonlinearity = ["auto", "relu"]\noffsets = "auto"\noffset_alpha = "auto"\n'
    )
    made, _ = configuration.read_configuration(config)
    labels = {name: axis.labels for name, axis in made.grid.dims.items()}
    assert labels["rank"] == ("auto", "2")
    assert labels["nonlinearity"] == ("auto", "relu")
    arguments = made.cell(rank="auto", nonlinearity="auto", seed=0).arguments
    words = {name for name, value in arguments.items() if value == "auto"}
    assert words == {"rank", "alpha", "loss", "nonlinearity", "offsets", "offset_alpha"}
