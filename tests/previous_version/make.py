"""Write the files of this folder: results as an earlier version of the package wrote them.

They were made at commit ca53d83 (version 0.1.0), before the modules moved into packages, and are
kept so that the tests can show that later versions still read them.  Made anew by a later version
they would prove nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import nmd_lab as nmd

FOLDER = Path(__file__).parent if len(sys.argv) < 2 else Path(sys.argv[1])


def fits() -> dict[str, nmd.Decomposition]:
    """Return fits with all that a file can hold: labels, offsets, held-out entries, a baseline."""
    digits = nmd.datasets.digits(40)
    table = pd.DataFrame(
        {"user": list("aabbccdd"), "item": [1, 2, 1, 3, 2, 3, 1, 2], "rating": range(1, 9)}
    )
    levels = pd.MultiIndex.from_product([["x", "y"], [1, 2, 3]], names=["plot", "year"])
    frame = pd.DataFrame(np.arange(24.0).reshape(6, 4) % 7, levels, pd.Index(list("pqrs")))
    return {
        "relu": nmd.decompose(digits, 3, "relu", max_iter=20, random_state=0),
        "ratings": nmd.complete(
            nmd.observations_from_table(table), 1, offsets="both", alpha=0.5, max_iter=10,
            random_state=0,
        ),
        "levels": nmd.decompose(frame, 2, nmd.MinMax(0, 6), "l1", n_init=2, random_state=0),
        "stopped": nmd.complete(digits, 2, validation=0.1, patience=2, random_state=0),
        "baseline": nmd.baselines.lmafit(digits, 2, max_iter=5),
        "direct": nmd.baselines.truncated_svd(digits, 2),
    }  # fmt: skip


def study(max_iter: int = 15) -> nmd.Study:
    """Return the study whose journal stands here, half done."""
    return nmd.Study(
        nmd.datasets.digits(40), rank=[2, 3], method=["admm", "svd", "mean_fill"], alpha=[0, 0.1],
        nonlinearity=["identity", "minmax"], missing=[0.2, 0.5], noise={"gaussian": 0.1},
        n_splits=2, max_iter=max_iter, tol=1e-10,  # the default then
    )  # fmt: skip


def main() -> None:
    expected = {}
    for name, fit in fits().items():
        fit.save(FOLDER / f"{name}.nc")
        expected[f"{name}/model"] = fit.reconstruct().values
        expected[f"{name}/objective"] = fit.history["objective"].values
        expected[f"{name}/stop_reason"] = np.array(str(fit.stop_reason))
    np.savez_compressed(FOLDER / "expected.npz", **expected)
    results = study().run(FOLDER / "study.nc", progress=False)
    journal = FOLDER / "study.nc.journal"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[: 1 + len(lines) // 2]) + lines[-1][:40])
    np.savez_compressed(FOLDER / "study_scores.npz", held_out_rmse=results["held_out_rmse"].values)
    print(json.dumps(lines[0])[:200], len(lines))


if __name__ == "__main__":
    main()
