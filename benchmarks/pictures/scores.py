"""Errors of a restored picture, and coverage of its intervals, at the pixels that count."""

from __future__ import annotations

import numpy as np

from .cases import Problem
from .peers import Answer


def score(problem: Problem, answer: Answer) -> dict[str, float]:
    """Return RMSE, PSNR and SSIM of a picture, clipped to 0 to 1, and coverage of intervals."""
    from skimage.metrics import structural_similarity

    picture, at = np.clip(answer.picture, 0, 1), problem.scored
    if not np.isfinite(picture).all():
        raise ValueError("The answer has values that are not finite.")
    rmse = float(np.sqrt(np.mean((picture - problem.truth)[at] ** 2)))
    _, similarity = structural_similarity(
        problem.truth,
        picture,
        data_range=1,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
        full=True,
    )
    scores = {"rmse": rmse, "psnr": -20 * np.log10(rmse), "ssim": float(similarity[at].mean())}
    if answer.lower is not None and answer.upper is not None:
        low, high = answer.lower[at], answer.upper[at]
        truth = problem.truth[at]
        scores["coverage"] = float(np.mean((low <= truth) & (truth <= high)))
        scores["width"] = float(np.mean(high - low))
    return scores
