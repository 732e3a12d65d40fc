"""The device of a fit, by its name."""

from __future__ import annotations

from functools import cache

from nmd_lab.model.model import Model

from .base import Device
from .host import HOST


@cache
def device_of(name: str | None) -> Device:
    """Return the device of a name; that of NumPy arrays for None."""
    if name is None:
        return HOST
    try:
        import torch

        from .tensors import TensorDevice
    except ImportError as error:
        remedy = "pip install 'nmd-lab[torch]', or leave device out."
        raise ImportError(f"device={name!r} needs PyTorch: {remedy}") from error
    try:
        torch.zeros(1, dtype=torch.float64, device=name)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise ValueError(
            f"device={name!r} is not there, or has no double precision: give 'cpu', 'cuda' or "
            "another device of PyTorch, or leave device out."
        ) from error
    return TensorDevice(name)


def refuse_unsupported(device: Device, model: Model, *, observed_only: bool) -> None:
    """Raise ValueError if a device has no passes for such a problem."""
    if device is HOST:
        return
    from .tensor_model import supports

    if not supports(model):
        f, loss = model.shown
        why = f"nonlinearity={f!r} and loss={loss!r}, which have no form for tensors"
    elif observed_only:
        why = "split='observed', the default below a third of observed entries"
    else:
        return
    raise ValueError(
        f"device={device.name!r} does not go with {why}: leave device out, and "
        "give an array in the place of a tensor."
    )
