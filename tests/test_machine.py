"""What a machine has: free memory, threads of BLAS, and files that are written as a whole.

Compiled kernels: what their names depend on, and where they are kept.
"""

import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from helpers import PATIENCE, run_python
from numba import config
from threadpoolctl import threadpool_info, threadpool_limits

import nmd_lab as nmd
from nmd_lab._runtime import machine
from nmd_lab._runtime.compiler import compile_kernel, compile_scalar, source_hash
from nmd_lab._runtime.machine import check_target, one_thread, write_atomically

GIB = 1 << 30
LIMIT = 9 * GIB  # more than a process of tests takes

GROUPS = {
    "version 2, a group around it": (
        "0::/user/job",
        {"user/memory.max": LIMIT, "memory.max": "max"},
    ),
    "version 1 in a container": ("5:memory:/elsewhere", {"memory/memory.limit_in_bytes": LIMIT}),
}


@pytest.mark.parametrize("case", GROUPS)
def test_a_limit_of_a_control_group_counts(case, tmp_path, monkeypatch):
    line, limits = GROUPS[case]
    files = {"proc/self/cgroup": line} | {f"sys/fs/cgroup/{k}": v for k, v in limits.items()}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(
        machine, "Path", lambda *names: tmp_path.joinpath(*(name.lstrip("/") for name in names))
    )
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("", (), {"available": 64 * GIB}))
    assert LIMIT / 2 < machine.free_memory() < LIMIT  # this process has the rest


