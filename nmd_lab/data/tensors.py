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
    """Return a tensor as an array, which shares its memory where it can, and others as they are.

    Parameters
    ----------
    X : object
        A sparse tensor becomes a CSR array, a dense one an ndarray.
    """
    if not is_tensor(X):
        return X
    X = X.detach().cpu()
    if str(X.layout) == "torch.strided":
        return X.numpy()
    from scipy.sparse import csr_array

    compressed = X.coalesce().to_sparse_csr() if str(X.layout) == "torch.sparse_coo" else X
    if str(compressed.layout) != "torch.sparse_csr":
        compressed = compressed.to_sparse_csr()
    parts = (compressed.values(), compressed.col_indices(), compressed.crow_indices())
    return csr_array(tuple(part.numpy() for part in parts), shape=tuple(X.shape))
