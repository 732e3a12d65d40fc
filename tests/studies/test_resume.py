"""Studies that were killed, interrupted, enlarged or changed: resumed without loss, or refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from waiting import PATIENCE

import nmd_lab as nmd
from nmd_lab import _version
from nmd_lab.cli import main
from nmd_lab.result import netcdf
from nmd_lab.solver.options import Options
from nmd_lab.solver.run import Run
from nmd_lab.studies import processes
from nmd_lab.studies.configuration import read_configuration
from nmd_lab.studies.journal import Journal, journal_path

MEASURED = ["seconds", "peak_memory"]
SETTINGS = {"nonlinearity": ["identity", "relu"], "rank": [2, 3], "n_splits": 3, "alpha": 0,
            "max_iter": 10}  # fmt: skip


@pytest.fixture(scope="module")
def digits():
    return nmd.datasets.digits(20)


@pytest.fixture
def computed(monkeypatch):
    """Record which fits are computed."""
    keys = []
    measure = processes.measure

    def recording(problem, task, time_limit):
        keys.append(task.key)
        return measure(problem, task, time_limit)

    monkeypatch.setattr(processes, "measure", recording)
    return keys


def lines(path: Path) -> list[str]:
    return journal_path(path).read_text().splitlines()


# Ten times: a child runs the study, and is killed at a function call that nobody chose.
KILLING = """
import json, random, sys
from pathlib import Path
import nmd_lab as nmd
from killing import calls_in, killed_in
from nmd_lab import datasets
from nmd_lab.solver.run import Run
from nmd_lab.studies import processes
from nmd_lab.studies.configuration import read_configuration
from nmd_lab.studies.journal import journal_path

path, log, options = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
study = nmd.Study(datasets.digits(40), **options)
total = len({task.key for task in study.grid})
measure = processes.measure

def recording(problem, task, time_limit):
    with log.open("a") as file:
        file.write(task.key + "\\n")
    return measure(problem, task, time_limit)

for nonlinearity in ["identity", "relu"]:  # compiled once, and not in each life
    task = study.grid.task({"nonlinearity": nonlinearity, "rank": 2, "alpha": 0, "seed": 0})
    measure(study.problem, task, None)
    one_fit = calls_in(measure, study.problem, task, None)
processes.measure = recording
chance = random.Random(1)
between = []
for life in range(10):
    seen = set()
    if journal_path(path).exists():
        content = journal_path(path).read_text()
        whole = content[: content.rfind("\\n") + 1].splitlines()[1:]
        seen = {json.loads(line)["key"] for line in whole}
    log.write_text("")
    # the fits that are left take longer than ten such lives
    calls = int(chance.uniform(0.5, 0.08 * total) * one_fit)
    if not killed_in(calls, lambda: study.run(path, progress=False)):
        sys.exit("the study was done before it was killed ten times")
    again = seen & set(log.read_text().split())
    if again:
        sys.exit(f"computed again: {again}")
    between.append(len(seen))