def test_what_is_free_is_not_exceeded(monkeypatch):
    monkeypatch.setattr(machine, "free_memory", lambda: GIB)
    machine.refuse_above(GIB // 2, "a fit", "wait")
    with pytest.raises(MemoryError) as caught:
        machine.refuse_above(GIB, "a fit", "take {share:.0%}")
    assert str(caught.value) == "a fit needs 1 GiB, 1 GiB are free: take 90%."
    with pytest.raises(MemoryError, match=r"1 GiB are free and memory_limit=0.25: wait\."):
        machine.refuse_above(GIB // 2, "a fit", "wait", 0.25)


def test_factors_of_rows_in_order_need_memory(monkeypatch):
    X, short = np.random.default_rng(0).normal(size=(300, 40)), {"rank": 30, "draws": 1, "tune": 1}
    monkeypatch.setattr(machine, "free_memory", lambda: 8 * 300 * 30**2)
    nmd.sample(X, **short)
    with pytest.raises(MemoryError, match=r"needs 0\.01\d+ GiB"):
        nmd.sample(X, **short, order=np.arange(300))


CHILD = """
import resource, numpy as np, nmd_lab as nmd, psutil
one = nmd.Compute(threads=1)
nmd.decompose(np.eye(5, dtype=np.float32), 1, "relu", compute=one, max_iter=20)  # load everything
X = np.ones((5000, 5000), dtype=np.float32)
resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + 150 * 2**20,) * 2)
try:
    nmd.decompose(X, 3, "relu", compute=one)
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sets a limit")
def test_a_fit_above_the_limit_of_the_process_is_refused_in_one_sentence():
    """T, U and the array of a refinement are 286 MiB, the limit leaves 150."""
    printed = run_python("-c", CHILD).stdout
    assert "GiB are free: give " in printed
    assert printed.count("\n") == 1


def threads():
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@pytest.fixture
def two_threads():
    with threadpool_limits(2, "blas"):
        if threads() != {2}:
            # as that of Apple, without which the claim has nothing to compare
            pytest.skip("this BLAS cannot be told how many threads to use")
        yield


@pytest.mark.usefixtures("two_threads")
def test_limits_hold_in_any_thread_one_after_the_other():
    found = []

    def use():
        with one_thread():
            found.append(threads())
        found.append(threads())

    for run in (lambda use: use(), in_a_thread, lambda use: use(), in_a_thread, in_a_thread):
        run(use)
    assert found == [{1}, {2}] * 5


@pytest.mark.usefixtures("two_threads")
def test_the_last_of_several_threads_gives_them_back():
    entered, leave = threading.Event(), threading.Event()

    def use():
        with one_thread():
            entered.set()
            leave.wait(PATIENCE)

    other = threading.Thread(target=use)
    with one_thread():
        other.start()
        assert entered.wait(PATIENCE)
    assert threads() == {1}
    leave.set()
    other.join()
    assert threads() == {2}


def dead_process() -> int:
    """Return the id of a process that has ended."""
    return int(run_python("-c", "import os; print(os.getpid())").stdout)


def leftover(path, process, monkeypatch):
    """Return the temporary file that a process would have made."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: process)
        name = machine._prefix(path)
    file = path.with_name(f"{name}0123.partial")
    file.write_text("half")
    return file


@pytest.mark.skipif(os.name != "posix", reason="asks for processes by their id")
def test_files_of_dead_processes_are_removed_and_others_stay(tmp_path, monkeypatch):
    path = tmp_path / "fit.nc"
    leftover(path, dead_process(), monkeypatch)
    of_another_file = leftover(tmp_path / "other.nc", dead_process(), monkeypatch)
    alive = leftover(path, os.getppid(), monkeypatch)
    unknown = leftover(path, 10**12, monkeypatch)  # the number of no process
    foreign = tmp_path / ".fit.nc.0123456789abcdef.partial"  # of another machine or version
    foreign.write_text("half")
    old = tmp_path / ".fit.nc.fedcba9876543210.partial"
    old.write_text("half")
    long_ago = time.time() - 2 * machine.MAX_WRITE_SECONDS
    os.utime(old, (long_ago, long_ago))
    write_atomically(path, lambda file: file.write(b"x"))
    assert set(tmp_path.iterdir()) == {path, of_another_file, alive, unknown, foreign}
    assert path.read_bytes() == b"x"


def test_an_error_keeps_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")

    def write(file):
        file.write(b"new")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=r"path='.*a' cannot be written \(No space left") as caught:
        write_atomically(path, write)
    assert caught.value.errno == 28
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_found_before(tmp_path, monkeypatch):
    """As /proc does to root."""

    def refuse(*_, **__):
        raise FileNotFoundError(2, "No such file or directory")

    check_target(tmp_path / "a", "out")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(FileNotFoundError, match=r"out='.*a' cannot be written.* another path\.$"):
        check_target(tmp_path / "a", "out")


PACKAGE = Path(nmd.__file__).parent

FIT = """
import numpy as np, nmd_lab as nmd
from numba.core import event
X = np.maximum(np.random.default_rng(0).normal(size=(12, 9)), 0)
plain = nmd.ADMM(refine=False, homotopy=False, polish=False)
with event.install_recorder("numba:compile") as recorded:
    nmd.decompose(X, 2, "relu", "l1", max_iter=3, init="random", solver=plain, random_state=0)
names = {each.data["dispatcher"].py_func.__name__ for _, each in recorded.buffer}
print("compiled", *sorted(name for name in names if name.startswith("update_relu_l1")))
"""


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, without compiled kernels."""
    shutil.copytree(PACKAGE, tmp_path / "nmd_lab", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def words_of(script=FIT, **variables):
    """Return what a new process prints: of a fit, the names of the update kernels it compiles."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {name: str(folder) for name, folder in variables.items()}
    options = {"env": environment, "cwd": variables.get("PYTHONPATH")}
    run = run_python("-W", "ignore", "-c", script, **options)
    assert not run.stderr
    return run.stdout.split()[1:]


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "cut at the end": lambda content: content[:-1],
    "garbage": lambda content: bytes(range(256)) * 9,
    "of pickle": lambda content: b"\x80\x04N.",
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_file_is_compiled_again_and_replaced(ending, damage, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    def double(x):
        return 2 * x

    def hits():
        kernel = compile_kernel(double, "double", cached=True)
        assert kernel(3.0) == 6.0
        return sum(kernel.stats.cache_hits.values())

    assert [hits(), hits()] == [0, 1]
    (path,) = tmp_path.rglob(f"*.{ending}")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert [hits(), hits()] == [0, 1]


@pytest.mark.exhaustive
def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    pytest.importorskip("resource")
    (tmp_path / "file").write_text("")
    found = words_of(NUMBA_CACHE_DIR=tmp_path / "file" / "cache")
    assert len(found) <= 1  # or another place, which has it
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    assert len(words_of(full + FIT, NUMBA_CACHE_DIR=tmp_path / "full")) == 1
    assert not [path for path in (tmp_path / "full").rglob("*") if path.is_file()]


@pytest.mark.exhaustive
def test_a_built_in_pair_is_kept_on_disk_and_a_changed_source_compiles_it_anew(copied):
    first = words_of(PYTHONPATH=copied)
    assert len(first) == 1
    assert words_of(PYTHONPATH=copied) == []  # read from disk
    # What the kernel has captured is in another file
    changed = copied / "nmd_lab" / Path(nmd.L1.proximal.__code__.co_filename).relative_to(PACKAGE)
    changed.write_text(changed.read_text() + "\n# another line\n")
    again = words_of(PYTHONPATH=copied)
    assert len(again) == 1
    assert again != first  # the hash in its name is another
    (kept,) = {path.parent for path in copied.rglob("*update_relu_l1*.nbi")}
    assert kept.name == "__pycache__"


def test_the_hash_follows_captured_files_wherever_they_lie(tmp_path):
    def kernel_of(text):
        path = tmp_path / "elsewhere" / f"{abs(hash(text))}" / "own.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        names = {}
        exec(compile(text, str(path), "exec"), names)
        inner = compile_scalar(names["inner"])

        def kernel(t):
            return inner(t)

        return kernel

    same = "LIMIT = 2.0\ndef inner(t):\n    return t * LIMIT\n"
    first, second = (source_hash(kernel_of(text)) for text in (same, same + "# other\n"))
    assert first != second


def test_the_hash_tells_global_constants_and_closure_variables_apart():
    def kernel(limit):
        def inner(t):
            return t + limit

        return compile_scalar(inner)

    assert source_hash(kernel(1)) != source_hash(kernel(2))
    assert source_hash(kernel(1)) == source_hash(kernel(1))


@pytest.mark.parametrize("first", ["prox", "fit"])
@pytest.mark.exhaustive
def test_code_does_not_depend_on_what_was_compiled_before(first, tmp_path):
    script = f"""
import numpy as np, nmd_lab as nmd
from nmd_lab.model.model import make_model
from nmd_lab.model.entry import compile_t_update
def prox():
    nmd.prox([1.0], [1.0], 1.0, nonlinearity="identity", loss="kl")
def fit():
    nmd.decompose(np.eye(5) + 1, 1, "identity", "kl", max_iter=2)
for step in (prox, fit) if {first!r} == "prox" else (fit, prox):
    step()
solve = compile_t_update(make_model("identity", "kl").structure)
print("inline", *("alwaysinline" in code for code in solve.inspect_llvm().values()))
"""
    assert words_of(script, NUMBA_CACHE_DIR=tmp_path) == ["True"]
