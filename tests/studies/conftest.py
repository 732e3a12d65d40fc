"""Data of most studies."""

import pytest
import xarray as xr

import nmd_lab as nmd


@pytest.fixture(scope="session")
def digits() -> xr.DataArray:
    return nmd.datasets.digits(30)
