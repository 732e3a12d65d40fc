"""The text of docs/ratings.md around its tables."""

INTRODUCTION = """\
The protocol was fixed before the first test error of this page. The ranges of the
parameters come from earlier benchmarks and from the defaults of each library."""

PROTOCOL = """\
- Every method sees the training ratings and nothing else: no time, no side tables, not which
  entries the test has.
- MovieLens 100K: its split u1 with 3 seeds, and 5 random tenths as tests. MovieLens latest-small
  (the edition of October 2016): 5 random tenths. MovieLens 1M: 3 of 10 random folds. A user or a
  film without a training rating stays in the test.
- A method chooses its settings by a random tenth of the *training* ratings, the same tenth for all,
  and then learns from all training ratings. The search is the same for all: from one start, it
  moves up or down in the list of values of one parameter after the other while that lowers the
  error, for at most {trials} trials. On MovieLens 1M settings are chosen once, on the ratings that
  are in none of the 3 tests. Samplers choose their rank ({ranks}) only, by chains of {draws} draws
  after {tune}; `nmd.complete(X)` chooses by itself.
- The last chains have 300 draws after 100 sweeps, on MovieLens 1M 200 after 50.
- Predictions are clipped to the range of the training ratings; *RMSE, not clipped* is the error
  without this step.
- Spreads are standard deviations over seeds, splits or folds. *Less our tuned fit* is the mean
  difference of the RMSE on the same split, with its spread.
- *Log-likelihood* is the mean logarithm of the probability of a test rating, where each level has
  the values nearest to it. Methods with no probabilities of their own have Gaussian noise of the
  size of their error at the held-out training ratings. A probability counts as 1e-6 at least.
- Times are processor time on one thread, as multiples of one tuned fit of ours. Each is measured in
  the same process as a fixed fit of ours. *With the choice* adds all trials."""

GRIDS = """\
The parameters with the values of the search and its start (bold):"""

IMPLICIT = """\
Not included: implicit, for clicks and purchases; LensKit, which requires an older pandas;
SVD++ of Surprise, which uses who rated what."""

PUBLISHED = """\
These are published root mean squared errors, each with its own protocol. Only those of the
same split and from ratings alone are comparable with the tables above.
Rendle, Zhang and Koren show how much the numbers of baselines depend on who tuned them, and that
Gibbs sampling is the best of the plain factorisations. The figure of GC-MC for MovieLens 1M, .832,
is lower than ours. No other library was run on that set here."""
