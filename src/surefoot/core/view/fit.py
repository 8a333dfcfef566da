"""How much of a run a role is shown, so that its next request fits the model's window. A pure question about the state.

While the request fits, what was shown is only added to. Once it does not, the oldest turns are folded, by the first of
these steps that is enough:

    results of all but the last few turns, oldest first, until the request is well below the window
    results of the last few but the newest, as few as needed
    long arguments of all but the newest
    the oldest turns are not shown any more
    results, then arguments, of the newest

What is folded stays so. The answer follows from the state alone, and `core/loop/fold.py` keeps it with each reply; so a
run that is taken up, replayed or forked shows the same. A request costs what is new in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from surefoot.core.state.state import State
from surefoot.core.state.turn import Rendered
from surefoot.core.state.window import TRAIT, Fit, marks, text_tokens
from surefoot.core.view.notes import form_in

Show = Callable[[int, int], Rendered]
"""What a role is shown of a turn: of its place from 0 on, and a level as `Fit.level` has it."""

KEPT_WHOLE = 3
"""The last turns, which are folded only when nothing else helps."""

_RESULTS, _ARGUMENTS, _TURNS = range(3)


def window_of(state: State, role: str) -> int | None:
    """The window of a role's model in tokens: as configured, else as its traits tell; less if an overflow said so."""
    speaker = state.speakers[role]
    told = speaker.traits.get(TRAIT, "")
    known = state.config.context_tokens or (int(told) if told.isdecimal() else None)
    limit = speaker.fit.limit
    return min(known, limit) if known and limit else known or limit


def fitted(state: State, role: str, show: Show, pinned: int, droppable: int) -> Fit:
    """What the role is shown next. `pinned`: tokens of all but the turns; `droppable`: turns that may be left out."""
    was = state.speakers[role].fit
    form = form_in(state, state.speakers[role].mode)
    window = window_of(state, role)
    if window is None:
        return was
    low, high = marks(window, was.stretch)
    load = _Load(state, show, was if was.form == form else replace(was, form=form, counted=0, turns=0))
    if pinned + load.turns > high:
        steps = state.steps
        for what, until, target in (
            (_RESULTS, steps - KEPT_WHOLE, low),
            (_RESULTS, steps - 1, high),
            (_ARGUMENTS, steps - 1, low),
            (_TURNS, droppable, low),
            (_RESULTS, steps, high),
            (_ARGUMENTS, steps, high),
        ):
            load.shrink(what, until, target - pinned)
            if pinned + load.turns <= high:
                break
    folded, stripped, dropped = load.until
    return Fit(form, state.steps, load.turns, pinned + load.turns, folded, stripped, dropped, was.stretch, was.limit)


class _Load:
    """The tokens of the turns as they are shown, and how far each kind of folding has come."""

    def __init__(self, state: State, show: Show, fit: Fit) -> None:
        self._state = state
        self._show = show
        self.until = [max(fit.folded, fit.dropped), max(fit.stripped, fit.dropped), fit.dropped]
        new = range(fit.counted, state.steps)
        self.turns = fit.turns + sum(self._tokens(at, _TURNS + 1 if at < fit.dropped else fit.level(at)) for at in new)

    def shrink(self, what: int, until: int, target: int) -> None:
        """Fold one turn after the other, oldest first, up to that turn or until so many tokens are left."""
        while self.turns > target and self.until[what] < until:
            at = self.until[what]
            self.until[what] += 1
            self.turns += self._tokens(at, what + 1) - self._tokens(at, what)

    def _tokens(self, at: int, level: int) -> int:
        if level > _TURNS:  # what it said of conventions still holds
            return text_tokens(self._state.turns[at].conventions)
        return self._show(at, level).tokens
