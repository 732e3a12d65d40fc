"""The parameters of an estimator, and its columns of several kinds as numbers in units."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from nmd_lab.data.entries import FloatArray
from nmd_lab.data.labels import is_frame
from nmd_lab.data.typed_table import TypedTable, kind_of_objects, table_of
from nmd_lab.model.model import Model
from nmd_lab.solver.columns import LossArgument, NonlinearityArgument
from nmd_lab.solver.options import FitOptions

OF_THE_DATA = ("X", "rank", "observed", "weights", "at_most", "at_least", "upper", "sample_dims")
"""Arguments of a fit that are no parameters of an estimator; `rank` is its `n_components`."""

Function = TypeVar("Function", bound=Callable[..., Any])


class EstimatorOptions(FitOptions, total=False):
    """The parameters that an estimator has from a fit, for editors and type checkers."""

    nonlinearity: NonlinearityArgument | None
    loss: LossArgument
    dtype: DTypeLike | None


def with_parameters_of(function: Callable[..., Any]) -> Callable[[Function], Function]:
    """Return a decorator for `__init__`, which takes its own parameters and those of a fit."""

    def decorate(init: Function) -> Function:
        of_init = inspect.signature(init).parameters.values()
        first = [p for p in of_init if p.kind is p.POSITIONAL_OR_KEYWORD]
        of_fit = inspect.signature(function).parameters.values()
        further = [p.replace(kind=p.KEYWORD_ONLY) for p in of_fit if p.name not in OF_THE_DATA]
        further += [p for p in of_init if p.kind is p.KEYWORD_ONLY]
        signature = inspect.Signature([*first, *further])

        @wraps(init)
        def set_parameters(self: Any, *args: Any, **parameters: Any) -> None:
            bound = signature.bind(self, *args, **parameters)
            bound.apply_defaults()
            for name, value in list(bound.arguments.items())[1:]:
                setattr(self, name, value)  # without any check, as scikit-learn asks

        set_parameters.__signature__ = signature  # type: ignore[attr-defined]
        return set_parameters  # type: ignore[return-value]

    return decorate


def typed_columns(X: Any) -> TypedTable | None:
    """Return the types of the columns; None if all hold numbers, and for other data."""
    if not is_frame(X) or not any(_has_classes(column) for _, column in X.items()):
        return None
    return table_of(X)


def _has_classes(column: Any) -> bool:
    """Return whether a column holds booleans, levels, categories or text with few values."""
    is_class = hasattr(column.dtype, "categories") or getattr(column.dtype, "kind", "O") == "b"
    return is_class or kind_of_objects(column) in ("text", "booleans")


def as_numbers(table: TypedTable | None, X: Any) -> Any:
    """Return a DataFrame with the columns of the matrix."""
    if table is None:
        refuse_classes(X)
        return X
    names = [column.name for column in table.columns]
    if list(X.columns) != names:
        raise ValueError(f"X has the columns {list(X.columns)}: give those of the fit, {names}.")
    return table.columns_of(X).encode(X)


def refuse_classes(X: Any) -> None:
    """Raise TypeError if a column of a DataFrame holds levels or categories."""
    names = [name for name, dtype in X.dtypes.items() if hasattr(dtype, "categories")]
    if names:
        raise TypeError(
            f"X has categories in column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}, "
            "which the fit has not, or partial_fit does not take: use fit(X)."
        )


def in_units(kinds: Model | None, errors: FloatArray) -> FloatArray:
    """Return errors of all columns in the units of the score."""
    return errors if kinds is None else kinds.in_units(errors, 0, np.arange(errors.shape[1]))


def constants_of(kinds: Model | None, n: int) -> FloatArray:
    """Return the prediction of the score 0: the best constants of several kinds, otherwise 0."""
    return np.zeros(n) if kinds is None else kinds.expected(np.zeros(n), 0, np.arange(n))
