"""The comparison page: every experiment's section, written by the script that ran it."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from types import ModuleType

import xarray as xr

from benchmarks.common.summaries import with_summary

EXPERIMENTS = (
    "printed_updates",
    "synthetic",
    "csf",
    "mnist_noise",
    "cbcl_completion",
    "poisson_logo",
    "relu_over_time",
    "zeros_with_noise",
    "penalty_ablation",
    "scaling",
)
"""The modules, in the order of the page."""

INTRODUCTION = """\
# The experiments of the ADMM paper, repeated

The paper is A. Awari, N. Gillis, A. Vandaele, "Alternating Direction Method of Multipliers for
Nonlinear Matrix Decompositions".  Each section has a module of its name in `benchmarks/paper` and a
notebook in `notebooks/paper`.

- *The paper's number* is the printed one.
- *The paper's settings*: `decompose` with the SVD start, the printed rule for ρ, ε = 1e-6, and
  no refinements, for the paper's iterations or seconds. The T-updates are exact in all cases.
- *By default*: `decompose` with no option but the data, the model, the rank, the same iterations or
  seconds, and a seed; `complete` has alpha = 0, that is no choice of a ridge.

Means are over the same number of random draws as in the paper; ± is the standard deviation. Seconds
are those of one thread and are given as ratios where methods are compared. Data sets that may not
be passed on are not shown: the images are of other data, the numbers of the sets themselves."""

DIFFERENCES = """\
## Differences from the paper

- Three of the twelve [printed T-updates](#the-printed-t-updates) are wrong or leave cases out.
- Square and Modulus [can be solved](#convergence-on-synthetic-data) where the paper reports
  failure.
- MinMax's local minima, for which the paper proposes a homotopy as future work,
  [can be left](#digits-with-salt-and-pepper-noise); but neither at rank 32 there nor at rank 4
  [under Poisson noise](#an-image-under-poisson-noise) is a lower objective a cleaner image.
- In the table of [completion](#completion-of-faces) the WLRA row is that of rank 1, and clipping
  LMaFit's predictions is the whole margin of ADMM where nothing is missing.  The printed rule for ρ
  does not reproduce the row of ADMM; ρ = 1 does.
- CBCL has no zeros: ReLU is [a linear problem there](#relu-solvers-over-time), and Adam on MNIST
  does far better from another start.
- The latent-variable solvers, which the paper sets aside, are
  [far off where the zeros are noisy](#relu-with-noise-on-the-zeros)."""


def module(name: str) -> ModuleType:
    """Return an experiment by its name."""
    if name not in EXPERIMENTS:
        raise ValueError(f"experiment {name!r} is unknown: choose from {list(EXPERIMENTS)}.")
    return importlib.import_module(f"{__package__}.{name}")


def section(name: str, results: xr.Dataset, figures: Path) -> str:
    """Return the section of an experiment, with its heading and its data."""
    experiment = module(name)
    lines = [
        f"## {experiment.TITLE}",
        f"`benchmarks/paper/{name}.py`, [notebook](tutorials/paper/{name})",
    ]
    if "data" in results.attrs:
        lines[1] += f"; data: {results.attrs['data']}"
    return "\n\n".join([lines[0], f"{lines[1]}.", experiment.section(results, figures)])


def write(page: Path, folder: Path) -> None:
    """Write the page and its figures, after doing whatever cells are still missing.

    Parameters
    ----------
    page : Path
        The Markdown file; the figures go to the folder `figures` beside it.
    folder : Path
        Holds the cells.
    """
    sections, states = [], set()
    for name in EXPERIMENTS:
        began = time.perf_counter()
        results = module(name).run(folder)
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
        states |= set(results.attrs["code"])
        page.parent.mkdir(parents=True, exist_ok=True)
        sections.append(section(name, results, page.parent / "figures"))
    parts = [INTRODUCTION]
    if len(states) > 1:
        versions = f"{len(states)} versions of the code"
        parts.append(f"The tables were computed by {versions}, each by one of them.")
    text = "\n\n".join([*parts, DIFFERENCES, *sections]) + "\n"
    page.write_text(with_summary(text, "paper"), "utf-8")
