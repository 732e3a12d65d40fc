"""The package mice of R, by files."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from .data import Encoding, codes, kind_of
from .methods import from_draws
from .scores import Answer

PMM_COPIES, CART_COPIES, ROUNDS, MOST_SECONDS = 20, 10, 5, 1200
SCRIPT = Path(__file__).with_name("mice.R")


def mice_pmm(seen: pd.DataFrame, seed: int) -> Answer:
    """Answer with predictive mean matching."""
    return _mice(seen, seed, "pmm", PMM_COPIES)


def mice_cart(seen: pd.DataFrame, seed: int) -> Answer:
    """Answer with classification and regression trees."""
    return _mice(seen, seed, "cart", CART_COPIES)


def _mice(seen: pd.DataFrame, seed: int, method: str, copies: int) -> Answer:
    """Answer with copies of mice."""
    encoding = Encoding(seen)
    draws = [encoding.of_codes(copy) for copy in completed(seen, seed, method, copies)]
    return from_draws(seen, np.stack(draws))


def completed(seen: pd.DataFrame, seed: int, method: str, copies: int) -> list[np.ndarray]:
    """Return copies of a table that mice completes, as numbers and positions of levels.

    Raises ``RuntimeError`` where a copy has missing cells, as for columns that mice leaves out.
    """
    found, names = [], [f"x{k}" for k in range(seen.shape[1])]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        values = np.column_stack([codes(seen[name]) for name in seen])
        pd.DataFrame(values, columns=names).to_csv(folder / "seen.csv", index=False)
        kinds = pd.DataFrame({"kind": [kind_of(seen[name]) for name in seen]})
        kinds.to_csv(folder / "kinds.csv", index=False)
        numbers = [str(each) for each in (copies, ROUNDS, seed + 1)]
        subprocess.run(
            ["Rscript", str(SCRIPT), str(folder), method, *numbers],
            check=True, capture_output=True, timeout=MOST_SECONDS,
        )  # fmt: skip
        for k in range(1, copies + 1):
            copy = pd.read_csv(folder / f"copy{k}.csv").to_numpy(dtype=float)
            if np.isnan(copy).any():
                raise RuntimeError("mice leaves cells missing")
            found.append(copy)
    return found
