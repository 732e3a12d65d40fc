"""Trials of about as many iterations as a fit has, where short ones are not enough."""

from __future__ import annotations

from .moves import Moves
from .setting import Setting, Trial

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
