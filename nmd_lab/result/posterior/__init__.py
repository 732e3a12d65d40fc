"""The labelled result of a sampler: draws, predictions with intervals, diagnostics."""
