"""``import nmd_lab`` is light: nothing optional, no threads."""

from __future__ import annotations

import json
import subprocess
import sys

from waiting import PATIENCE

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


def test_import_in_a_fresh_interpreter():
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=PATIENCE
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert not set(OPTIONAL) & set(found["loaded"])
    assert not found["pandas"]
    assert found["threads"] == 1
    assert not run.stderr
