"""The best setting from fresh starts, as a fit without a choice begins.

The error of a trial may be that of the way to it.  Where a fresh start ends elsewhere, other ranks
that were as good are tried, and then stronger ridges.  A fit that ends early after a path of ridges
(`nmd_lab.solver.ridge_path`) is tried, too.

Trials of about as many iterations as a fit has, where short ones are not enough.
"""

from __future__ import annotations

from .moves import FINE, Moves, is_close, mean_of, of_model
from .setting import Setting, Trial

COARSE = 10**0.5  # factor between ridges of the first path, and from fresh starts
RATIO = 4 / 3  # least ratio between a rank and a larger one to try
RATIO_SLOW = 2.0  # the same for tables, whose trials take long
MANY = 32  # number of components with which trials take long
GAIN = 0.002  # decrease of the mean loss that is worth so many components; less is worth fewer
SAME = 2.0  # standard errors of the difference up to which a fresh start ends at the same
DIFFERENT = 0.002  # relative difference up to which it does, too
OTHERS = 3  # other ranks to try where the best trial is not repeated


def strongest_ridge(moves: Moves, best: Trial) -> Trial:
    """Return the trial of strongest ridge whose error is not clearly above the lowest."""
    alike = [t for t in moves.trials.done if t.starts and _but_ridge(t) == _but_ridge(best)]
    close = [trial for trial in alike if is_close(trial, best)]
    strongest = max(close, key=lambda trial: trial.setting.alpha, default=best)
    while strongest.setting.alpha < moves.unit and not (moves.stopped or best.is_exact):
        alpha = moves.space.stepped("alpha", strongest.setting.alpha, COARSE)
        if alpha is None:
            break
        stronger = moves.trials.run(strongest.setting._replace(alpha=alpha), strongest.starts)
        if not is_close(stronger, best):
            break
        strongest = stronger
    return strongest


def from_fresh_starts(moves: Moves, best: Trial) -> tuple[Trial, Trial | None]:
    """Return a trial from a fresh start, and the one with the best setting if it is worse."""
    path = None
    if moves.space.alpha is None and moves.trials.may_follow_path(best.setting):
        path = moves.trials.run(best.setting, path=True)
        first = path if _repeats(path, best) else _of_best_ridge(moves, path)
        wider = _of_larger_rank(moves, first)
        if wider.mean < best.mean:
            return wider, None
    fresh = moves.trials.run(best.setting, fresh=True)
    if _repeats(fresh, best):
        return fresh, None
    if path is not None and _repeats(path, best) and path.mean < fresh.mean:
        return path, None
    for setting in _as_good(moves, best):
        if not moves.stopped:
            moves.trials.run(setting, fresh=True)
    _try_fewer(moves, best)
    _try_stronger(moves, best)
    return _best_cold(moves, best), fresh


def ridge_from_fresh_starts(moves: Moves, setting: Setting, *, path: bool) -> Trial:
    """Return the best trial from fresh starts, or along paths, with ridges around that given.

    Along a path larger ranks are tried, too.
    """
    first = moves.trials.run(setting, path=path, fresh=not path)
    best = _of_best_ridge(moves, first)
    return _of_larger_rank(moves, best) if path else best


def _of_best_ridge(moves: Moves, trial: Trial) -> Trial:
    """Return the best trial that begins as this one, with ridges around its own."""
    path = trial.ending is not None

    def run(setting: Setting) -> Trial:
        return moves.trials.run(setting, path=path, fresh=not path)

    return moves.climb_with(trial, "alpha", FINE, run)


def _best_cold(moves: Moves, best: Trial) -> Trial:
    """Return the best of all trials from a start of their own."""
    cold = (t for t in moves.trials.done if t.cold and t.is_comparable(best))
    return min(cold, key=mean_of, default=best)


def _of_larger_rank(moves: Moves, path: Trial) -> Trial:
    """Return a trial along a path whose rank is larger as long as that clearly helps."""
    for larger in moves.space.ranks if moves.space.rank is None else ():
        rank = path.setting.rank
        near = moves.space.given_ranks is None and larger < RATIO * rank
        if larger <= rank or near or moves.stopped:
            continue
        other = moves.trials.run(path.setting._replace(rank=larger), path=True)
        if not other.mean < (1 - GAIN * larger / MANY) * path.mean:
            break
        path = other
    return path


