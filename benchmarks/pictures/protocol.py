"""Protocol, fixed before the first run.

- Photographs: {reported} for the tables, and {others} for the choice of settings. They ship in
  scikit-image and scikit-learn. Each is grey, from 0 to 1, and the central 256 x 256 pixels of it.
- Missing pixels: 20, 40, 60 or 80 % at random, sixteen scratches of 1 to 4 pixels, or the strokes
  of text. The score is that of the missing pixels.
- Noise: normal with standard deviation 0.1, with all pixels or with 60 % missing at random. The
  score is that of all pixels against the photograph without noise.
- Photon counts: Poisson counts whose mean over the photograph is 4 or 1, with all pixels. The score
  is that of all pixels, in the units of the photograph.
- Clipped exposures: the largest 30 % of the pixels are at the ceiling. The score is theirs.
- Three seeds of the missing pixels, the noise and the counts, and one where nothing is random. A
  number is a mean over the seeds.
- Answers are clipped to 0 to 1. PSNR refers to the range 1. SSIM has Gaussian weights of standard
  deviation 1.5, and is the mean of its map over the scored pixels.
- Coverage: the fraction of the scored pixels within the 90 % intervals of `nmd.inpaint`.
- Seconds are processor time of one thread, after a small photograph that is not counted.
- The settings of every method are chosen on the other photographs, with another seed, for each case
  ([grid](#settings-that-were-chosen)). TV, NLM and BM3D get the standard deviation of the noise.
"""

from __future__ import annotations

from benchmarks.paper.report import prose

from .data import OTHERS as OTHER_NAMES
from .data import REPORTED
from .ours import BEST
from .peers import __doc__ as methods

RATIOS = """
The error of a method of this library over that of another one, or of the better of two others for
each photograph: geometric mean, lowest and highest photograph. Coverage is that of the 90 %
intervals, on the lowest and the highest photograph."""

OTHERS = """
The photographs on which settings were chosen, with one seed. No setting of `nmd.inpaint` was chosen
on those of the tables above."""

CHECKED_METHODS = (BEST, "interpolation", "biharmonic")
"""Methods of the tables of other photographs."""


def section() -> list[str]:
    """Return the protocol and the list of other methods."""
    head, said = (__doc__ or "").split("\n\n", 1)
    names = {"reported": ", ".join(REPORTED), "others": ", ".join(OTHER_NAMES)}
    peers = (methods or "").split("\n\n", 1)[1]
    return [
        "## Protocol",
        prose(head),
        prose(said, **names),
        "Other methods:",
        *map(prose, peers.split("\n\n")),
    ]
