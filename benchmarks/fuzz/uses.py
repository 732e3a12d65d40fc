"""What is done with fits, tables, files, estimators and studies: all agrees with `reconstruct`."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy import sparse
from scipy.io import mmwrite

import nmd_lab
from nmd_lab.cli import ExitCode, main
from nmd_lab.data.matching import Axis
from nmd_lab.data.readers import read_file
from nmd_lab.result.entries import index_of

from .faults import answered
from .matrices import Array, contents, frame
from .recompute import rounding_of

if TYPE_CHECKING:
    from .calls import Case


class Use(NamedTuple):
    """A fit, its case, its data with `observed=` if they have one, and its flat reconstruction."""

    fit: nmd_lab.Decomposition
    case: Case
    X: Any
    observed: dict[str, Any]
    model: Array
    rng: np.random.Generator


def flat(fit: nmd_lab.Decomposition) -> Array:
    """Return the reconstruction (m, n)."""
    return np.asarray(fit._labels.flatten(fit.reconstruct().values))


def fit_is_used(case: Case) -> None:
    """Some methods of a fit answer, agree with `reconstruct`, and change nothing."""
    X, others = case.given()
    fit = case.call(X, **others)
    observed = {name: value for name, value in others.items() if name == "observed"}
    before = contents([X, *others.values()])
    use = Use(fit, case, X, observed, flat(fit), case.rng(5))
    for k in use.rng.permutation(len(USES))[:5]:
        with answered():
            USES[k](use)
    assert contents([X, *others.values()]) == before, "a use of a fit changes an input"
    assert flat(fit).tobytes() == use.model.tobytes(), "a use of a fit changes the fit"


def near(one: Any, two: Any, what: str, rounding: float | Array = 0.0) -> None:
    """Raise if two results are not equal within the rounding of single precision.

    `rounding` of each entry counts where all compared entries are small because terms of WH cancel.
    """
    one, two = np.asarray(one, float), np.asarray(two, float)
    allowed = 1e-4 * np.abs(two).max(initial=1e-300) + rounding
    same = one.shape == two.shape and (np.abs(one - two) <= allowed).all()
    assert same, f"{what} disagrees with reconstruct()"


def _named(fit: nmd_lab.Decomposition, axis: Axis, positions: Any) -> Any:
    """Return the labels of rows or columns, or their positions if they have none."""
    index = index_of(fit._labels, axis)
    return positions if index is None else index[positions]


def _predict(use: Use) -> None:
    seen, rounding = use.case.seen, rounding_of(use.fit)
    i, j = (use.rng.integers(size, size=5) for size in use.model.shape)
    named = _named(use.fit, "rows", i), _named(use.fit, "columns", j)
    near(use.fit.predict(*named), use.model[i, j], "predict", rounding[i, j])
    test = use.fit.predict(use.X)
    alike = not isinstance(use.X, pd.DataFrame | xr.DataArray) or type(test) is type(use.X)
    assert alike, "predict of test data has another type"
    if sparse.issparse(test) and test.shape == use.case.shape:
        at = test.tocoo()
        near(at.data, use.model[at.coords], "predict of a sparse test", rounding[at.coords])
    if use.case.container in ("nan", "fortran", "strided", "frozen", "memmap", "frame"):
        values = np.asarray(test, float)
        assert (np.isnan(values) == ~seen).all(), "predict of test data fills in missing ones"
        near(values[seen], use.model[seen], "predict of test data", rounding[seen])


def _top(use: Use) -> None:
    fit, model, size = use.fit, use.model, np.abs(use.model).max()
    row, k = int(use.rng.integers(model.shape[0])), int(use.rng.integers(1, 5))
    name, first = _named(fit, "rows", row), _named(fit, "columns", [0])
    best = fit.top(name, k, exclude=first if model.shape[1] > 1 else None)
    near(best.values, model[row, best.position.values], "top", 1e-4 * size)
    assert (np.diff(best.values) <= 1e-6 * size).all(), "top is not sorted"
    several, alone = fit.top(_named(fit, "rows", [row, 0, -1]), k), fit.top(name, k)
    same = several.values[0].tobytes() == alone.values.tobytes()
    assert same, "top of several rows is not that of each"
    fit.top([name], k, exclude=use.X)


def _score(use: Use) -> None:
    score, case = use.fit.score(use.X, **use.observed), use.case
    assert -np.inf < score <= 1, f"score is not finite, or above 1: {score}"
    x = case.floats[case.seen]
    unit = np.abs(x).max()
    if unit > 0 and case.container in ("nan", "observed", "masked", "frame", "frozen"):
        y = use.model.astype(float)[case.seen]
        expected = 1 - np.sum(((x - y) / unit) ** 2) / np.sum((x / unit) ** 2)
        right = abs(score - expected) <= 1e-3 * (1 + abs(expected))
        assert right, f"score is not 1 - |X - reconstruct()|^2 / |X|^2: {score}"


def _append(use: Use) -> None:
    fit, X = use.fit, use.X
    if use.case.container == "frame":
        X = X.set_axis([f"new {i}" for i in range(len(X))])
    rows = fit.fold_in(X, unknown="offsets", **use.observed)
    assert np.isfinite(rows.values).all(), "fold_in is not finite"
    longer, again = fit.append(X, unknown="offsets", **use.observed), fit.append(rows)
    (m, n), model = fit._shape, flat(longer)
    assert longer._shape == (m + len(rows), n), "append gives another shape"
    assert np.isfinite(model).all(), "append gives predictions that are not finite"
    near(model[:m], use.model, "append")
    same = model.tobytes() == flat(again).tobytes()
    assert same, "append of rows is not append of what fold_in gives"
    longer.top(_named(longer, "rows", [longer._shape[0] - 1]), 2)
    _saved(use._replace(fit=longer))


def _rotate(use: Use) -> None:
    method = ("size", "svd", "varimax", "quartimax")[use.rng.integers(4)]
    rotated = use.fit.rotate(method)
    W, H, V, G = (factor.astype(float) for factor in (*use.fit._factors, *rotated._factors))
    assert rotated.W.dtype == use.fit.W.dtype, f"rotate changes the precision: {method}"
    assert all(np.isfinite(factor).all() for factor in (V, G)), f"rotate is not finite: {method}"
    # an SVD is exact for factors that differ by rounding of their norms
    number = np.finfo(use.fit.W.dtype)
    rounding = 1e3 * number.eps * np.linalg.norm(W) * np.linalg.norm(H)
    # W of "svd" has the size of WH, and what is below the smallest number becomes 0
    rounding += 2 * use.fit.rank * number.smallest_subnormal
    assert np.abs(W @ H - V @ G).max() <= rounding, f"rotate changes WH: {method}"
    largest, lowest = G.max(1, initial=0), -G.min(1, initial=0)  # may be equal but for rounding
    assert (largest >= (1 - number.eps) * lowest).all(), f"rotate leaves a negative sign: {method}"
    assert np.isfinite(rotated.objective), f"rotate gives an infinite objective: {method}"
    same = method != "size" or rotated.rotate().W.identical(rotated.W)
    assert same, "rotate by size again changes the components"
    _saved(use._replace(fit=rotated))


def _explained(use: Use) -> None:
    shares, (W, H) = use.fit.top_of_components(1).explained.values, use.fit._factors
    assert np.isfinite(shares).all(), "explained is not finite"
    # where terms cancel, a fraction is large
    size = np.abs(W.astype(float) @ H.astype(float)).max()
    right = size == 0 or abs(shares.sum() - 1) <= 1e-6 * (1 + np.abs(shares).max())
    assert right, f"explained does not have the sum 1: {shares.sum()}"


def _saved(use: Use) -> None:
    fit = use.fit
    with tempfile.TemporaryDirectory() as folder:
        fit.save(Path(folder) / "fit.nc")
        loaded = nmd_lab.load(Path(folder) / "fit.nc")
        assert len(list(Path(folder).iterdir())) == 1, "save leaves a file behind"
    for name in ("W", "H", "history"):
        same = getattr(loaded, name).identical(getattr(fit, name))
        assert same, f"a loaded fit is not the saved one: {name}"
    same = repr(loaded.parameters) == repr(fit.parameters) and loaded.stop_reason == fit.stop_reason
    assert same, "a loaded fit has other parameters"
    same = loaded.reconstruct().identical(fit.reconstruct())
    assert same, "a loaded fit has another reconstruct()"


def _split(use: Use) -> None:
    X, case = use.X, use.case
    parts, again = (nmd_lab.split_observed(X, 0.3, random_state=case.seed) for _ in range(2))
    assert contents(parts) == contents(again), "the same seed splits in another way"
    if case.container in ("nan", "fortran", "strided", "frozen"):
        train, test, whole = (~np.isnan(np.asarray(each, float)) for each in (*parts, X))
        exact = not (train & test).any() and ((train | test) == whole).all()
        assert exact, "split_observed loses an entry, or keeps one twice"
    use.fit.score(parts[1])


def _others(use: Use) -> None:
    fit = use.fit
    nmd_lab.compare(fit, fit.rotate())
    nmd_lab.compare([fit, fit], use.X, **use.observed)
    _ = (repr(fit), fit._repr_html_(), fit.starts, fit.selection)
    start = {} if "init" in use.case.options else {"init": fit}
    use.case.call(use.X, **use.observed | start)


USES = (_predict, _top, _score, _append, _rotate, _explained, _saved, _split, _others)
"""The uses of a fit."""


def estimators_agree(case: Case) -> None:
    """The estimators fit, transform and predict, with finite answers of the right shape."""
    from .calls import arguments_of

    X, _ = case.given("nan")
    options = {"max_iter": 5, "random_state": case.seed, "progress": False} | case.resolved
    options |= {"nonlinearity": case.model, "loss": case.loss}
    model: Any = nmd_lab.NMD if case.verb == "decompose" else nmd_lab.MatrixCompletion
    given = X.astype(float) if case.dtype in ("bool", "float16", "longdouble") else X
    before = given.tobytes()
    estimator = model(n_components=case.rank, **arguments_of(options)).fit(given)
    codes = estimator.transform(given)
    assert np.isfinite(codes).all(), "transform is not finite"
    assert np.isfinite(estimator.score(given)), "score is not finite"
    if case.verb == "decompose":
        estimator.inverse_transform(codes)
        codes = estimator.fit_transform(given)
    else:
        shown = case.seen.any(0)  # `transform` leaves empty columns out
        same = (codes[case.seen[:, shown]] == given[:, shown][case.seen[:, shown]]).all()
        assert same, "transform changes observed entries"
    assert np.isfinite(estimator.reconstruction_err_), "reconstruction_err_ is not finite"
    assert codes.shape[0] == case.shape[0], "transform has another number of rows"
    assert given.tobytes() == before, "an estimator changes its input"


def tables_are_read(case: Case) -> None:
    """A long table gives the fit of the sparse matrix, whatever the order of its lines."""
    rng, (rows, columns) = case.rng(6), np.nonzero(case.seen)
    ratings = case.matrix[case.seen].astype(case.matrix.dtype.newbyteorder("="))
    table = pd.DataFrame({"user": rows, "item": columns, "rating": ratings})
    if case.seed % 3 == 0:
        table["user"] = "u" + table["user"].astype(str).str.zfill(3)
    if case.seed % 5 == 0:  # a cell is missing
        name = str(rng.choice(table.columns))
        cells = table[name].astype(object)
        cells.iloc[int(rng.integers(len(table)))] = None
        table[name] = cells.infer_objects()
    elif case.seed % 5 == 1:  # a line stands there twice
        table = pd.concat([table, table.iloc[:1]])
    before = table.to_csv()
    shuffled = table.sample(frac=1, random_state=case.seed)
    one, two = (nmd_lab.observations_from_table(each) for each in (table, shuffled))
    fits = [nmd_lab.complete(X, 1, max_iter=3, random_state=0) for X in (one, two)]
    assert fits[0].W.identical(fits[1].W), "the order of a table's lines counts"
    if case.rank <= min(one.shape):
        case.call(one)
    assert table.to_csv() == before, "a table is changed"


FILES = ("x.csv", "x.csv.gz", "x.tsv", "x.npy", "x.npz", "x.mtx", "long.csv")
OUTPUTS = ("fit.nc", "fit.npz", "fit.csv", "FIT.NC")
FLAGS = (
    *("max_iter", "tol", "alpha", "offsets", "dtype", "n_init", "init", "rho", "initial_rho"),
    *("split", "patience", "epsilon", "homotopy", "polish"),
)
"""Files that the command reads and writes, and options that it has, too."""


def files_keep_their_values(case: Case) -> None:
    """A table that is written is read with its values, whatever its labels.

    `nmd-lab fit` saves the fit of this matrix with the same options, or prints the reason.
    """
    from .calls import arguments_of

    rng, values = case.rng(10), np.where(case.seen, case.floats, np.nan)
    header, index, plain = (bool(rng.integers(2)) for _ in range(3))
    table, name = pd.DataFrame(values) if plain else frame(values), str(rng.choice(FILES))
    coo = sparse.coo_array((values[case.seen], np.nonzero(case.seen)), case.shape)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        if name == "x.npz":
            sparse.save_npz(path, coo)
        elif name == "x.mtx":
            mmwrite(path, coo)
        elif name == "x.npy":
            np.save(path, values)
        elif name == "long.csv":
            long = {"userId": coo.row, "movieId": coo.col, "rating": coo.data}
            pd.DataFrame(long).to_csv(path, index=False)
        else:
            table.to_csv(path, sep="\t" if "tsv" in name else ",", header=header, index=index)
            _has(read_file(path, header=header, index=index), values, "a table read by its flags")
            if header and (not plain or (index and min(case.shape) > 1)):
                _has(read_file(path), values, "a table whose labels are found out")
        options = {"rank": case.rank, "max_iter": 4, "random_state": case.seed}
        options |= {name: case.options[name] for name in FLAGS if name in case.options}
        expected, out = None, Path(folder) / str(rng.choice(OUTPUTS))
        with answered():
            arguments = {"nonlinearity": case.model, "loss": case.loss, **arguments_of(options)}
            expected = getattr(nmd_lab, case.verb)(read_file(path)[0], progress=False, **arguments)
        options |= {"nonlinearity": case.nonlinearity, "loss": case.loss}
        tokens = [f"--{n.replace('_', '-')}={str(v).lower()}" for n, v in options.items()]
        tokens += ["--out", str(out), "--quiet"] + ["--decompose"] * (case.verb == "decompose")
        _commanded(["fit", str(path), *tokens], expected, out)
        assert len(list(Path(folder).iterdir())) <= 2, "the command leaves a file behind"


def _has(read: tuple[Any, str], values: Array, what: str) -> None:
    X, (m, n) = np.asarray(read[0], float), values.shape
    assert values.shape == X.shape, f"{what} has another shape: {X.shape}"
    # the parser of pandas rounds the last digit
    assert np.allclose(X, values, 1e-15, 0, equal_nan=True), f"{what} has other values"
    assert f"{m} rows x {n} columns" in read[1], "what is said of a file is not what was read"


def _commanded(tokens: list[str], expected: nmd_lab.Decomposition | None, out: Path) -> None:
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = main(tokens)
    said, same = errors.getvalue(), True
    own = all(line.startswith("nmd-lab: ") for line in said.splitlines())
    assert own, f"the command says something else: {said[:200]}"
    if expected is None:
        refused = code in (ExitCode.BAD_INPUT, ExitCode.FAILED) and "error: " in said
        assert refused, f"the command takes what the library refuses: {code}"
        return
    assert code == ExitCode.OK, f"the command refuses what the library takes: {said}"
    if out.suffix.lower() == ".nc":
        same = nmd_lab.load(out).W.identical(expected.W)
    elif out.suffix == ".npz":
        same = np.array_equal(np.load(out)["W"], expected.W.values)
    assert same, "the command gives another fit"


def small_study_runs(case: Case) -> None:
    """A study of a few fits has a result or a status for each, and repeats."""
    X, others = case.given()
    options = {n: v for n, v in case.options.items() if n in ("alpha", "offsets", "init")}
    options |= {"nonlinearity": ["identity", case.model], "loss": case.loss}
    options |= {"rank": 1, "max_iter": 3, "missing": [0.1, 0.3], "n_splits": 1}
    options |= {name: others[name] for name in ("observed", "sample_dims") if name in others}
    noise = {"gaussian": [0, 0.1]} if case.seed % 4 == 0 else None
    one, two = (
        nmd_lab.Study(X, noise=noise, **options).run(progress=False).drop_vars("seconds")
        for _ in range(2)
    )
    assert one.identical(two), "the same study gives other results"
    for reason in np.unique(one["stop_reason"].values.astype(str)):
        error, _, text = reason.removeprefix("failed: ").partition(": ")
        plain = not reason.startswith("failed")
        sentence = error in ("ValueError", "TypeError") and text.endswith(".")
        assert plain or sentence, f"a fit of a study fails with {error}: {text}"