def _as_good(moves: Moves, best: Trial) -> list[Setting]:
    """Return settings of other ranks whose trials are not clearly worse than the best one."""
    tied: dict[int, Trial] = {}
    for trial in of_model(moves, best):
        if trial.error <= best.error + trial.spread(best):
            tied.setdefault(trial.setting.rank, trial)
    tied.pop(best.setting.rank, None)
    ranks = sorted(tied)
    chosen = {ranks[round(k * (len(ranks) - 1) / (OTHERS - 1))] for k in range(OTHERS) if ranks}
    return [tied[rank].setting for rank in sorted(chosen)]


def _try_fewer(moves: Moves, best: Trial) -> None:
    """Try fewer and fewer components from fresh starts, as long as that helps.

    With a linear f a start has the largest components first, and many are no worse than few.
    """
    last = _best_cold(moves, best)
    may_help = moves.space.rank is None and not last.setting.nonlinearity.linear
    while may_help and last.error > best.error and not moves.stopped:
        rank = moves.space.rank_near(round(last.setting.rank / RATIO))
        if not 0 < rank < last.setting.rank:
            break
        fewer = moves.trials.run(last.setting._replace(rank=rank), fresh=True, refined=True)
        if fewer.mean >= last.mean:
            break
        last = fewer


def _try_stronger(moves: Moves, best: Trial) -> None:
    """Try the best setting from fresh starts with stronger ridges, as long as that helps."""
    last = _best_cold(moves, best)
    while last.error > best.error and moves.space.alpha is None and not moves.stopped:
        alpha = moves.space.stepped("alpha", last.setting.alpha, COARSE)
        if alpha is None:
            break
        stronger = moves.trials.run(last.setting._replace(alpha=alpha), fresh=True)
        if stronger.mean >= last.mean:
            break
        last = stronger


def _repeats(fresh: Trial, best: Trial) -> bool:
    """Return whether the error of a trial from a fresh start is not clearly above the best one."""
    return fresh.error - best.error <= max(SAME * fresh.spread(best), DIFFERENT * best.error)


def _but_ridge(trial: Trial) -> Setting:
    """Return the setting of a trial but for its ridge."""
    return trial.setting._replace(alpha=0.0)


STEP = 10**0.5  # factor between the ridges of patient trials
SURELY = 2.0  # standard errors by which the short trial must be better for no further ones
CLEARLY = 3.0  # standard errors by which trials without refinements must be better


def best_of_patient(moves: Moves, best: Trial) -> Trial:
    """Return the best trial, which may be one of about as many iterations as a fit has.

    Where f is flat the iteration is slow, and short trials are those of a stronger ridge.  A lower
    objective can be a worse answer, so trials without refinements are tried as well.
    """
    usual = _patient(moves, best.setting, refined=True)
    if best.setting.loss.degree == 2 and best.clearly_below(usual, SURELY):
        return best  # the iteration is not slow
    usual = _climb(moves, usual)
    plain = _climb(moves, _patient(moves, usual.setting, refined=False))
    chosen = plain if plain.clearly_below(usual, CLEARLY) else usual
    return chosen if chosen.mean < best.mean else best


def _patient(moves: Moves, setting: Setting, *, refined: bool) -> Trial:
    """Return a trial that begins as a fit does and has about as many iterations."""
    return moves.trials.run(setting, patient=True, refined=refined)


def _climb(moves: Moves, first: Trial) -> Trial:
    """Return the best trial with weaker ridges, with stronger ones, and with none."""
    best = first
    for step in (1 / STEP, STEP):
        last = first
        while not moves.stopped:
            alpha = moves.space.stepped("alpha", last.setting.alpha, step)
            if alpha is None:
                break
            setting = last.setting._replace(alpha=alpha)
            trial = _patient(moves, setting, refined=first.refined)
            if not trial.mean < last.mean:
                break
            last = trial
        best = last if last.mean < best.mean else best
    if moves.stopped or not moves.space.allows_alpha(0.0):
        return best
    none = _patient(moves, first.setting._replace(alpha=0.0), refined=first.refined)
    return none if none.mean < best.mean else best
