"""What memory is left: free memory, limits of the process, and control groups."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from nmd_lab._memory import HEAP, LOADED_LATER, STACK, free_addresses, free_memory

MIB = 1 << 20


def system(tmp_path, cgroup="", available=8000, **files):
    """A folder with `proc` and `sys`; names of files have __ for / and 8 for a dot."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(
        f"MemTotal: 9999999 kB\nMemAvailable: {available * 1024} kB\n"
    )
    (tmp_path / "proc/self/cgroup").write_text(cgroup)
    for name, value in files.items():
        path = tmp_path / "sys/fs/cgroup" / name.replace("__", "/").replace("8", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return tmp_path


def test_without_limits_it_is_the_available_memory(tmp_path):
    assert free_memory(system(tmp_path)) == 8000 * MIB


def test_version_2_counts_the_group_and_all_around_it(tmp_path):
    root = system(
        tmp_path,
        "0::/user/job\n",
        memory8max="max",
        user__memory8max=500 * MIB,
        user__memory8current=200 * MIB,
        user__job__memory8max=900 * MIB,
        user__job__memory8current=100 * MIB,
    )
    assert free_memory(root) == 300 * MIB


def test_file_cache_that_can_be_given_back_counts_as_free(tmp_path):
    root = system(
        tmp_path,
        "0::/job\n",
        job__memory8max=500 * MIB,
        job__memory8current=450 * MIB,
        job__memory8stat=f"anon 1\ninactive_file {100 * MIB}",
    )
    assert free_memory(root) == 150 * MIB


def test_version_1_and_the_path_of_another_namespace(tmp_path):
    root = system(
        tmp_path,
        "9:cpu,cpuacct:/docker/abc\n5:memory:/docker/abc\n",
        memory__memory8limit_in_bytes=700 * MIB,
        memory__memory8usage_in_bytes=600 * MIB,
    )
    assert free_memory(root) == 100 * MIB


def test_version_1_writes_a_huge_number_for_no_limit(tmp_path):
    root = system(
        tmp_path,
        "5:memory:/\n",
        memory__memory8limit_in_bytes=9223372036854771712,
        memory__memory8usage_in_bytes=5,
    )
    assert free_memory(root) == 8000 * MIB


def test_never_negative(tmp_path):
    root = system(tmp_path, "0::/\n", memory8max=5, memory8current=MIB)
    assert free_memory(root) == 0


def test_without_a_limit_addresses_are_not_counted(tmp_path, monkeypatch):
    limits(monkeypatch, None)
    assert free_addresses(4, system(tmp_path)) is None


def test_threads_take_addresses_unless_they_are_already_reserved(tmp_path, monkeypatch):
    root = system(tmp_path)
    (root / "proc/self/status").write_text(f"VmSize: {500 * 1024} kB\n")
    limits(monkeypatch, 3000 * MIB)
    alone = free_addresses(0, root)
    assert alone == 2500 * MIB - LOADED_LATER
    assert alone - free_addresses(4, root) == 4 * (HEAP + STACK)
    (root / "proc/self/maps").write_text(
        "7f0000021000-7f0004000000 ---p 00000000 00:00 0 \n"
        "7f0004000000-7f0008000000 rw-p 00000000 00:00 0 \n"
        "7f0010000000-7f0014000000 ---p 00001000 08:01 99 /usr/lib/libc.so\n"
    )
    assert alone - free_addresses(4, root) == 4 * (HEAP + STACK) - (0x4000000 - 0x21000)
    assert alone - free_addresses(1, root) == STACK + 0x21000


def limits(monkeypatch, size):
    resource = pytest.importorskip("resource")  # not on Windows
    size = resource.RLIM_INFINITY if size is None else size
    monkeypatch.setattr(resource, "getrlimit", lambda _: (size, size))


CHILD = """
import resource, numpy as np, nmd_lab as nmd
nmd.decompose(np.eye(5, dtype=np.float32), 1, "relu", threads=1, max_iter=20)  # load everything
X = np.ones((5000, 5000), dtype=np.float32)
from nmd_lab._memory import _fields, Path
name = "{limit}"
used = _fields(Path("/proc/self/status"))["VmSize" if name == "RLIMIT_AS" else "VmData"]
resource.setrlimit(getattr(resource, name), (used + 150 * 2**20,) * 2)
try:
    nmd.decompose(X, 3, "relu", threads=1)
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_fit_above_a_limit_of_the_process_is_refused_in_one_sentence(limit):
    """T, U and the array of a refinement are 286 MiB, the limit leaves 150."""
    run = subprocess.run(
        [sys.executable, "-c", CHILD.format(limit=limit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "GiB are free: about" in run.stdout, run.stderr
    assert run.stdout.count("\n") == 1


THREADS = """
import resource, numpy as np, nmd_lab as nmd
X = np.ones((3000, 3000), dtype=np.float32)
nmd.decompose
from nmd_lab._memory import _fields, Path
used = _fields(Path("/proc/self/status"))["VmSize"]
resource.setrlimit(resource.RLIMIT_AS, (used + 300 * 2**20,) * 2)
try:
    nmd.decompose(X, 3, "relu", threads=4)
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_a_fit_whose_threads_do_not_fit_is_refused_before_it_begins():
    """T, U and the rest are 110 MiB of 300, but threads and code take addresses, too."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "4", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", THREADS],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert "rows of 3000 columns would fit" in run.stdout, run.stderr
