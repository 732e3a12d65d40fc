"""``import nmd_lab`` is light: nothing optional, no threads.

Type checkers and editors see the options of a fit and what comes out.
"""

import json
import re

import pytest
from helpers import run_python
from site_modules import PACKAGE, ROOT, text_of

import nmd_lab

OPTIONAL = ["matplotlib", "ipywidgets", "IPython", "dask", "distributed", "torch", "h5netcdf",
            "h5py", "jupyterlab"]  # fmt: skip
OF_FRAMES = {"narwhals", "polars"}
OF_IMPORTS = """
import json, sys, threading
import numpy, pandas, xarray
before = set(sys.modules)
import nmd_lab
found = {
    "loaded": sorted({name.split(".")[0] for name in sys.modules}),
    "pandas": sorted(n for n in set(sys.modules) - before if n.split(".")[0] == "pandas"),
    "threads": threading.active_count(),
}
import nmd_lab.api.fits, nmd_lab.engines.admm
found |= {"shown": dir(nmd_lab), "public": nmd_lab.__all__, "version": nmd_lab.__version__}
nmd_lab.complete(pandas.DataFrame(numpy.eye(4)), 1, alpha=0.1, max_iter=2, tol=0)
print(json.dumps(found | {"with a frame": list(sys.modules)}))
"""


def run_in_a_fresh_interpreter(script):
    run = run_python("-c", script)
    assert not run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_import_in_a_fresh_interpreter():
    """It is light, its names are the public ones, and a DataFrame of pandas loads no other."""
    found = run_in_a_fresh_interpreter(OF_IMPORTS)
    assert not (set(OPTIONAL) | OF_FRAMES) & set(found["loaded"])
    assert not found["pandas"]
    assert found["threads"] == 1
    assert {name for name in found["shown"] if not name.startswith("__")} == set(found["public"])
    assert found["version"]
    assert not OF_FRAMES & set(found["with a frame"])


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


SCRIPT = """
import numpy as np
import nmd_lab as nmd

X = np.eye(4)
nmd.decompose(X, 2, alpha=1.0, offsets="both", callback=lambda state: state.iteration > 3)
nmd.decompose(X, 2, alfa=1.0)
nmd.complete(X, 2, offsets="lines")
nmd.NMD(n_components=2, max_iters=3)
reveal_type(nmd.complete(X, 2))
"""


@pytest.mark.exhaustive
def test_misspelt_options_are_errors(tmp_path):
    mypy = pytest.importorskip("mypy.api")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    configuration = ROOT / "pyproject.toml"
    out, _, _ = mypy.run(["--config-file", str(configuration), str(script)])
    errors = dict(re.findall(r"script\.py:(\d+): error: (.*)", out))
    assert set(errors) == {"7", "8", "9"}, out
    assert 'Unexpected keyword argument "alfa" for "decompose"' in errors["7"]
    assert 'Argument "offsets" to "complete" has incompatible type' in errors["8"]
    assert 'Unexpected keyword argument "max_iters" for "NMD"' in errors["9"]
    assert 'Revealed type is "nmd_lab.result.decomposition.Decomposition"' in out
