"""What the README shows runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_examples_run_and_give_the_printed_error():
    mpl.use("Agg")
    rng = np.random.default_rng(0)
    names = np.array(["Casablanca", *(f"film {i}" for i in range(29))])
    users = np.array(["ann", *(f"user {i}" for i in range(39))])
    i, j = np.nonzero(rng.random((40, 30)) < 0.5)
    i, j = np.append(i, 0), np.append(j, 0)
    frame = pd.DataFrame({"user": users[i], "item": names[j], "rating": rng.integers(1, 6, i.size)})
    space = {"frame": frame.drop_duplicates(["user", "item"]).astype({"rating": float})}
    images, ratings, estimators = blocks("python")
    exec(images, space)
    printed = float(re.search(r"relative_error\s+# ([0-9.]+)", images).group(1))
    assert abs(space["fit"].relative_error - printed) < 1e-3
    hidden = ~space["seen"]
    errors = np.abs(space["filled"] - space["photograph"]).values[hidden]
    assert np.sqrt(np.mean(errors**2)) < 0.12
    exec(ratings, space)
    assert space["fit"].top(0, k=5, exclude=space["ratings"]).size == 5
    exec(estimators, space)
    assert space["codes"].shape == (1797, 16)
    holes = np.isnan(space["pictures"])
    assert not np.isnan(space["whole"]).any()
    np.testing.assert_array_equal(space["whole"][~holes], space["pictures"][~holes])


def test_the_study_is_the_one_of_the_examples():
    (printed,) = blocks("toml")
    shipped = (ROOT / "examples" / "study.toml").read_text(encoding="utf-8")
    assert printed.strip() in shipped
