"""Tensors of PyTorch as input: the NumPy or SciPy arrays with the same entries."""

from __future__ import annotations

import sys
from typing import Any


def is_tensor(X: Any) -> bool:
    """Return whether an input is a tensor of PyTorch, without importing it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def device_of_tensor(X: Any) -> str | None:
    """Return the name of the device on which a tensor lies; None for any other input."""
    return str(X.device) if is_tensor(X) else None


def without_tensors(X: Any) -> Any:
    """Return a tensor as an array, which shares its memory where it can, and others as they are."""
    if not is_tensor(X):
        return X
    try:
        X = X.detach().cpu()
        X = X.float() if str(X.dtype) == "torch.bfloat16" else X  # NumPy has no such type
        return X.numpy() if str(X.layout) == "torch.strided" else _csr(X)
    except (NotImplementedError, RuntimeError, TypeError) as error:
        raise TypeError(
            f"a tensor of {X.dtype} on {X.device} has no array of its entries: convert it to "
            "torch.float32 on a device with data."
        ) from error


def _csr(X: Any) -> Any:
    """Return a sparse tensor as a CSR array."""
    from scipy.sparse import csr_array

    compressed = X.to_sparse_csr()  # entries that are there twice are added
    parts = (compressed.values(), compressed.col_indices(), compressed.crow_indices())
    return csr_array(tuple(array.numpy() for array in parts), shape=tuple(X.shape))
