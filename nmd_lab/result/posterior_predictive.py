"""The distribution of a new observation: a mixture over the draws."""

from __future__ import annotations

from .posterior_after import NoiseAfter
from .posterior_before import NoiseBefore
from .posterior_gaussian import GaussianNoise
from .posterior_mixture import Predictive
from .posterior_noise import Noise
from .posterior_ordinal import OrdinalNoise

KINDS: dict[str, type[Predictive]] = {
    "gaussian": GaussianNoise,
    "before": NoiseBefore,
    "after": NoiseAfter,
    "ordinal": OrdinalNoise,
}
"""Classes of distributions by the kind of the noise."""


def predictive(kind: str, noise: Noise) -> Predictive:
    """Return the distribution of an observation given each draw.

    Parameters
    ----------
    kind : {"gaussian", "before", "after", "ordinal"}
        Place of the noise; see `nmd_lab.result.posterior.Posterior`.
    noise : Noise
        Numbers of the draws.
    """
    return KINDS[kind](noise)
