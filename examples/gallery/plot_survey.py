"""
Answers of a survey: ordered levels
===================================

"Disagree", "neutral", "agree" are ordered, and nobody knows how far apart they are.  The ordinal
model learns cut points between the levels.  It predicts a probability of each answer.  The data
are generated.
"""

import matplotlib.pyplot as plt
import numpy as np

import nmd_lab as nmd

rng = np.random.default_rng(0)
opinion = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 30)) + 0.7 * rng.normal(size=(1, 30))
answers = 1.0 + np.digitize(opinion + rng.normal(size=opinion.shape), [-1.8, -1.2, 0.2, 2.5])
hidden = rng.random(answers.shape) < 0.3
given = np.where(hidden, np.nan, answers)

# %%
# The answers as levels, and as numbers
# -------------------------------------

levels = nmd.sample(given, 4, loss="ordinal", draws=200, random_state=0)
numbers = nmd.sample(given, 4, draws=200, random_state=0)
rows, columns = np.nonzero(hidden)
truth = answers[hidden]

probabilities = levels.level_probabilities(rows, columns)
likely = levels.levels[0] + np.argmax(probabilities, axis=1)
rounded = np.clip(np.round(numbers.predict(rows, columns)), 1, 5)
common = np.array([np.nanmean(given[:, j]) for j in range(30)]).round()[columns]
shares = {
    "mean of the question, rounded": np.mean(common == truth),
    "numbers, rounded": np.mean(rounded == truth),
    "levels": np.mean(likely == truth),
}
for name, share in shares.items():
    print(f"{name:30} {100 * share:.1f} % of the missing answers right")

# %%
# The probabilities are those that occur
# --------------------------------------

figure, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
edges = np.linspace(0, 1, 11)
for level in range(5):
    p, right = probabilities[:, level], truth == level + 1
    place = np.digitize(p, edges) - 1
    filled = [k for k in range(10) if np.sum(place == k) > 40]
    ax.plot([p[place == k].mean() for k in filled], [right[place == k].mean() for k in filled],
            "o-", label=f"answer {level + 1}")  # fmt: skip
ax.plot([0, 1], [0, 1], color="0.7")
ax.set(xlabel="predicted probability", ylabel="share of such answers", aspect="equal")
ax.legend()
plt.show()

assert shares["levels"] > shares["mean of the question, rounded"]
