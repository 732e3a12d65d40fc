"""Photographs with missing, noisy, counted or clipped pixels: docs/pictures.md."""