print(json.dumps({"total": total, "between": between}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_ten_kills_lose_nothing(tmp_path):
    path, log = tmp_path / "study.nc", tmp_path / "log"
    options = {"rank": [2, 3, 4, 5], "alpha": [0, 0.1, 1], "n_splits": 8, "max_iter": 40,
               "nonlinearity": ["identity", "relu"], "tol": 0}  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-c", KILLING, path, log, json.dumps(options)],
        capture_output=True, text=True, timeout=PATIENCE, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert not path.exists()
    assert len(set(told["between"])) > 5  # lives that did something
    assert told["between"] == sorted(told["between"])
    X = nmd.datasets.digits(40)
    done = {json.loads(line)["key"] for line in lines(path)[1:] if line.endswith("}")}
    results = nmd.Study(X, **options).run(path, progress=False)
    keys = [json.loads(line)["key"] for line in lines(path)[1:]]
    assert len(keys) == len(set(keys)) == told["total"]
    assert done <= set(keys)
    whole = nmd.Study(X, **options).run(progress=False)
    assert results.drop_vars(MEASURED).identical(whole.drop_vars(MEASURED))
    assert netcdf.read(path).identical(results)


def test_a_second_run_computes_nothing(digits, tmp_path, computed):
    path = tmp_path / "study.nc"
    first = nmd.Study(digits, **SETTINGS).run(path, progress=False)
    assert len(computed) == 12
    second = nmd.Study(digits, **SETTINGS).run(path, progress=False)
    assert len(computed) == 12
    assert second.identical(first)  # seconds and memory too: nothing was measured again


def test_a_grown_grid_computes_only_what_is_new(digits, tmp_path, computed):
    path = tmp_path / "study.nc"
    first = nmd.Study(digits, **SETTINGS).run(path, progress=False)
    computed.clear()
    grown = SETTINGS | {"rank": [2, 3, 4], "n_splits": 4, "alpha": [0.0, 0.5]}
    results = nmd.Study(digits, **grown, missing=[0.2, 0.4]).run(path, progress=False)
    assert results.sizes == {
        "nonlinearity": 2, "rank": 3, "alpha": 2, "missing": 2, "seed": 4
    }  # fmt: skip
    assert len(set(computed)) == len(computed) == 2 * 3 * 2 * 2 * 4 - 12
    old = results.sel(rank=[2, 3], alpha=0, missing=0.2, seed=[0, 1, 2], drop=True)
    assert old.drop_attrs().identical(first.drop_attrs())
    # and back: the small study takes its fits from the larger journal
    computed.clear()
    assert nmd.Study(digits, **SETTINGS).run(path, progress=False).identical(first)
    assert not computed


def test_blocks_join_later_and_know_their_picture(digits, tmp_path, computed):
    path = tmp_path / "study.nc"
    options = {"rank": 2, "alpha": 0, "n_splits": 2, "max_iter": 5}
    nmd.Study(digits, **options).run(path, progress=False)
    computed.clear()
    holes = {"random": 0.2, "blocks": 0.2}
    nmd.Study(digits, missing=holes, **options).run(path, progress=False)
    assert len(computed) == 2
    nmd.Study(digits, missing=holes, shape=(4, 16), **options).run(path, progress=False)
    assert len(computed) == 4
    with pytest.raises(ValueError, match="missing="):
        nmd.Study(digits, missing={"rows": 0.2}, **options).run(path, progress=False)


def test_a_torn_line_is_dropped(digits, tmp_path, computed):
    path = tmp_path / "study.nc"
    first = nmd.Study(digits, **SETTINGS).run(path, progress=False)
    content = journal_path(path).read_bytes()
    computed.clear()
    journal_path(path).write_bytes(content[:-30])
    again = nmd.Study(digits, **SETTINGS).run(path, progress=False)
    assert len(computed) == 1
    assert again.drop_vars(MEASURED).identical(first.drop_vars(MEASURED))
    computed.clear()
    journal_path(path).write_bytes(content.splitlines()[0][:20])  # not even the header is whole
    nmd.Study(digits, **SETTINGS).run(path, progress=False)
    assert len(computed) == 12


def test_interrupted_fits_are_no_results(digits, tmp_path, computed):
    def impatient(X, rank, random_state=None):
        if len(computed) == 3:
            raise KeyboardInterrupt
        return nmd.baselines.truncated_svd(X, rank)

    path = tmp_path / "study.nc"
    options = {"method": impatient, "rank": [2, 3], "n_splits": 3}
    with pytest.raises(KeyboardInterrupt):
        nmd.Study(digits, **options).run(path, progress=False)
    assert len(lines(path)) == 1 + 2
    results = nmd.Study(digits, **options).run(path, progress=False)
    assert (results.status == "done").all()
    assert len(computed) == 3 + 4


def test_a_fit_that_ctrl_c_cuts_short_is_no_result(digits, tmp_path, monkeypatch, interactive):
    """`complete` returns its best iterate on Ctrl-C, which a study must not keep."""
    from nmd_lab.solver import stopping

    def interrupted(*_):
        raise KeyboardInterrupt

    path = tmp_path / "study.nc"
    study = nmd.Study(digits, rank=2, alpha=0, n_splits=1)
    cell = study.cell()
    monkeypatch.setattr(stopping.Stopping, "reason", interrupted)
    assert cell.fit(progress=False).stop_reason.code == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        study.run(path, progress=False)
    assert len(lines(path)) == 1


def test_ctrl_c_ends_a_study_and_finished_fits_stay(tmp_path, monkeypatch, capsys):
    config, out = tmp_path / "study.toml", tmp_path / "study.nc"
    config.write_text(
        '[data]\ndataset = "digits"\nn = 10\n[study]\nrank = [1, 2]\nalpha = 0\nmax_iter = 5\n'
    )
    record = Run._record

    def interrupted(self, state):
        if len(lines(out)) == 1 + 2 and state.iteration == 3:
            signal.raise_signal(signal.SIGINT)
        return record(self, state)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "_record", interrupted)
        argv = ["study", str(config), "--out", str(out), "--quiet"]
        assert main(argv) == 130
        assert capsys.readouterr().err.endswith(f"goes on from {journal_path(out)}\n")
        study, options = read_configuration(config)
        with pytest.raises(KeyboardInterrupt):
            study.run(out, progress=False, **options)
    assert len(lines(out)) == 1 + 2
    assert main(argv) == 0
    assert len(lines(out)) == 1 + 6


def test_what_failed_is_done_again_on_request(digits, tmp_path):
    state = {"broken": True}

    def moody(X, rank):
        if state["broken"] and rank == 3:
            raise RuntimeError("not today")
        return nmd.baselines.truncated_svd(X, rank)

    path = tmp_path / "study.nc"
    study = nmd.Study(digits, method=moody, rank=[2, 3], n_splits=1)
    assert study.run(path, progress=False).status.values.ravel().tolist() == ["done", "failed"]
    state["broken"] = False
    again = nmd.Study(digits, method=moody, rank=[2, 3], n_splits=1)
    assert again.run(path, progress=False).status.values.ravel().tolist() == ["done", "failed"]
    results = again.run(path, progress=False, retry=True)
    assert (results.status == "done").all()
    last = nmd.Study(digits, method=moody, rank=[2, 3], n_splits=1).run(path, progress=False)
    assert last.identical(results)


def changed(digits):
    X = digits.copy(deep=True)
    X[3, 5] += 1e-9
    return X


CHANGES = {
    "data": (lambda X: {"X": changed(X)}, "X is not what the study"),
    "hidden data": (lambda X: {"mask": X.values >= 0.5}, "X is not what the study"),
    "constant": (lambda X: {"max_iter": 11}, r"max_iter=11 was 10"),
    "default": (lambda X: {"tol": 1e-3}, rf"tol=0\.001 was {Options().tol:g}"),
    "list": (lambda X: {"rank": [7]}, r"rank=7 was \[2, 3\]"),
    "missing": (lambda X: {"missing": [0.5]}, r"missing=\['random', 0\.5\]"),
    "seeds": (lambda X: {"random_state": 10}, r"seed=\[10, 11, 12\] was \[0, 1, 2\]"),
    "metric": (lambda X: {"metrics": "relative_error_l1"}, "relative_error_l1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_study_is_refused(change, digits, tmp_path, computed):
    path = tmp_path / "study.nc"
    nmd.Study(digits, **SETTINGS).run(path, progress=False)
    before, done = lines(path), len(computed)
    make, message = CHANGES[change]
    options = {"X": digits} | SETTINGS | make(digits)
    with pytest.raises(ValueError, match=message) as caught:
        nmd.Study(**options).run(path, progress=False)
    assert "another path" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(computed) == done
    assert lines(path) == before


def test_another_version_is_refused(digits, tmp_path, monkeypatch):
    path = tmp_path / "study.nc"
    nmd.Study(digits, rank=2, alpha=0, n_splits=1).run(path, progress=False)
    monkeypatch.setattr(_version, "__version__", "99.0")
    with pytest.raises(ValueError, match=r"was begun with nmd_lab .*, this is 99\.0"):
        nmd.Study(digits, rank=2, alpha=0, n_splits=1).run(path, progress=False)


def test_values_under_a_mask_are_no_part_of_the_data(digits, tmp_path, computed):
    path, mask = tmp_path / "study.nc", digits.values < 0.9
    other = digits.where(mask, 17.0)
    nmd.Study(digits, mask=mask, rank=2, alpha=0, n_splits=2).run(path, progress=False)
    nmd.Study(other, mask=mask, rank=2, alpha=0, n_splits=2).run(path, progress=False)
    assert len(computed) == 2


def test_two_processes_do_not_write_one_study(digits, tmp_path):
    pytest.importorskip("fcntl")
    path = tmp_path / "study.nc"
    nmd.Study(digits, rank=2, alpha=0, n_splits=1).run(path, progress=False)
    study = nmd.Study(digits, rank=2, alpha=0, n_splits=1)
    with journal_path(path).open("rb") as file:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(RuntimeError, match="in use by another process"):
            study.run(path, progress=False)
    study.run(path, progress=False)


def test_damaged_journals_and_bad_paths_are_refused(digits, tmp_path):
    study = nmd.Study(digits, rank=2, alpha=0, n_splits=1)
    path = tmp_path / "study.nc"
    journal_path(path).write_text("what is this?\n")
    with pytest.raises(ValueError, match="damaged, or no journal"):
        study.run(path)
    with pytest.raises(FileNotFoundError, match="in no existing folder"):
        study.run(tmp_path / "none" / "study.nc")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        study.run(tmp_path)


DAMAGED = {
    "no JSON": lambda line: line[:-9] + "}",
    "another value": lambda line: line.replace('"n_iter": 1', '"n_iter": 7'),
    "no key": lambda line: line.replace('"key"', '"kez"'),
    "a list": lambda line: "[1, 2]",
    "deep": lambda line: "[" * 100_000,
    "no checksum": lambda line: line.replace("crc32", "crc33"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_line_is_done_again(damage, digits, tmp_path, computed):
    path = tmp_path / "study.nc"
    first = nmd.Study(digits, **SETTINGS).run(path, progress=False)
    header, one, *rest = lines(path)
    journal_path(path).write_text("\n".join([header, DAMAGED[damage](one), *rest]) + "\n")
    computed.clear()
    with pytest.warns(nmd.NMDWarning, match="has 1 damaged of 12 lines"):
        again = nmd.Study(digits, **SETTINGS).run(path, progress=False)
    assert len(computed) == 1
    assert again.drop_vars(MEASURED).identical(first.drop_vars(MEASURED))


@pytest.mark.parametrize(
    "damage",
    [lambda h: h.replace('"data"', '"dato"'), lambda h: "[]", lambda h: '{"layout": 1}',
     lambda h: '{"layout": 1, "data": 1, "version": 1, "metrics": 1, "settings": 2, "values": 3}',
     lambda h: h.replace('"rmse"', '"rmsd"')],
)  # fmt: skip
def test_a_damaged_header_is_refused_in_a_sentence(damage, digits, tmp_path):
    path = tmp_path / "study.nc"
    study = nmd.Study(digits, rank=2, alpha=0, n_splits=1)
    study.run(path, progress=False)
    header, *rest = lines(path)
    journal_path(path).write_text("\n".join([damage(header), *rest]) + "\n")
    with pytest.raises(ValueError, match="another path") as caught:
        study.run(path, progress=False)
    assert "\n" not in str(caught.value)


def test_a_journal_on_a_full_disk_keeps_what_it_has(tmp_path):
    resource = pytest.importorskip("resource")
    header = {"layout": 1, "version": "1", "data": "", "metrics": [], "settings": {}, "values": {}}
    path, before = tmp_path / "study.nc", resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal(path, header, {}) as journal:
        journal.add({"key": "first", "status": "done"})
        size = journal_path(path).stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
        try:
            with pytest.raises(OSError, match=r"study\.nc\.journal.*cannot be written"):
                journal.add({"key": "second", "status": "done"})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert journal_path(path).stat().st_size == size
    with Journal(path, header, {}) as journal:
        assert list(journal.records) == ["first"]


def test_memory_moves_to_disk(digits, tmp_path, computed):
    """A study that ran without a path writes its records when it gets one."""
    study = nmd.Study(digits, **SETTINGS)
    first = study.run(progress=False)
    second = study.run(tmp_path / "study.nc", progress=False)
    assert len(computed) == 12
    assert second.identical(first)
    nmd.Study(digits, **SETTINGS).run(tmp_path / "study.nc", progress=False)
    assert len(computed) == 12


def test_the_file_is_plain_netcdf(digits, tmp_path):
    import xarray as xr

    path = tmp_path / "study.nc"
    results = nmd.Study(digits, **SETTINGS).run(path, progress=False)
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        np.testing.assert_array_equal(opened.held_out_rmse, results.held_out_rmse)
        assert opened.nonlinearity.values.tolist() == ["identity", "relu"]
        assert opened.seconds.dtype == float
    with pytest.raises(ValueError, match="holds no decomposition"):
        nmd.load(path)


def test_a_record_is_on_disk_when_add_returns(tmp_path):
    header = {"layout": 1, "version": "1", "data": "", "metrics": [], "settings": {}, "values": {}}
    path = tmp_path / "study.nc"
    with Journal(path, header, {}) as journal:
        for k in range(3):
            record = {"key": str(k), "status": "done", "seconds": k / 3}
            journal.add(record)
            on_disk = json.loads(lines(path)[-1])
            assert isinstance(on_disk.pop("crc32"), int)
            assert on_disk == record
