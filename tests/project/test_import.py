"""``import nmd_lab`` is light: nothing optional, no threads."""

import json
import subprocess
import sys

import pytest
from site_modules import PACKAGE, text_of
from waiting import PATIENCE

import nmd_lab

OPTIONAL = ["matplotlib", "ipywidgets", "IPython", "dask", "distributed", "torch", "h5netcdf",
            "h5py", "jupyterlab"]  # fmt: skip
SCRIPT = """
import json, sys, threading
import xarray
before = set(sys.modules)
import nmd_lab
print(json.dumps({
    "loaded": sorted({name.split(".")[0] for name in sys.modules}),
    "pandas": sorted(n for n in set(sys.modules) - before if n.split(".")[0] == "pandas"),
    "threads": threading.active_count(),
}))
"""


def run_in_a_fresh_interpreter(script):
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    assert not run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_import_in_a_fresh_interpreter():
    found = run_in_a_fresh_interpreter(SCRIPT)
    assert not set(OPTIONAL) & set(found["loaded"])
    assert not found["pandas"]
    assert found["threads"] == 1


def test_dir_shows_the_public_names_and_those_of_every_module():
    script = """
import json, nmd_lab, nmd_lab.api.fits, nmd_lab.engines.admm
print(json.dumps([dir(nmd_lab), nmd_lab.__all__, nmd_lab.__version__]))
"""
    shown, public, version = run_in_a_fresh_interpreter(script)
    assert {name for name in shown if not name.startswith("__")} == set(public)
    assert version


def test_a_name_that_is_not_there_is_an_error():
    with pytest.raises(AttributeError, match="has no attribute 'losses_of_life'"):
        nmd_lab.losses_of_life  # noqa: B018 - the attribute is asked for


def test_the_result_loads_nothing_of_the_solver():
    script = """
import json, sys, nmd_lab.result.decomposition, nmd_lab.result.compare
print(json.dumps([name for name in sys.modules if name.startswith("nmd_lab.")]))
"""
    loaded = run_in_a_fresh_interpreter(script)
    assert "nmd_lab.result.decomposition" in loaded
    of_fits = tuple(f"nmd_lab.{each}" for each in ("kernels", "engines", "fit", "sampler", "api"))
    assert not [name for name in loaded if name.startswith(of_fits)]


def test_no_message_recommends_an_index_where_the_package_is_not():
    """A message names the missing library; that of the explorers is still to be changed."""
    found = {each.parent.name for each in PACKAGE.rglob("*.py") if "'nmd-lab[" in text_of(each)}
    assert found <= {"widgets"}
