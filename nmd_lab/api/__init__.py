"""The verbs: decompose, complete, sample, impute, and how a request becomes a problem."""
