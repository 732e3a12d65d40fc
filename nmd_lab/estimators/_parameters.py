"""The parameters of an estimator: those of a fit, beside its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from numpy.typing import DTypeLike

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
