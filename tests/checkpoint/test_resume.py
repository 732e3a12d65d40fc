"""Runs that end at any checkpoint, go on, and have the bits of an uninterrupted run."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import check_all_refused, some
from made_runs import PAIRS, STORAGES, Run, bits_of, fit_of, kept, noisy, others

import nmd_lab as nmd
from nmd_lab.checkpoint import Checkpoint
from nmd_lab.selection import trials

GIVEN_AGAIN = ("observed", "order")


pytestmark = pytest.mark.filterwarnings("ignore::nmd_lab.warnings.NMDWarning")


class Killed(BaseException):
    """Stands for the death of a process."""


@pytest.fixture
def run_until(monkeypatch):
    """A function that runs until a moment at which a checkpoint may be written, from 1.

    0 stands for the end.  It returns the number of these moments.
    """

    def until(last: int, run: Any) -> int:
        number = 0

        def tick(checkpoint: Checkpoint) -> None:
            nonlocal number
            number += 1
            if number == last:
                checkpoint.write()
                raise Killed

        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            patch.setattr(Checkpoint, "tick", tick)
            run()
        return number

    return until


def check(run: Run, run_until: Any, path: Path, seed: int) -> None:
    name, arguments, options = run
    function, rng = getattr(nmd, name), np.random.default_rng(seed)
    expected = bits_of(function(*arguments, **options))

    def again() -> None:
        function(*arguments, **kept(options, path))

    total = run_until(0, again)
    assert not path.exists()  # a short run needs none
    first = int(rng.integers(1, total + 1))
    run_until(first, again)
    assert path.exists()
    run_until(int(rng.integers(1, total - first + 2)), again)
    run_until(1, again)  # before anything is done
    given = {each: options[each] for each in GIVEN_AGAIN if each in options}
    assert bits_of(nmd.resume(path, arguments[0], **given)) == expected


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("f", "loss"), PAIRS)
def test_a_fit_goes_on_as_if_never_stopped(f, loss, storage, run_until, tmp_path):
    seed = PAIRS.index((f, loss)) * 4 + STORAGES.index(storage)
    check(fit_of(f, loss, storage), run_until, tmp_path / "run.nc", seed)


@pytest.mark.parametrize("seed", some(range(3), 1))
@pytest.mark.parametrize("name", some([name for name in others() if name != "unseeded"], 9))
def test_every_other_run_goes_on_too(name, seed, run_until, tmp_path):
    check(others()[name], run_until, tmp_path / "run.nc", seed)


@pytest.mark.parametrize("end", range(1, 40, 13))
@pytest.mark.parametrize("how", ["callback", "time_limit"])
def test_a_run_that_was_stopped_goes_on(how, end, tmp_path, clock):
    path, (_, arguments, options) = tmp_path / "run.nc", fit_of("relu", "l1", "dense")
    expected = bits_of(nmd.decompose(*arguments, **options))
    stop = {"callback": lambda state: state.iteration == end} if how == "callback" else {}
    stop |= {} if stop else {"time_limit": 0.01 * end}
    fit = nmd.decompose(*arguments, **kept(options, path, every=0), **stop)
    assert fit.stop_reason.code == how
    assert bits_of(nmd.resume(path, arguments[0], time_limit=None)) == expected


def test_the_time_of_a_choice_counts_when_its_fit_goes_on(run_until, tmp_path, clock, monkeypatch):
    monkeypatch.setattr(trials, "suits", lambda *_: False)  # which asks the clock less often
    path, (_, arguments, options) = tmp_path / "run.nc", others()["auto"]
    options = options | {"time_limit": 4.0, "tol": 0, "max_iter": 10**6}
    fitted = lambda: nmd.complete(*arguments, **kept(options, path))  # noqa: E731
    run_until(run_until(0, fitted) - 5, fitted)
    fit = nmd.resume(path, *arguments, observed=options["observed"])
    spent = float(fit.selection["seconds"].sum())
    assert spent > 1.0
    assert 3.5 < spent + float(fit.history["seconds"][-1]) < 4.1


def test_a_fit_without_a_seed_goes_on_with_its_own_random_numbers(run_until, tmp_path):
    path, (_, arguments, options) = tmp_path / "run.nc", others()["unseeded"]
    whole = {}
    for last in (12, 3):
        run_until(last, lambda: nmd.decompose(*arguments, **kept(options, path)))
        saved = path.read_bytes()
        whole[last] = bits_of(nmd.resume(path, arguments[0]))
        path.write_bytes(saved)
    assert whole[12] == whole[3]


def stopped(path: Path, run_until: Any, *arguments: Any, **options: Any) -> None:
    run_until(9, lambda: nmd.decompose(*arguments, **kept(options, path)))


def test_other_data_and_options_are_refused(run_until, tmp_path):
    X, path = noisy("relu"), tmp_path / "run.nc"
    stopped(path, run_until, X, 2, init="svd", random_state=0)
    resumed = lambda options: nmd.resume(path, **{"X": X} | options)  # noqa: E731
    begun = {"init": "svd", "random_state": 0, "compute": nmd.Compute(checkpoint=path)}
    check_all_refused([
        ("is of other data than X", resumed, {"X": X + 1}),
        ("rank=3 does not go with checkpoint=.* which has 2", resumed, {"rank": 3}),
        ("loss='l1' does not go with .* which has 'frobenius'",
         lambda loss: nmd.decompose(X, 2, "relu", loss, **begun), "l1"),
        ("random_state=1 does not go", resumed, {"random_state": 1}),
        (r"is of decompose\(\), and this is complete\(\)",
         lambda alpha: nmd.complete(X, 2, alpha=alpha, compute=begun["compute"]), 0),
        ("max_iter=7 does not go", resumed, {"max_iter": 7}),
    ])  # fmt: skip
    assert nmd.resume(path, X, compute=nmd.Compute(threads=1), progress=False)._n_iter > 9


def test_what_a_checkpoint_does_not_hold_is_asked_for(run_until, tmp_path):
    X, path = noisy("relu"), tmp_path / "run.nc"
    start = np.random.default_rng(0).normal(size=(24, 2)), np.ones((2, 18))
    own = {"init": start, "weights": np.ones(X.shape), "nonlinearity": nmd.MinMax(0, 3)}
    stopped(path, run_until, X, 2, **own)
    given = {"init": start, "weights": own["weights"]}
    resumed = lambda options: nmd.resume(path, X, **options)  # noqa: E731
    check_all_refused([
        ("does not hold init and weights: give init= as it was", resumed, {}),
        ("init=.* does not go with .* which has another value",
         resumed, given | {"init": (start[0], 2 * start[1])}),
        (r"nonlinearity=MinMax\(0, 4\) does not go",
         resumed, given | {"nonlinearity": nmd.MinMax(0, 4)}),
    ])  # fmt: skip
    fit = nmd.resume(path, X, **given)
    assert fit.nonlinearity == nmd.MinMax(0, 3)


def test_a_torn_file_falls_back_to_the_one_before(run_until, tmp_path):
    X, path = noisy("relu"), tmp_path / "run.nc"
    expected = bits_of(nmd.decompose(X, 2, random_state=0))
    stopped(path, run_until, X, 2, random_state=0)
    stopped(path, run_until, X, 2, random_state=0)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:-40] + bytes(40), b""):
        path.write_bytes(content)
        assert bits_of(nmd.resume(path, X)) == expected
    path.unlink()
    assert bits_of(nmd.resume(path, X)) == expected
    path.write_bytes(whole[:100])
    (tmp_path / "run.nc.earlier").write_bytes(whole[:100])
    with pytest.raises(ValueError, match=r"is damaged, or nmd_lab did not write it"):
        nmd.resume(path, X)
    with pytest.raises(FileNotFoundError, match="is no file: check the name"):
        nmd.resume(tmp_path / "other.nc", X)


def test_a_run_goes_on_without_checkpoints_that_cannot_be_written(monkeypatch, tmp_path):
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nmd_lab.checkpoint.write_atomically", full)
    X, options = noisy("relu"), {"random_state": 0}
    with pytest.warns(nmd.warnings.CheckpointWarning, match="No further checkpoint is written"):
        fit = nmd.decompose(X, 2, **kept(options, tmp_path / "run.nc", every=0))
    assert bits_of(fit) == bits_of(nmd.decompose(X, 2, **options))
