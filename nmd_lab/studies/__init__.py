"""Many fits as one labelled Dataset, to choose nonlinearity, loss, rank and ridge for some data.

>>> import nmd_lab as nmd
>>> study = nmd.Study(
...     nmd.datasets.digits(50), nonlinearity=["identity", "relu"], rank=[2, 5], alpha=1
... )
>>> results = study.run(progress=False)
>>> dict(results.sizes)
{'nonlinearity': 2, 'rank': 2, 'seed': 3}
"""

from .study import Study

__all__ = ["Study"]
