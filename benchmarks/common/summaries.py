"""Summaries of the measured pages, written by hand for the run of their date.

A page begins with its summary if it is written in full, and a test compares the two.  After a new
run, its date and its findings have to be written anew.
"""

from textwrap import fill

SUMMARIES = {
    "tables": """\
- Run of 2026-11-26 by `make tables` (`benchmarks/tables`); of 2026-11-27 are mice (pmm),
  MixedImputer, and the regressions on mixed tables; of 2026-11-28 are miceforest, mice (cart)
  and, with the temperature of a class measured from its frequency, `nmd.sample` up to the small
  tables. `constraints.txt` and the `Makefile` of that day have the versions.
- Data: sixteen real tables with a fifth of the cells held out, five seeds, against other
  methods.
- Numeric columns: the error of `nmd.sample` is at or below that of the best other method on 14
  of 16 tables, and 5 % above it on ames and Boston. Ordinal columns: on 4 of 8. Trees have a
  higher accuracy, by 0.4 ± 0.3 points; their log score is lower on 12 of 16.
- Completed copies have the lowest energy score on 13 of 16 tables; those of mice have it on
  attrition, gss_spending and Boston. Since 2026-11-29 they keep weak effects. Over four seeds of
  the present version their energy score is 1.0 % higher on average, and IterativeImputer has the
  lowest on bfi. The 90 % intervals cover 88.2 to 92.8 % of the held-out numeric cells of a table.
- Pooled regressions on generated tables: 95 % intervals cover 94.7 %, those of mice 95.0 % at
  less bias, of complete cases 92.5 %.""",
    "ratings": """\
- Run of 2026-11-20 by `make ratings` (`benchmarks/ratings_table`). The `Makefile` of that day
  has the versions of the other libraries.
- Data: MovieLens 100K, latest-small and 1M, from ratings alone, against cmfrec, Surprise and
  myFM.
- RMSE on the split u1: `nmd.sample` 0.9039 with an ordinal loss and 0.9045 without, myFM
  0.9068, cmfrec 0.9226, Surprise 0.9304.
- A posterior takes several times as long as one tuned fit.
- On MovieLens 1M no other library was run. The published error of GC-MC is lower (.832 against
  .835).""",
    "pictures": """\
- Run of 2026-11-26 by `make pictures` (`benchmarks/pictures`): three seeds of missing pixels,
  noise and counts. Scratches, text and counts are of a commit later than the rest, in which the
  groups of patches learn from other ones.
- Missing pixels: its error over that of the better one of interpolation and biharmonic is 0.71
  to 0.76 in the geometric mean of six photographs, and at most 0.89 on one of them.
- Its 90 % intervals cover 88 to 96 % of the missing pixels of a photograph, and 95 % of the
  noisy ones, which is too many.
- Noise: its error is 10 % below that of the better one of TV and NLM, and 1.5 % above that of
  BM3D, which get the standard deviation of the noise. With 60 % missing it is 13 and 11 % below
  them.
- Counts: it is 8 to 13 % below the better one of TV and NLM, and 2 to 4 % above BM3D.
- Clipped pixels: lower limits have a lower error than the best constant and radial functions on
  three of six photographs. The error is 24 % above that of the constant on brick.""",
    "selection": """\
- Run of 2026-11-24 by `python -m benchmarks.selection --write`.
- Data: eleven real problems with five seeds, 51 generated ones, and generated matrices of known
  rank.
- The median excess over the best of a grid in hindsight is at most 0.5 % on 11 of 11 sets.
- A default call takes 2.1 to 8.4 times as long as one fit with the chosen settings.
- The chosen rank is within one of the true rank in 99.8 % of the generated matrices.
- The search has fewer moves since 2026-11-29. Nine of the eleven sets, run again with the same
  seeds (three for CBCL), have mean errors between 0.06 % below and 0.12 % above those of the
  search on this page; MovieLens 100K, 90/10, has 0.9142 with seed 0. On the two photographs the
  five seeds are now about 1.4 to 1.6 % (china) and 2.7 to 4.0 % (flower) below the best of the
  grid. The tables are those of the run above.""",
    "performance": """\
- Run of 2026-11-21 by `make bench` (`benchmarks/performance`), about half an hour, with Python
  3.11.7 and NumPy 2.4.6.
- An iteration on complete float64 data takes 1.2 to 2.2 times as long as its three bare
  products.
- On sparse data Adam with a tuned step has the lowest error after 12 seconds on two of three
  sets.
- Ratings at rank 10 take 0.05 s an iteration for a million entries; at rank 100 cmfrec's
  conjugate gradients are four times as fast.
- Ratios are comparable between machines, and seconds belong to one machine.""",
    "paper": """\
- Run of 2026-11-20 by `make paper` (`benchmarks/paper`), which repeats every experiment of the
  paper.
- With the default settings, all twelve models are solved to 1e-6 on all ten synthetic matrices.
- Three of the twelve printed T-updates are not minimisers, or leave cases out.
- On faces, the error of `complete` with a chosen ridge is at or below that of every other
  method in all 6 columns.
- A lower objective is not always a cleaner image: see the two sections on noise.""",
}
"""Five lines of a page, by its name."""


def with_summary(page: str, name: str) -> str:
    """Return a page with its summary below the title."""
    title, _, rest = page.partition("\n\n")
    items = [" ".join(item.split()) for item in SUMMARIES[name].split("\n- ")]
    lines = [fill(f"- {item.removeprefix('- ')}", 110, subsequent_indent="  ") for item in items]
    return "\n\n".join([title, "\n".join(lines), rest])
