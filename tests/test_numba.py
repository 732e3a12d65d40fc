"""Compiled kernels: what their names depend on, and where they are kept."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config

import nmd_lab as nmd
from nmd_lab._runtime.compiler import compile_kernel, compile_scalar, source_hash

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
plain = nmd.ADMM(refine=False, homotopy=False, polish=False)
nmd.decompose(X, 2, "relu", "l1", max_iter=3, init="random", solver=plain, random_state=0)
print("compiled", *sorted(name for name in compiled if name.startswith("pass_relu_l1")))
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
    command = [sys.executable, "-W", "ignore", "-c", script]
    options = {"env": environment, "cwd": variables.get("PYTHONPATH"), "capture_output": True}
    run = subprocess.run(command, text=True, **options)
    assert run.returncode == 0, run.stderr
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
    (kept,) = {path.parent for path in copied.rglob("*pass_relu_l1*.nbi")}
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
