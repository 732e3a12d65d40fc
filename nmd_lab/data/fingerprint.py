"""A hash of data, to recognise them."""

from __future__ import annotations

import hashlib

import numpy as np

from .base import Observations


def fingerprint(observations: Observations) -> str:
    """Return the SHA-256 hash of observations without their labels."""
    digest = hashlib.sha256()
    for heading, blocks in observations.content():
        digest.update(heading.encode())
        for block in blocks:
            digest.update(np.ascontiguousarray(block).view(np.uint8).data)
    return digest.hexdigest()
