"""The best setting from cold starts, as a fit without a choice begins.

The error of a trial may be that of the way to it.  Where a cold start ends elsewhere, other ranks
that were as good are tried, and then stronger ridges.  A fit that ends early after a path of ridges
(`nmd_lab.solver.ridge_path`) is tried, too, and so are trials of about as many iterations as a fit
has, where short ones are not enough.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from .moves import COARSE, FINE, LONG_RANKS, RANK_GAIN, RANK_RATIO, Moves
from .space import Setting
from .trial import CLEARLY, Kind, Trial

OTHER_RANKS = 3  # to try where the best trial is not repeated


def strongest_ridge(moves: Moves, best: Trial) -> Trial:
    """Return the trial of strongest ridge whose error is not clearly above the lowest."""

    def step(trial: Trial) -> Setting | None:
        enough = trial.setting.alpha >= moves.unit or best.is_exact
        return None if enough else moves.space.stepped(trial.setting, "alpha", COARSE)

    same = best.setting._replace(alpha=0.0)
    alike = (t for t in moves.trials.done if t.setting._replace(alpha=0.0) == same)
    close = (trial for trial in alike if trial.is_close(best))
    strongest = max(close, key=lambda trial: trial.setting.alpha, default=best)
    return moves.follow(strongest, step, lambda other, _: other.is_close(best), warm=True)


def from_cold_starts(moves: Moves, best: Trial) -> tuple[Trial, Trial | None]:
    """Return a trial from a cold start, and the one with the best setting if it is worse."""
    path = None
    if moves.space.alpha is None and moves.trials.may_follow_path(best.setting):
        path = moves.trials.run(best.setting, kind="ridge_path")
        first = path if _repeats(path, best) else _of_best_ridge(moves, path)
        wider = _of_larger_rank(moves, first)
        if wider < best:
            return wider, None
    cold = moves.trials.run(best.setting, kind="cold_start")
    if _repeats(cold, best):
        return cold, None
    if path is not None and _repeats(path, best) and path < cold:
        return path, None
    for setting in _as_good(moves, best):
        if not moves.stopped:
            moves.trials.run(setting, kind="cold_start")
    _try_fewer(moves, best)
    _try_stronger(moves, best)
    return _best_cold(moves, best), cold


def ridge_from_cold_starts(moves: Moves, setting: Setting, kind: Kind) -> Trial:
    """Return the best trial from cold starts, or along paths, with ridges around that given.

    Along a path larger ranks are tried, too.
    """
    best = _of_best_ridge(moves, moves.trials.run(setting, kind=kind))
    return _of_larger_rank(moves, best) if kind == "ridge_path" else best


def _of_best_ridge(moves: Moves, trial: Trial) -> Trial:
    """Return the best trial that begins as this one, with ridges around its own."""
    return moves.climb(trial, "alpha", FINE, partial(moves.trials.run, kind=trial.kind))


def _best_cold(moves: Moves, best: Trial) -> Trial:
    """Return the best of all trials from a start of their own."""
    cold = (t for t in moves.trials.done if t.is_cold and t.is_comparable(best))
    return min(cold, default=best)


def _of_larger_rank(moves: Moves, path: Trial) -> Trial:
    """Return a trial along a path whose rank is larger as long as that clearly helps."""

    def step(trial: Trial) -> Setting | None:
        rank = moves.next_rank(trial.setting.rank, RANK_RATIO)
        return None if rank is None else trial.setting._replace(rank=rank)

    def helps(other: Trial, trial: Trial) -> bool:
        return other.mean < (1 - RANK_GAIN * other.setting.rank / LONG_RANKS) * trial.mean

    return moves.follow(path, step, helps, kind="ridge_path")


def _as_good(moves: Moves, best: Trial) -> list[Setting]:
    """Return settings of other ranks whose trials are not clearly worse than the best one."""
    tied: dict[int, Trial] = {}
    for trial in moves.of_model(best):
        if trial.error <= best.error + trial.spread(best):
            tied.setdefault(trial.setting.rank, trial)
    tied.pop(best.setting.rank, None)
    ranks = sorted(tied)
    spaced = (round(k * (len(ranks) - 1) / (OTHER_RANKS - 1)) for k in range(OTHER_RANKS))
    return [tied[rank].setting for rank in sorted({ranks[k] for k in spaced if ranks})]


def _try_fewer(moves: Moves, best: Trial) -> None:
    """Try fewer and fewer components from cold starts, as long as that helps.

    With a linear f a start has the largest components first, and many are no worse than few.
    """
    first = _best_cold(moves, best)
    if moves.space.rank is not None or first.setting.nonlinearity.linear:
        return

    def step(trial: Trial) -> Setting | None:
        rank = moves.space.rank_near(round(trial.setting.rank / RANK_RATIO))
        fewer = trial.error > best.error and 0 < rank < trial.setting.rank
        return trial.setting._replace(rank=rank) if fewer else None

    moves.follow(first, step, kind="cold_start", refined=True)


def _try_stronger(moves: Moves, best: Trial) -> None:
    """Try the best setting from cold starts with stronger ridges, as long as that helps."""
    if moves.space.alpha is not None:
        return

    def step(trial: Trial) -> Setting | None:
        worse = trial.error > best.error
        return moves.space.stepped(trial.setting, "alpha", COARSE) if worse else None

    moves.follow(_best_cold(moves, best), step, kind="cold_start")


def _repeats(cold: Trial, best: Trial) -> bool:
    """Return whether the error of a trial from a cold start is not clearly above the best one."""
    return cold.error - best.error <= max(CLEARLY * cold.spread(best), 0.002 * best.error)


def best_of_long_trials(moves: Moves, best: Trial) -> Trial:
    """Return the best trial, which may be one of about as many iterations as a fit has.

    Where f is flat the iteration is slow, and short trials are those of a stronger ridge.  A lower
    objective can be a worse answer, so trials without refinements are tried as well.
    """
    usual = moves.trials.run(best.setting, kind="long_trial", refined=True)
    if best.setting.loss.degree == 2 and best.clearly_below(usual):
        return best  # the iteration is not slow
    usual = _of_other_ridges(moves, usual)
    plain = moves.trials.run(usual.setting, kind="long_trial", refined=False)
    plain = _of_other_ridges(moves, plain)
    chosen = plain if plain.clearly_below(usual, 3.0) else usual
    return min(best, chosen)


def _of_other_ridges(moves: Moves, first: Trial) -> Trial:
    """Return the best long trial with weaker ridges, with stronger ones, and with none."""
    how: dict[str, Any] = {"kind": "long_trial", "refined": first.refined}
    best = first
    for factor in (1 / COARSE, COARSE):

        def step(trial: Trial, factor: float = factor) -> Setting | None:
            return moves.space.stepped(trial.setting, "alpha", factor)

        best = min(best, moves.follow(first, step, **how))
    if moves.stopped or moves.space.alpha_near(0.0) != 0:
        return best
    return min(best, moves.trials.run(first.setting._replace(alpha=0.0), **how))
