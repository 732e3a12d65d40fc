"""The distribution of a new observation: a mixture over the draws."""

from __future__ import annotations

from .after import NoiseAfter
from .before import NoiseBefore
from .gaussian import GaussianNoise
from .mixture import Predictive
from .noise import Noise
from .ordinal import OrdinalNoise

KINDS: dict[str, type[Predictive]] = {
    "gaussian": GaussianNoise,
    "clipped": NoiseBefore,
    "before": NoiseBefore,
    "after": NoiseAfter,
    "ordinal": OrdinalNoise,
}
"""Classes of distributions by the kind of the noise."""


def predictive(kind: str, noise: Noise) -> Predictive:
    """Return the distribution of an observation given each draw."""
    return KINDS[kind](noise)
