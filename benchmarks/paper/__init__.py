"""The paper's experiments, each a module with a function `run(folder)`.

``python -m benchmarks.paper`` runs all of them and writes docs/paper.md; see `__main__`.
"""
