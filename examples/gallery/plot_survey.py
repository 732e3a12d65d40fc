"""
Impute missing survey answers: ordinal columns
==============================================

The answers "disagree", "neutral", "agree" are ordered, and their distances are unknown.  The
ordinal model of ``nmd.sample`` learns cut points between the answers, and predicts a probability of
each.

The data are real: 944 people in the American National Election Study of 1996 (``anes96`` of
statsmodels).  They placed themselves and two candidates between liberal (1) and conservative (7),
and gave their party (0 to 6), education and income.  A fifth of the cells is held out.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from statsmodels.datasets import anes96

import nmd_lab as nmd

ORDINAL = ["selfLR", "ClinLR", "DoleLR", "PID", "educ", "income"]
people = anes96.load_pandas().data[[*ORDINAL, "age", "vote"]]
survey = people.astype(dict.fromkeys(ORDINAL, int)).astype({"vote": bool}).convert_dtypes()
for name in ORDINAL:
    survey[name] = pd.Categorical(people[name], sorted(people[name].unique()), ordered=True)
held_out = np.random.default_rng(0).random(survey.shape) < 0.2
given = survey.mask(held_out)

# %%
# The held-out answers, by five methods
# -------------------------------------
# The baselines see numbers; their predictions are rounded to an answer.

filled, posterior = nmd.impute(given, return_posterior=True, random_state=0)
numbers = given.astype(float)
mean, std = numbers.mean(), numbers.std()
standard = (numbers - mean) / std
tables = {"median": numbers.fillna(numbers.median())}
for imputer in (KNNImputer(), IterativeImputer(max_iter=30, random_state=0)):
    tables[type(imputer).__name__] = imputer.fit_transform(standard) * std.values + mean.values
tables["nmd.impute"] = filled.astype(float)
errors = {}
for method, table in tables.items():
    steps = np.abs(np.round(np.asarray(table, float)) - people.to_numpy())
    errors[method] = {name: steps[held_out[:, j], j].mean() for j, name in enumerate(ORDINAL)}
errors = pd.DataFrame(errors)
print("mean distance between prediction and held-out answer, in steps")
print(errors.round(2).to_string())

# %%
# Predicted probabilities and observed frequencies
# ------------------------------------------------

where = np.flatnonzero(held_out[:, list(survey).index("PID")])
party = posterior.probabilities("PID").iloc[where]
answer = people["PID"].to_numpy()[where].astype(int)
p, right = party.to_numpy().ravel(), (answer[:, None] == np.arange(7)).ravel()
group = pd.cut(p, [0, 0.05, 0.1, 0.2, 0.3, 0.5, 1])
calibration = pd.DataFrame({"p": p, "right": right}).groupby(group, observed=True).mean()

figure, (left, middle, last) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
errors.div(errors["median"], axis=0).plot.barh(ax=left, color=["0.8", "0.6", "C0", "C1"])
left.set(xlabel="error / error of the median")
left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncol=2, fontsize="small")
middle.plot([0, 0.7], [0, 0.7], color="0.7")
middle.plot(calibration["p"], calibration["right"], "o-", color="C1")
middle.set(xlabel="predicted probability of a party", ylabel="observed frequency")
order = np.argsort(answer, kind="stable")
image = last.imshow(party.to_numpy()[order].T, aspect="auto", origin="lower", cmap="viridis")
last.step(np.arange(len(order)), answer[order], color="C3", where="mid", label="held-out answer")
last.set(xlabel="people whose party is held out", ylabel="party, 0 (Democrat) to 6 (Republican)")
last.legend(loc="upper left")
figure.colorbar(image, label="probability")
plt.show()

assert (errors["nmd.impute"] <= errors.min(axis=1) + 0.02).all()
assert np.abs(calibration["p"] - calibration["right"]).max() < 0.12
