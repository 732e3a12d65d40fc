"""Studies that were killed, interrupted, enlarged or changed: resumed without loss, or refused."""

import os
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import check_all_refused
from killing import calls_in, killed_in

import nmd_lab as nmd
from nmd_lab import _version
from nmd_lab._runtime.progress import StopReason
from nmd_lab.result import netcdf
from nmd_lab.studies import cell as execution
from nmd_lab.studies.cell import read_records, write_record

SETTINGS = {"method": "svd", "rank": [2, 3], "n_splits": 3}
ONE = {"method": "svd", "rank": 2, "n_splits": 1}


@pytest.fixture
def computed(monkeypatch):
    """Record which fits are computed."""
    keys = []
    measure = execution.measure

    def recording(cell, time_limit):
        keys.append(cell.key)
        return measure(cell, time_limit)

    monkeypatch.setattr(execution, "measure", recording)
    return keys


def files(path: Path) -> list[Path]:
    return sorted(Path(f"{path}.fits").glob("*.json"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_five_kills_lose_nothing(digits, tmp_path, computed):
    """A child runs the study, and is killed at a function call that nobody chose."""
    path, options = tmp_path / "study.nc", SETTINGS | {"rank": [1, 2, 3, 4, 5, 6]}
    study = nmd.Study(digits, **options)
    whole = study.run(progress=False)
    one_fit = calls_in(execution.measure, study.grid.values.flat[0], None)
    chance, finished = random.Random(1), [0]
    for _ in range(5):
        again = nmd.Study(digits, **options)
        assert killed_in(
            int(chance.uniform(2, 4) * one_fit), lambda s=again: s.run(path, progress=False)
        )
        finished.append(len(files(path)))
    assert finished == sorted(finished)
    assert 0 < finished[-1] < 18
    computed.clear()
    results = nmd.Study(digits, **options).run(path, progress=False)
    assert len(computed) == 18 - finished[-1]
    assert len(files(path)) == len(list(Path(f"{path}.fits").iterdir())) == 18
    assert results.drop_vars("seconds").identical(whole.drop_vars("seconds"))
    assert netcdf.read(path).identical(results)


def test_a_grown_grid_computes_only_what_is_new(digits, tmp_path, computed):
    path = tmp_path / "study.nc"
    first = nmd.Study(digits, **SETTINGS).run(path, progress=False)
    assert len(computed) == 6
    assert nmd.Study(digits, **SETTINGS).run(path, progress=False).identical(first)
    assert len(computed) == 6  # seconds too: nothing was measured again
    grown = SETTINGS | {"rank": [2, 3, 4], "n_splits": 4, "missing": [0.2, 0.4]}
    results = nmd.Study(digits, **grown).run(path, progress=False)
    assert len(set(computed)) == len(computed) == 3 * 4 * 2
    old = results.sel(rank=[2, 3], missing=0.2, seed=[0, 1, 2], drop=True)
    assert old.drop_attrs().identical(first.drop_attrs())
    # and back: the small study takes its fits from the larger one
    assert nmd.Study(digits, **SETTINGS).run(path, progress=False).identical(first)
    assert len(computed) == 3 * 4 * 2


def test_a_fit_that_ctrl_c_cuts_short_is_no_result(digits, tmp_path):
    """Where a fit returns its best iterate on Ctrl-C, a study must not keep it."""
    path, count = tmp_path / "study.nc", []

    def cut_short(X, rank):
        count.append(1)
        if len(count) == 2:
            return SimpleNamespace(stop_reason=StopReason("interrupted", "interrupted: Ctrl-C"))
        return nmd.baselines.truncated_svd(X, rank)

    options = {"method": cut_short, "rank": 2, "n_splits": 3}
    study = nmd.Study(digits, **options)
    with pytest.raises(KeyboardInterrupt):
        study.run(path, progress=False)
    assert len(files(path)) == 1
    with pytest.raises(ValueError, match=r"need all fits, and 1 of 3 fits are done: call study"):
        study.best()
    assert "no results before all fits are done" in study._repr_html_()
    assert (nmd.Study(digits, **options).run(path, progress=False).status == "done").all()
    assert len(count) == 2 + 2
    study.run(progress=False)  # which has its one fit in memory
    assert len(count) == 2 + 2 + 2


def test_what_failed_is_done_again(digits, tmp_path):
    broken = [3]

    def moody(X, rank):
        if rank in broken:
            raise RuntimeError("not today")
        return nmd.baselines.truncated_svd(X, rank)

    path, options = tmp_path / "study.nc", {"method": moody, "rank": [2, 3], "n_splits": 1}
    first = nmd.Study(digits, **options).run(path, progress=False)
    assert first.status.values.ravel().tolist() == ["done", "failed"]
    broken.clear()
    results = nmd.Study(digits, **options).run(path, progress=False)
    assert (results.status == "done").all()
    assert nmd.Study(digits, **options).run(path, progress=False).identical(results)


def test_another_study_is_refused_and_what_is_there_stays(digits, tmp_path, computed):
    path = tmp_path / "study.nc"
    first = nmd.Study(digits, **ONE).run(path, progress=False)
    changed = lambda other: nmd.Study(**{"X": digits} | ONE | other).run(path, progress=False)  # noqa: E731
    check_all_refused([
        (r"holds another study: give another path\.$", changed,
         {"rank": 3}, {"X": digits + 1e-9}, {"observed": digits.values >= 0.5}),
    ])  # fmt: skip
    assert len(computed) == 1
    assert netcdf.read(path).identical(first)
    assert nmd.Study(digits, **ONE).run(path, progress=False).identical(first)
    assert len(computed) == 1


def test_a_fit_of_another_version_is_done_again(digits, tmp_path, computed, monkeypatch):
    nmd.Study(digits, **ONE).run(tmp_path / "study.nc", progress=False)
    monkeypatch.setattr(_version, "__version__", "99.0")
    nmd.Study(digits, **ONE).run(tmp_path / "new.nc", progress=False)
    assert len(set(computed)) == 2


DAMAGED = {
    "cut short": lambda text: text[:-9],
    "deep": lambda text: "[" * 100_000,
    "no key": lambda text: text.replace('"key"', '"kez"'),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_record_is_done_again(damage, digits, tmp_path, computed):
    path = tmp_path / "study.nc"
    first = nmd.Study(digits, **SETTINGS).run(path, progress=False)
    one = files(path)[0]
    one.write_text(DAMAGED[damage](one.read_text()))
    with pytest.warns(nmd.warnings.NMDWarning, match="has 1 damaged of 6 files"):
        again = nmd.Study(digits, **SETTINGS).run(path, progress=False)
    assert len(computed) == 6 + 1
    assert again.drop_vars("seconds").identical(first.drop_vars("seconds"))


def test_a_record_is_on_disk_at_once_and_a_full_disk_keeps_what_it_has(tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    record = {"key": "first", "status": "done", "seconds": 1 / 3}
    write_record(tmp_path, record)
    assert read_records(tmp_path) == {"first": record}
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        with pytest.raises(OSError, match=r"second\.json.*cannot be written"):
            write_record(tmp_path, {"key": "second", "status": "done"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert read_records(tmp_path) == {"first": record}
    assert [each.name for each in tmp_path.iterdir()] == ["first.json"]
