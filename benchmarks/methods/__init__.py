"""Methods of other papers, written anew to compare with: for ReLU, for Square and for completion.

Each is called like `nmd.complete`, as ``method(X, rank, observed=None, ...)``, and returns a
`Decomposition`.  `adam` needs PyTorch and `rtrmc` Pymanopt, which `make paper` installs.
"""

from .adam import adam, adam_sweep
from .anmd import anmd
from .bmf import bmf
from .coordinate_descent import coordinate_descent
from .csf import csf
from .ebcd import ebcd
from .em_nmd import em_nmd
from .lmafit import lmafit
from .nmd_3b import nmd_3b
from .rtrmc import rtrmc
from .wlra import wlra

__all__ = [
    "adam",
    "adam_sweep",
    "anmd",
    "bmf",
    "coordinate_descent",
    "csf",
    "ebcd",
    "em_nmd",
    "lmafit",
    "nmd_3b",
    "rtrmc",
    "wlra",
]
