"""`show_versions`: what a report of a problem should say of the machine and its libraries."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from ._version import __version__

NEEDED = (
    *("numpy", "scipy", "numba", "xarray", "pandas", "scikit-learn"),
    *("joblib", "threadpoolctl", "psutil", "tqdm", "cyclopts", "docstring_parser"),
)
"""Libraries that the package needs; a test compares them with pyproject.toml."""

OPTIONAL = (
    *("matplotlib", "pillow", "h5netcdf", "h5py", "pooch", "xlrd", "pyarrow"),
    *("jupyterlab", "ipywidgets", "anywidget", "voila", "dask", "distributed", "torch", "pymanopt"),
)
"""Libraries of the extras, but for those that only developers need."""

VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that set numbers of threads."""


def show_versions() -> None:
    """Print the versions of Python, this package and its libraries, and what sets threads.

    Examples
    --------
    >>> import nmd_lab as nmd
    >>> nmd.show_versions()  # doctest: +ELLIPSIS
    nmd_lab ...
    """
    lines = {
        "nmd_lab": __version__,
        "python": f"{platform.python_version()} ({sys.implementation.name})",
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **{name: _version_of(name) or "missing" for name in NEEDED},
        **{name: _version_of(name) or "not installed (optional)" for name in OPTIONAL},
        **{name: os.environ.get(name, "not set") for name in VARIABLES},
        "BLAS": ", ".join(_blas()) or "not known",
    }
    width = max(map(len, lines)) + 1
    print("\n".join(f"{name:{width}}{text}" for name, text in lines.items()))


def _version_of(name: str) -> str | None:
    """Return the installed version of a library, without importing it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _blas() -> list[str]:
    """Return the BLAS libraries that NumPy and SciPy have loaded."""
    import numpy as np  # noqa: F401 - it loads its own
    from threadpoolctl import threadpool_info

    return [
        f"{info['internal_api']} {info['version']} ({info['num_threads']} threads)"
        for info in threadpool_info()
        if info["user_api"] == "blas"
    ]
