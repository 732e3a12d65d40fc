"""The interface of a device: the memory of T, U and X, and the operations on blocks of them.

The factors W and H stay NumPy arrays, and so does all that a step does with them.  A pass over the
data puts W and H onto the device, and takes sums and products with r columns back.  The sweeps and
the envelopes are therefore the same for every device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from numpy.typing import DTypeLike, NDArray

from nmd_lab.data.entries import EntryReader, FloatArray, WeightReader
from nmd_lab.model.model import Model


class Device(Protocol):
    """A device.  Its arrays are indexed, added and multiplied by the usual operators.

    Attributes
    ----------
    name : str
        Name of the device, as an argument `device` gives it; "" for NumPy arrays.
    factor : int
        Size of a block, in units of one that stays in the cache of a processor.
    """

    name: str
    factor: int

    def put(self, array: NDArray[Any]) -> Any:
        """Return an array on the device."""

    def read(self, reader: EntryReader | WeightReader, size: int) -> Any:
        """Return what reads entries on the device, given their number."""

    def get(self, array: Any) -> FloatArray:
        """Return an array of the device as a NumPy array."""

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return a new array on the device, with any numbers."""

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """Return a new array of zeros on the device."""

    def multiply(self, left: Any, right: Any, out: Any) -> Any:
        """Put the product of two matrices into `out`, and return it."""

    def fill(self, out: Any, values: Any, where: Any) -> None:
        """Put values into `out` where a condition holds."""

    def threads(self, threads: int) -> int:
        """Return the number of shares of the rows that are worked on at a time."""

    def update_pass(self, model: Model, kind: str) -> Callable[..., tuple[float, ...]]:
        """Return the T- and U-update of a block (`compiled_passes.update_kernel`)."""

    def envelope_pass(self, model: Model, kind: str) -> Callable[..., tuple[float, ...]]:
        """Return the Moreau envelope of a block (`compiled_passes.envelope_kernel`)."""

    def curvature_pass(self, model: Model, kind: str) -> Callable[..., None]:
        """Return the curvature of a block (`compiled_passes.curvature_kernel`)."""

    def zero_pass(self, model: Model, dtype: Any) -> Callable[..., tuple[float, ...]]:
        """Return the envelope of a tile of zeros (`compiled_zeros.ZeroLoss`)."""
