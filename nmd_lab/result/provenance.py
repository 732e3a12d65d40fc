"""Provenance of a result: a hash of its data and the versions of its software."""

from __future__ import annotations

import platform
from typing import Any

import numba
import numpy as np
import xarray as xr

from nmd_lab._version import __version__
from nmd_lab.data.base import Observations
from nmd_lab.data.fingerprint import fingerprint


def provenance(observations: Observations) -> dict[str, Any]:
    """Return a description of data and software, in numbers and text."""
    return {
        "shape": list(observations.shape),
        "n_observed": observations.n_observed,
        "dtype": str(observations.dtype),
        "observations_hash": fingerprint(observations),
        "versions": {
            "nmd_lab": __version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
            "xarray": xr.__version__,
            "python": platform.python_version(),
        },
    }
