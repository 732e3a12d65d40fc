"""The sampler: T, the rows of both factors and the hyperparameters are drawn, one after another."""
