"""`describe`: what data say of a fit before anything is decided."""

from __future__ import annotations

from typing import Any, NamedTuple

from nmd_lab._checks import check_rank, check_size, is_auto
from nmd_lab.data.base import Observations
from nmd_lab.data.labels import is_frame
from nmd_lab.data.units_apart import is_small_table, units_of_columns
from nmd_lab.model.fitted_values import NO_OFFSETS
from nmd_lab.model.kind import LimitModel
from nmd_lab.model.losses import Frobenius, Loss
from nmd_lab.model.model import Model, make_model

from .bounds import bounded
from .columns import is_mixed, mixed_model
from .formulation import observed_only
from .guard import refuse_wrong_parts
from .initialization import given_start
from .limit_noise import limit_model
from .options import Options
from .selection.candidates import suitable_nonlinearities


class Facts(NamedTuple):
    """What data say of a fit.

    Attributes
    ----------
    model : Model
        Model with what the data decide of it; stand-ins for what is to be chosen.
    nonlinearity, loss : Nonlinearity, Loss or Mixed, or None
        Those of the model; None if they are to be chosen.
    rank : int or None
        Number of components; None if it is to be chosen.
    limits : LimitModel
        What is known of entries with limits; sd = NaN if it is to be estimated.
    size : float
        Largest magnitude.
    observed_only : bool
        Whether T = WH is imposed on the observed entries alone.
    """

    model: Model
    nonlinearity: Any
    loss: Any
    rank: int | None
    limits: LimitModel
    size: float
    observed_only: bool

    @property
    def kinds(self) -> Model | None:
        """The model, if it has several kinds, which are never chosen."""
        return None if self.model.single else self.model

    def is_open(self, options: Options) -> bool:
        """Return whether something is to be chosen by held-out entries."""
        found = self.nonlinearity, self.loss, self.rank
        return is_auto(options.alpha) or any(each is None for each in found)


def describe(
    X: Any,
    observations: Observations,
    rank: int | None,
    nonlinearity: Any,
    loss: Any,
    options: Options,
) -> Facts:
    """Return what the data say of a fit; raise an error for what does not suit them."""
    if rank is not None:
        rank = check_rank(rank, observations.shape)
        if not isinstance(options.init, str):
            given_start(observations, rank, options.init, NO_OFFSETS)  # checks it
    model = stand_in(nonlinearity, loss)
    squares = not (is_mixed(loss) or is_auto(loss)) and type(model.loss) is Frobenius
    if is_frame(X) and is_auto(nonlinearity) and squares and options.compute.device is None:
        loss = {} if has_units(observations) else loss  # {}: each column in units of its own
    if is_mixed(nonlinearity) or is_mixed(loss) or observations.labels.table is not None:
        model = mixed_model(nonlinearity, loss, observations)
    low, high = observations.range()
    model.check_data(low, high)
    f, d = model.shown
    if (kind := model.single) is not None:
        documented = observations.labels.valid_range
        f = None if is_auto(nonlinearity) else bounded(nonlinearity, (low, high), documented)
        d = kind.loss
        if type(d).for_data is not Loss.for_data:  # it takes arrays of the size of X
            d = d.for_data(*observations.observed())
        if f is not None and f.learns:
            f = f.for_data(d.target(observations.observed()[0]), centred=True)
        model = make_model(f or kind.nonlinearity, d)
        d = None if is_auto(loss) else d
    size = check_size("X", max(-low, high), observations.dtype)
    refuse_wrong_parts(model, observations)
    limits = limit_model(observations, options.solver.limit_noise)
    return Facts(model, f, d, rank, limits, size, observed_only(observations, options.solver.split))


def has_units(observations: Observations) -> bool:
    """Return whether the columns of a DataFrame of numbers have units of their own.

    They have, but where many zeros or values at both ends suggest that all have one unit, in which
    ReLU or MinMax may suit them, or where there are limits, whose noise several kinds do not have;
    there only if the units are apart.
    """
    if not is_small_table(observations):
        return False
    plain = observations.limits is None and len(suitable_nonlinearities(observations)) == 1
    return plain or units_of_columns(observations) is not None


def stand_in(nonlinearity: Any, loss: Any) -> Model:
    """Return a model of one kind, with stand-ins for what data or trials decide."""
    f = "identity" if is_mixed(nonlinearity) or is_auto(nonlinearity) else nonlinearity
    return make_model(f, "frobenius" if is_mixed(loss) or is_auto(loss) else loss)
