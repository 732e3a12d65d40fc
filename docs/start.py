"""Write table and picture of the start page and the README: results of scripts of the gallery.

    python docs/start.py

takes half a minute.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
GALLERY = HERE.parent / "examples" / "gallery"
MARK = "<!-- table: written by docs/start.py -->\n"
END = "\n<!-- end of the table -->\n"

HEAD = "| task | measure | without f, or usual | nmd_lab |\n| --- | --- | --- | --- |\n"
ROWS: dict[str, Any] = {
    "plot_zeros": lambda g: (
        "[Digits by 16 components](gallery/plot_zeros)", "relative error",
        f"{g['errors']['SVD'][2]:.3f} SVD, {g['errors']['NMF'][2]:.3f} NMF",
        f"**{g['errors']['ReLU'][2]:.3f}** ReLU",
    ),
    "plot_clipped_picture": lambda g: (
        "[A clipped picture with 60 % holes](gallery/plot_clipped_picture)", "RMSE of the holes",
        f"{g['errors']['linear']:.4f} linear", f"**{g['errors']['MinMax']:.4f}** MinMax",
    ),
    "plot_counts": lambda g: (
        "[Counts whose effects multiply](gallery/plot_counts)", "deviance of hidden counts",
        f"{g['errors']['NMF with KL']:.2f} NMF, {g['errors']['linear in log(1 + x)']:.2f} in logs",
        f"**{g['errors']['exp with KL']:.2f}** exp with KL",
    ),
    "plot_detection_limits": lambda g: (
        "[Below detection limits](gallery/plot_detection_limits)", "RMSE below the limit",
        f"{g['errors']['half the limit']:.3f} half the limit",
        f"**{g['errors']['at most the limit']:.3f}** `at_most=`",
    ),
    "plot_survey": lambda g: (
        "[Answers of a survey](gallery/plot_survey)", "hidden answers right",
        f"{100 * g['shares']['numbers, rounded']:.0f} % as numbers",
        f"**{100 * g['shares']['levels']:.0f} %** as levels",
    ),
    "plot_photograph": lambda g: (
        "[A photograph with scattered holes](gallery/plot_photograph)", "RMSE of the holes",
        f"**{g['errors']['interpolation']:.3f}** interpolation", f"{g['errors']['low rank']:.3f}",
    ),
}  # fmt: skip
"""What a row takes from the variables of a script."""


def results_of(name: str) -> dict[str, Any]:
    """Return the variables of a script of the gallery, and leave its last figure open."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return runpy.run_path(str(GALLERY / f"{name}.py"))


def row(name: str, results: dict[str, Any]) -> str:
    """Return a line of the table."""
    return f"| {' | '.join(ROWS[name](results))} |\n"


def main() -> None:
    """Write the table and the picture."""
    lines = []
    for name in ROWS:
        lines.append(row(name, results_of(name)))
        if name == "plot_clipped_picture":
            plt.gcf().savefig(HERE / "figures" / "start.png", dpi=90)
        plt.close("all")
    table = "".join(lines)
    for page, own in (
        (HERE / "index.md", table),
        (
            HERE.parent / "README.md",
            re.sub(r"\(gallery/(\w+)\)", r"(examples/gallery/\1.py)", table),
        ),
    ):
        before, _, after = page.read_text(encoding="utf-8").partition(MARK)
        _, _, after = after.partition(END)
        page.write_text(f"{before}{MARK}{HEAD}{own}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
