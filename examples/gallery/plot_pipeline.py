"""
Impute in a pipeline of scikit-learn
====================================

``nmd.MatrixCompletion`` fills missing cells in a pipeline, as the imputers of scikit-learn do.
They are compared by the accuracy of the filled cells, and by the classifier behind them.

The data are real: 569 tumours with 30 measurements each (``sklearn.datasets.load_breast_cancer``).
Half of the cells are held out.  ``IterativeImputer`` regresses each column on the others, and is
the most accurate here.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nmd_lab as nmd

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
rng = np.random.default_rng(0)
holed = X.mask(rng.random(X.shape) < 0.5)

# %%
# The same classifier behind four imputers
# ----------------------------------------

imputers = {
    "column means": SimpleImputer(),
    "nearest neighbours": KNNImputer(),
    "IterativeImputer": IterativeImputer(max_iter=10, n_nearest_features=10, random_state=0),
    "MatrixCompletion": nmd.MatrixCompletion(4, nonlinearity="identity", random_state=0),
}
scores = {}
for name, imputer in imputers.items():
    classifier = LogisticRegression(C=0.1, max_iter=1000)
    pipeline = make_pipeline(StandardScaler(), imputer, classifier)
    scores[name] = cross_val_score(pipeline, holed, y, cv=5, scoring="roc_auc")
    print(f"{name:19} AUC {scores[name].mean():.4f} ± {scores[name].std() / np.sqrt(5):.4f}")

# %%
# How well were the cells filled? (in standard deviations of their columns)

scaled = StandardScaler().fit(holed)
given, truth = scaled.transform(holed), scaled.transform(X)
where = np.isnan(given)
errors = {
    name: float(np.sqrt(np.mean((imputer.fit_transform(given) - truth)[where] ** 2)))
    for name, imputer in imputers.items()
}
for name, error in errors.items():
    print(f"{name:19} RMSE of held-out cells {error:.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained", sharey=True)
left.barh(list(errors), list(errors.values()), color=["0.8", "0.65", "0.5", "C1"])
left.set_xlabel("RMSE of held-out cells, in SD of the column")
right.barh(list(scores), [s.mean() for s in scores.values()], color=["0.8", "0.65", "0.5", "C1"])
right.set(xlabel="AUC of the classifier", xlim=(0.95, 1))
left.invert_yaxis()
plt.show()

assert errors["MatrixCompletion"] < errors["nearest neighbours"]
assert scores["MatrixCompletion"].mean() > scores["nearest neighbours"].mean()
