"""Compiled kernels: what their names depend on, and where they are kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nmd_lab as nmd
from nmd_lab._numba import compile_scalar, is_ours, source_hash

PACKAGE = Path(nmd.__file__).parent

FIT = """
import numpy as np, nmd_lab as nmd
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass
event.register("numba:compile", Listener())
X = np.maximum(np.random.default_rng(0).normal(size=(12, 9)), 0)
nmd.decompose(X, 2, "relu", "l1", max_iter=3, random_state=0)
print("compiled", *sorted(name for name in compiled if name.startswith("update_relu_l1")))
"""


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, without compiled kernels."""
    shutil.copytree(PACKAGE, tmp_path / "nmd_lab", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def compiled_kernels(folder):
    """Return the names of the update kernels that a fit in a new process compiles."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    environment.pop("NUMBA_CACHE_DIR", None)
    run = subprocess.run(
        [sys.executable, "-c", FIT], env=environment, cwd=folder, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()[1:]


def source_file(folder, function):
    return folder / "nmd_lab" / Path(function.__code__.co_filename).relative_to(PACKAGE)


def test_a_built_in_pair_is_kept_on_disk_and_a_changed_source_compiles_it_anew(copied):
    first = compiled_kernels(copied)
    assert len(first) == 1
    assert compiled_kernels(copied) == []  # read from disk
    changed = source_file(copied, nmd.L1.proximal)  # captured by the kernel, in another file
    changed.write_text(changed.read_text() + "\n# another line\n")
    again = compiled_kernels(copied)
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


def test_is_ours_does_not_depend_on_the_folder_of_a_class():
    class Mine(nmd.L1):
        pass

    assert is_ours(nmd.ReLU, nmd.L1)
    assert not is_ours(nmd.ReLU, Mine)
