"""States of the explorers: data, settings and fit, without any widget."""
