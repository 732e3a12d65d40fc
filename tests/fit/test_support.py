"""The table of what goes with what: each "yes" gives what another form of the same data gives."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from runpy import run_path

import numpy as np
import pandas as pd
import pytest
from helpers import NONNEGATIVE, PLAIN, check_all_refused
from scipy import sparse
from sklearn.model_selection import GroupKFold

import nmd_lab as nmd
from nmd_lab.data.inputs import form_of
from nmd_lab.fit.support import DATA, INCOMPATIBLE, features_of_data
from nmd_lab.request.options import Options

PAGE = run_path(str(Path(__file__).parents[2] / "docs" / "support.py"))
FEATURES, TRAITS, cell = (PAGE[name] for name in ("FEATURES", "TRAITS", "cell"))
M, N = 24, 9
SHORT = {"init": "random", "max_iter": 15, "tol": 0, "random_state": 0}
OTHERS = [each for each in FEATURES if each != "device"]  # whose results test_tensors.py compares
YES = [(d, f) for d in DATA for f in OTHERS if cell(d, f) == "yes"]
YES += [("missing", "weights of kinds"), ("missing", "weights of levels")]


def numbers():
    """Return nonnegative counts, some of them zero, and where they are taken as missing."""
    rng = np.random.default_rng(3)
    X = rng.poisson(np.exp(rng.normal(size=(M, 2)) @ rng.normal(size=(2, N)) * 0.5 + 0.5))
    X = X.astype(float)
    X[np.arange(M), np.arange(M) % N] += 1  # no empty row or column
    return X


def seen(data):
    """Return where a form of the data is observed: not at the zeros, if they can be missing."""
    return np.ones((M, N), bool) if data in ("zeros", "file") else numbers() > 0


def listed(X):
    """Return the entries of X that are not zero, from a long table."""
    user, item = np.nonzero(X)
    return nmd.observations_from_table({"user": user, "item": item, "rating": X[user, item]})


def in_form(data, folder):
    """Return X in a form, and the settings of the machine that it needs."""
    X = numbers()
    if data == "file":
        np.save(folder / "X.npy", X)
        return np.load(folder / "X.npy", mmap_mode="r"), {"work_dir": folder}
    if data == "missing":
        return listed(X), {}
    if data == "zeros":
        return sparse.csr_array(X), {}
    return np.where(seen(data), X, np.nan), {}


def options(data, feature):
    """Return the arguments of a call for a feature, but for those of the machine."""
    rng = np.random.default_rng(5)
    some, weights = (rng.random((M, N)) < 0.2) & seen(data), rng.uniform(0.5, 2, (M, N))
    kinds = {"loss": ["l1", *["frobenius"] * (N - 2), "ordinal"]}
    if data != "sample":
        kinds = {"loss": ["l1", *["frobenius"] * (N - 2), "kl"]}
        kinds["nonlinearity"] = ["identity"] * (N - 1) + ["exp"]
    return {
        "rank": {"rank": "auto", "validation": nmd.Choice(ranks=[2])},
        "choice": {"rank": "auto", "alpha": "auto"},
        "kinds": kinds,
        "learned": {"nonlinearity": "exp", "loss": "negative_binomial"},
        "nonlinearity": {"nonlinearity": "relu"},
        "validation": {"validation": np.where(some, numbers(), np.nan)},
        "offsets": {"offsets": "both"},
        "split": {"solver": replace(PLAIN, split="observed")},
        "limits": {"at_most": some, "solver": replace(PLAIN, limit_noise=0.3)},
        "weights": {"weights": weights},
        "weights of kinds": {"weights": weights} | kinds,
        "weights of levels": {"weights": weights, "loss": "ordinal"},
        "constraint": NONNEGATIVE,
    }.get(feature, {})


def machine(feature, folder):
    """Return the arguments of a machine for a feature."""
    return {
        "memory_limit": {"memory_limit": 1.0},
        "checkpoint": {"checkpoint": folder / "run.checkpoint", "checkpoint_every": 0},
        "threads": {"threads": 2},
    }.get(feature, {})


@pytest.fixture(scope="module")
def client():
    """A cluster of one worker in this process."""
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(processes=False, set_as_default=False, **settings) as connected:
        yield connected


def fitted(data, X, given, of_machine):
    """Return a short fit of Algorithm 1 alone, unless something is chosen."""
    function = nmd.decompose if data == "zeros" else nmd.complete
    start = {"rank": 2, "nonlinearity": "identity", "offsets": "none", "solver": PLAIN}
    start["alpha"] = 0.0 if data == "zeros" else 0.1
    if isinstance(X, nmd.SparseObservations) and "weights" in given:
        given = given | {"weights": sparse.csr_array(given["weights"])}
    return function(X, **start | SHORT | given, compute=nmd.Compute(**of_machine))


def drawn(X, given, of_machine):
    """Return a short posterior."""
    short = {"rank": 2, "draws": 6, "tune": 3, "random_state": 0}
    return nmd.sample(X, **short | given, compute=nmd.Compute(**of_machine))


@pytest.mark.parametrize(("data", "feature"), YES, ids=lambda each: each)
@pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")
def test_each_yes_gives_the_result_of_another_form(data, feature, tmp_path, request):
    given, of_machine = options(data, feature), machine(feature, tmp_path)
    X, needed = in_form(data, tmp_path)
    if data == "cluster":
        needed = {"client": request.getfixturevalue("client")}
    array = np.where(seen(data), numbers(), np.nan)
    stored = listed(np.nan_to_num(array))
    if data == "sample":
        given.pop("solver", None)
        one, two = drawn(array, given, of_machine), drawn(stored, given, {})
        i, j = np.nonzero(seen(data))
        np.testing.assert_allclose(one.predict(i, j), two.predict(i, j), rtol=1e-7)
        return
    one = fitted(data, X, given, of_machine | needed)
    two = fitted(data, stored if data == "dense" else array, given, {})
    assert one.rank == two.rank
    np.testing.assert_allclose(one.objective, two.objective, rtol=1e-6)
    np.testing.assert_allclose(one.reconstruct(), two.reconstruct(), rtol=1e-4, atol=1e-4)


def test_each_no_has_words_of_the_table():
    for one, other in INCOMPATIBLE:
        assert one in DATA | FEATURES | TRAITS
        assert other in FEATURES | TRAITS
        assert one not in DATA or cell(one, other).startswith("no: ")


def test_a_matrix_in_files_is_refused_what_one_in_memory_is(tmp_path):
    X = sparse.csr_array(numbers())
    X.data.tofile(tmp_path / "data")
    on_disk = np.memmap(tmp_path / "data", float), X.indices, X.indptr
    options = {"alpha": "auto"}, {"loss": "ordinal"}, {"offsets": "both"}, {"validation": 0.2}
    options += {"loss": {}}, {"compute": nmd.Compute(work_dir=".")}
    check_all_refused(
        ("does not go with a sparse X", partial(nmd.decompose, data, 2, **given))
        for data in (X, sparse.csr_array(on_disk, X.shape))
        for given in options
    )


def test_a_column_called_weights_is_no_weights():
    X = pd.DataFrame({"weights": [1.0, 2.0], "limits": [3.0, 4.0]})
    assert [*features_of_data(form_of(X), Options())] == ["dense"]


def test_dates_are_a_kind_of_column(client):
    days = pd.date_range("2020-01-01", periods=M)
    frame = pd.DataFrame({"day": days, "size": np.arange(M), "rest": np.arange(M) % 5})
    frame.loc[3, "day"] = pd.NaT
    limited = frame.notna() & (frame.index == 7).reshape(M, 1)
    fit = nmd.complete(frame, 2, alpha=0.1, at_most=limited, random_state=0)
    assert fit.impute(frame)["day"].notna().all()
    by_day = nmd.Choice(splitter=GroupKFold(3), groups=np.arange(M) // 4)
    chosen = nmd.complete(frame, validation=by_day, random_state=0)
    assert chosen.impute(frame)["day"].dtype == frame["day"].dtype
    with pytest.raises(ValueError, match=r"date columns does not go with data that are on the w"):
        nmd.complete(frame, 2, "identity", alpha=0.1, compute=nmd.Compute(client=client))
