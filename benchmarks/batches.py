"""partial_fit over 6 batches of digits, against one fit to everything.

    python benchmarks/batches.py --write

1500 of the digits arrive in random order, or sorted, so that each batch has digits of its own.
The error is that of 297 other digits in the components that were found.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
from common.pages import table, write_tables

import nmd_lab as nmd

BATCHES = 6
N_TRAINING = 1500
MODELS = {
    "complete, rank 8": nmd.MatrixCompletion(8, alpha=1.0, offsets="columns", random_state=0),
    "decompose, rank 10, ReLU": nmd.NMD(10, random_state=0),
}


def rows_of_table() -> Iterator[list[str]]:
    """Return the errors of each way, for all models and orders."""
    digits = nmd.datasets.digits()
    order = np.random.default_rng(0).permutation(digits.shape[0])
    X, labels = digits.values[order], digits["digit"].values[order]
    training, test = X[:N_TRAINING], X[N_TRAINING:]
    orders = {
        "random": np.arange(N_TRAINING),
        "by digit": np.argsort(labels[:N_TRAINING], kind="stable"),
    }
    for name, model in MODELS.items():
        for arrival, rows in orders.items():
            batches = np.array_split(training[rows], BATCHES)
            fits = [model.fit(training[rows]).decomposition_, model.fit(batches[0]).decomposition_]
            for batch in batches:
                model.partial_fit(batch)
            fits.append(model.decomposition_)
            errors = []
            for fit in fits:
                found = fit.append(test).reconstruct().values[-len(test) :]
                errors.append(f"{np.linalg.norm(found - test) / np.linalg.norm(test):.3f}")
            yield [name, arrival, *errors]


def main() -> None:
    """Print the table, or write it into docs/scale.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into docs/scale.md")
    warnings.simplefilter("ignore", nmd.warnings.NMDWarning)
    head = ["model", "order", "fit to everything", "fit to the first batch", "`partial_fit`"]
    text = table(head, rows_of_table())
    if parser.parse_args().write:
        write_tables("scale", "batches", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
