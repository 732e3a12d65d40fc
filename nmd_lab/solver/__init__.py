"""How a model is fitted: Algorithm 1, its sweep, starts, stopping rules and refinements."""
