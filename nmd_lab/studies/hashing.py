"""Arguments as plain values: numbers, text and lists of them, which JSON and a hash can take."""

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
from nmd_lab.solver.constraints.base import FactorConstraint
from nmd_lab.solver.penalty import PenaltyRule

from .corruption import Corruption


def plain_value(value: Any) -> Any:
    """Return an argument in numbers, text, lists and dicts; equal arguments give equal results.

    Raises
    ------
    TypeError
        If the value has no such form, for example a function.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Real):
        number = float(value)  # 0 and 0.0 are equal, so both become the integer
        return int(number) if number.is_integer() else number
    if isinstance(value, Nonlinearity | Loss):
        return [type(value).__qualname__, *map(plain_value, value.settings)]
    if isinstance(value, FactorConstraint):
        return [type(value).__qualname__, *map(plain_value, value.parameters)]
    if isinstance(value, PenaltyRule):
        return [plain_value(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Corruption):
        picture = [] if value.picture is None else [plain_value(value.picture)]
        return [value.kind, plain_value(value.level), *picture]
    if isinstance(value, Picture):
        return [plain_value(value.shape), plain_value(value.positions)]
    if isinstance(value, Mapping):
        return {str(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain_value(item) for item in value]
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value).name
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, np.ndarray | xr.DataArray):
        array = np.ascontiguousarray(value)
        return ["array", str(array.dtype), hashlib.sha256(array.tobytes()).hexdigest()]
    raise TypeError(
        f"{value!r} cannot be kept in a study: use numbers, text, arrays or nmd_lab's objects."
    )
