"""Any argument in plain numbers and words, of which a hash can be taken."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from numbers import Real
from typing import Any

import numpy as np
import xarray as xr

from nmd_lab.data.pictures import Picture
from nmd_lab.model.losses import Loss
from nmd_lab.model.nonlinearities import Nonlinearity
from nmd_lab.solver.penalty import PenaltyRule

from .corruption import Corruption


def plain(value: Any) -> Any:
    """Return a value in numbers and words, equal for equal values, of which a hash can be taken.

    Raises
    ------
    TypeError
        If it has none, for example a function.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Real):
        number = float(value)  # whole numbers in one way, 0 and 0.0 being equal
        return int(number) if number.is_integer() else number
    if isinstance(value, Nonlinearity | Loss):
        return [type(value).__qualname__, *map(plain, value.parameters)]
    if isinstance(value, PenaltyRule):
        return [plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Corruption):
        detail = [] if value.picture is None else [plain(value.picture)]
        return [value.kind, plain(value.level), *detail]
    if isinstance(value, Picture):
        return [plain(value.shape), plain(value.positions)]
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value).name
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, np.ndarray | xr.DataArray):
        array = np.ascontiguousarray(value)
        return ["array", str(array.dtype), hashlib.sha256(array.tobytes()).hexdigest()]
    raise TypeError(
        f"{value!r} cannot be named in a study: use numbers, words, arrays, or nmd_lab's objects."
    )
