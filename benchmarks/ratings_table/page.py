"""The page docs/ratings.md: the protocol, a table for each set, more rank, published figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common.summaries import with_summary
from benchmarks.paper.report import mean_std, prose, table
from benchmarks.selection.store import Answer, Store

from .cells import FULL, METHODS, Effort, chosen, scored
from .methods import SAMPLER_RANKS, Method
from .problems import Set
from .protocol import GRIDS, IMPLICIT, INTRODUCTION, PROTOCOL, PUBLISHED
from .published import FIGURES
from .tuning import TRIALS

TITLE = "# Predicted ratings, compared with other libraries and published figures"

HEADER = ("method", "RMSE", "MAE", "RMSE, not clipped", "less our tuned fit", "log-likelihood")
HEADER += ("one fit", "with the choice", "chosen (first run)")

REFERENCE = "nmd.complete, tuned"


def page(store: Store, sets: dict[str, Set], methods: list[Method], effort: Effort = FULL) -> str:
    """Do what is missing, and return the page.

    Parameters
    ----------
    store : Store
        The answers. One that is `Finished` does nothing: what is missing is left out.
    sets : dict
        The sets.
    methods : list of Method
        The methods that are there.
    effort : Effort
        How much is tried.
    """
    records = {name: answered(store, name, each, methods, effort) for name, each in sets.items()}
    methods = [
        method for method in methods if any(method.name in each for each in records.values())
    ]
    parts = [TITLE, protocol(effort)]
    if effort != FULL:
        parts.append("**This is a small version, to see that it runs.**")
    parts.append(f"{prose(GRIDS)}\n\n{grids(methods)}\n\n{left_out()}")
    for name, answers in records.items():
        if answers:
            parts += [f"## {name}", section(sets[name], answers)]
    if METHODS["nmd.sample"] in methods and effort == FULL:
        parts += ["## More rank", more_rank(store, sets)]
    parts += ["## Published figures", prose(PUBLISHED)]
    parts.append(table(PUBLISHED_HEADER, [tuple(figure) for figure in FIGURES]))
    text = "\n\n".join(parts) + "\n"
    return with_summary(text, "ratings") if effort == FULL else text


PUBLISHED_HEADER = ("data", "test", "method", "RMSE", "uses", "source")


def protocol(effort: Effort) -> str:
    """Return the protocol."""
    ranks = ", ".join(map(str, SAMPLER_RANKS))
    numbers = {"trials": TRIALS, "ranks": ranks, "draws": effort.draws, "tune": effort.tune}
    return f"{prose(INTRODUCTION)}\n\n{prose(PROTOCOL, **numbers)}"


def grids(methods: list[Method]) -> str:
    """Return the table of the parameters."""
    rows = []
    for method in methods:
        for name, values in method.grid.items():
            words = ", ".join(f"**{v}**" if v == method.start[name] else str(v) for v in values)
            rows.append((method.name, f"`{name}`", words))
    return table(("method", "parameter", "values"), rows)


def left_out() -> str:
    """Return the sentence on methods that are missing."""
    missing = [method for method in METHODS.values() if not method.available()]
    lines = [f"{method.name} is left out: it is not installed here." for method in missing]
    return prose("\n".join([IMPLICIT, *lines]))


def answered(
    store: Store, name: str, each: Set, methods: list[Method], effort: Effort
) -> dict[str, list[Answer]]:
    """Return the answers of the methods that were run on a set."""
    records = {method.name: runs(store, name, each, method, effort) for method in methods}
    return {method: answers for method, answers in records.items() if answers}


def section(each: Set, records: dict[str, list[Answer]]) -> str:
    """Return the table of a set."""
    reference = records.get(REFERENCE, [])
    done = max(map(len, records.values()))
    rows = []
    for method, answers in records.items():
        words = method if len(answers) == done else f"{method} ({len(answers)} of {each.runs})"
        rows.append(row(words, answers, reference))
    return f"{done} of {each.runs} {each.what}.\n\n{table(HEADER, rows)}"


def runs(store: Store, name: str, each: Set, method: Method, effort: Effort) -> list[Answer]:
    """Return what a method does in each run; fewer if answers are missing."""
    found = []
    for run in range(each.runs):
        try:
            best = {"setting": {}, "error": 0.0, "trials": 0, "seconds": 0.0}
            if method.grid:
                best = chosen(store, name, each, method, run, effort)
            answer = scored(store, name, each, method, run, best["setting"], best["error"])
        except LookupError:
            break
        found.append({**answer, "choice": best})
        words = setting_in_words(best["setting"])
        print(f"{name}: {method.name} {run}: {answer['rmse']:.4f} ({words})", flush=True)
    return found


def row(name: str, found: list[Answer], reference: list[Answer]) -> tuple[str, ...]:
    """Return a row of a table."""
    both = list(zip(found, reference, strict=False))
    beside = [a["rmse"] - b["rmse"] for a, b in both]
    one = [a["ratio"] / b["ratio"] for a, b in both]
    whole = [
        (1 + a["choice"]["seconds"] / a["seconds"]) * ratio
        for (a, _), ratio in zip(both, one, strict=True)
    ]
    is_reference = found is reference
    return (
        name,
        *(mean_std([answer[key] for answer in found]) for key in ("rmse", "mae", "plain")),
        "–" if is_reference or not both else signed(beside),
        mean_std([answer.get("log_likelihood", np.nan) for answer in found]),
        "1" if is_reference else times(one),
        times(whole),
        setting_in_words(found[0]["choice"]["setting"]),
    )


def signed(differences: list[float]) -> str:
    """Return "mean ± standard deviation" with a sign."""
    text = mean_std(differences)
    return text if text.startswith("-") else f"+{text}"


def times(ratios: list[float]) -> str:
    """Return the median of ratios, to two digits."""
    return (
        f"{np.median(ratios):.2g}"
        if ratios and np.median(ratios) < 10
        else (f"{np.median(ratios):.0f}" if ratios else "–")
    )


def setting_in_words(setting: dict[str, Any]) -> str:
    """Return a setting in one line."""
    words = [f"{key} {value}" for key, value in setting.items()]
    return ", ".join(words).replace("_", " ") or "–"


def more_rank(store: Store, sets: dict[str, Set]) -> str:
    """Return the table of the sampler's errors at every rank."""
    method = METHODS["nmd.sample"]
    rows = []
    for name, each in sets.items():
        if each.choose_once:
            continue  # too long
        errors = [
            [error_at(store, name, each, method, run, rank) for run in range(each.runs)]
            for rank in SAMPLER_RANKS
        ]
        if not np.all(np.isnan(errors)):
            rows.append((name, *(mean_std(found) for found in errors)))
    text = prose(
        """
        RMSE of `nmd.sample` at every rank, without a choice.
        """
    )
    return f"{text}\n\n{table(('data', *(f'rank {rank}' for rank in SAMPLER_RANKS)), rows)}"


def error_at(store: Store, name: str, each: Set, method: Method, run: int, rank: int) -> float:
    """Return the test error at a rank; NaN if it is missing."""
    try:
        return float(scored(store, name, each, method, run, {"rank": rank}, 0.0)["rmse"])
    except LookupError:
        return float("nan")
