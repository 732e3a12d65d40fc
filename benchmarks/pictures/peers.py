"""Methods of SciPy, scikit-image, OpenCV and bm3d, with the settings from which one is chosen.

- Interpolation: linear on triangles (`scipy.interpolate.griddata`), the nearest pixel outside.
- Biharmonic: `skimage.restoration.inpaint_biharmonic`.
- Telea and Navier-Stokes: `cv2.inpaint` of 16-bit integers.
- Of clipped pixels, a constant above the ceiling, and `scipy.interpolate.RBFInterpolator`: the
  other methods of missing pixels never exceed the largest pixel that they see.
- TV, non-local means (NLM) and BM3D remove noise.  Missing pixels are first filled by biharmonic.
  Counts are first transformed as Anscombe does, and last by the unbiased inverse of Mäkitalo and
  Foi.  All three get the standard deviation of the noise, which our methods do not.

No setting is in the units of the image: the weight of TV, h of NLM and the noise of BM3D are
multiples of the standard deviation of the noise.  BM3D is the method of K. Dabov, A. Foi,
V. Katkovnik and K. Egiazarian (2007), in the version of Y. Mäkinen, L. Azzari and A. Foi (2020).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import RBFInterpolator, griddata

from .cases import CLIPPING, COUNTED, MISSING, NOISY, Problem

Array = np.ndarray
Settings = dict[str, Any]

LARGEST = 65_535
"""Of integers with 16 bits."""


class Answer(NamedTuple):
    """A restored picture, with the ends of 90 % intervals if the method has some."""

    picture: Array
    lower: Array | None = None
    upper: Array | None = None


class Method(NamedTuple):
    """A function of a problem, a seed and settings, with the cases and the settings to try."""

    fill: Callable[..., Answer]
    cases: Iterable[str]
    grid: tuple[Settings, ...] = ({},)
    needs: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether all packages are installed."""
        return all(importlib.util.find_spec(name) is not None for name in self.needs)


def grid(**values: Iterable[Any]) -> tuple[Settings, ...]:
    """Return all combinations of values by name."""
    return tuple(dict(zip(values, each, strict=True)) for each in product(*values.values()))


def interpolation(problem: Problem, seed: int) -> Answer:
    """Interpolate linearly on triangles."""
    given = problem.given
    seen, hidden = np.argwhere(~np.isnan(given)), np.argwhere(np.isnan(given))
    values = given[~np.isnan(given)]
    filled = given.copy()
    filled[tuple(hidden.T)] = griddata(seen, values, hidden, "linear")
    outside = np.argwhere(np.isnan(filled))
    if outside.size:
        filled[tuple(outside.T)] = griddata(seen, values, outside, "nearest")
    return Answer(filled)


def biharmonic(problem: Problem, seed: int) -> Answer:
    """Solve the biharmonic equation."""
    return Answer(_biharmonic(problem.given))


def _biharmonic(given: Array) -> Array:
    from skimage.restoration import inpaint_biharmonic

    hidden = np.isnan(given)
    return inpaint_biharmonic(np.where(hidden, 0, given), hidden) if hidden.any() else given


def opencv(name: str) -> Callable[..., Answer]:
    """Return an inpainting of OpenCV by the name of its flag."""

    def fill(problem: Problem, seed: int, *, radius: float) -> Answer:
        import cv2

        cv2.setNumThreads(1)
        hidden = np.isnan(problem.given)
        image = np.rint(np.where(hidden, 0, problem.given) * LARGEST).astype(np.uint16)
        filled = cv2.inpaint(image, hidden.astype(np.uint8), radius, getattr(cv2, name))
        return Answer(np.where(hidden, filled / LARGEST, problem.given))

    return fill


def constant(problem: Problem, seed: int, *, above: float) -> Answer:
    """Put clipped pixels at one value, a fraction of the way from the ceiling to 1."""
    value = problem.ceiling + above * (1 - problem.ceiling)
    return Answer(np.where(problem.scored, value, problem.given))


def radial_functions(problem: Problem, seed: int, *, kernel: str, neighbors: int) -> Answer:
    """Extrapolate clipped pixels from the nearest others, not below the ceiling."""
    is_clipped = problem.given >= problem.ceiling
    seen, values = np.argwhere(~is_clipped), problem.given[~is_clipped]
    model = RBFInterpolator(seen, values, neighbors=neighbors, kernel=kernel)
    picture = problem.given.copy()
    picture[is_clipped] = np.maximum(model(np.argwhere(is_clipped)), problem.ceiling)
    return Answer(picture)


def denoised(problem: Problem, denoise: Callable[[Array, float], Array]) -> Answer:
    """Return a picture after a function of pixels and of the standard deviation of their noise."""
    if problem.noise is not None:
        return Answer(denoise(_biharmonic(problem.given), problem.noise))
    stable = denoise(2 * np.sqrt(problem.given + 3 / 8), 1.0)
    return Answer(unbiased_inverse(stable) / problem.units)


def unbiased_inverse(stable: Array) -> Array:
    """Return the means of counts whose transforms by Anscombe have these means."""
    d = np.maximum(stable, 2 * np.sqrt(3 / 8))
    root = np.sqrt(3 / 2)
    inverse = d**2 / 4 + root / 4 / d - 11 / 8 / d**2 + 5 * root / 8 / d**3 - 1 / 8
    return np.maximum(inverse, 0)


def total_variation(problem: Problem, seed: int, *, weight: float) -> Answer:
    """Remove noise by total variation."""
    from skimage.restoration import denoise_tv_chambolle

    def denoise(noisy: Array, noise: float) -> Array:
        return denoise_tv_chambolle(noisy, weight * noise, eps=1e-6, max_num_iter=300)

    return denoised(problem, denoise)


def non_local_means(
    problem: Problem, seed: int, *, size: int, distance: int, h: float, fast: bool
) -> Answer:
    """Remove noise by non-local means."""
    from skimage.restoration import denoise_nl_means

    def denoise(noisy: Array, noise: float) -> Array:
        return denoise_nl_means(noisy, size, distance, h * noise, fast_mode=fast, sigma=noise)

    return denoised(problem, denoise)


def bm3d(problem: Problem, seed: int, *, factor: float) -> Answer:
    """Remove noise by BM3D."""
    from bm3d import bm3d as denoise

    return denoised(problem, lambda noisy, noise: denoise(noisy, factor * noise))


RADII = grid(radius=(1, 2, 3, 5, 8, 12))
WEIGHTS = grid(weight=(0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.3, 1.7, 2.2, 3))
MEANS = (
    *grid(size=(3, 5, 7), distance=(7, 11), h=(0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1), fast=(True,)),
    *grid(size=(5, 7), distance=(7,), h=(0.7, 0.8, 0.9, 1, 1.2), fast=(False,)),
)
FACTORS = grid(factor=(0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 2.5))
STEPS = grid(above=(0, 0.1, 0.2, 0.3, 0.4, 0.5))
KERNELS = grid(kernel=("linear", "thin_plate_spline"), neighbors=(10, 30, 100))

WITH_HOLES = (*MISSING, "noise, 60 % missing")
WITH_NOISE = (*NOISY, *COUNTED)
PEERS: Mapping[str, Method] = {
    "interpolation": Method(interpolation, WITH_HOLES),
    "biharmonic": Method(biharmonic, WITH_HOLES),
    "Telea": Method(opencv("INPAINT_TELEA"), MISSING, RADII, ("cv2",)),
    "Navier-Stokes": Method(opencv("INPAINT_NS"), MISSING, RADII, ("cv2",)),
    "TV": Method(total_variation, WITH_NOISE, WEIGHTS),
    "NLM": Method(non_local_means, WITH_NOISE, MEANS),
    "BM3D": Method(bm3d, WITH_NOISE, FACTORS, ("bm3d",)),
    "constant": Method(constant, CLIPPING, STEPS),
    "radial functions": Method(radial_functions, CLIPPING, KERNELS),
}
"""Methods of other packages by name."""
