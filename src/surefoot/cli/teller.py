"""A run drawn in lines, event by event, of the rows that it is told in. Pure; who prints them is decided elsewhere."""

from __future__ import annotations

from dataclasses import replace

from surefoot.cli.plan_table import node_line
from surefoot.core.state.state import State
from surefoot.telling.plan import settled_node
from surefoot.telling.row import Row
from surefoot.telling.rows import rows_of
from surefoot.telling.tale import Tale
from surefoot.telling.text import Line, cells, count, cut
from surefoot.types import events as e
from surefoot.types import plan_events as p
from surefoot.types.outcomes import Ask
from surefoot.types.ports import Recorded

_SHOWN_LINES = 20


class Teller:
    """Tells a run event by event. `width` is in cells; `detail`: all of it, with times and record numbers.

    `state` is the run as far as it was told; for a run that goes on, it begins with what happened before.
    """

    def __init__(self, state: State, *, width: int = 200, detail: bool = False) -> None:
        self._tale = Tale(state)
        self._width = width
        self._detail = detail

    @property
    def state(self) -> State:
        return self._tale.state

    def tell(self, event: e.Event, at: float) -> list[Line]:
        """The lines of one event that happened at `at` (seconds since the epoch).

        Of a planned run, without details, a step is told by its row once it has come to something; what goes on inside
        it is told only where it concerns a person.
        """
        before, record = self._tale, Recorded(self.state.seen, at, "", event)
        self._tale = after = before.plus(record)
        if isinstance(event, e.RunEnded) or (self._detail and isinstance(event, e.RunStarted)):
            return []  # whoever shows the run tells its beginning and its end
        is_brief = before.state.planning is not None and not self._detail
        is_inside = isinstance(event, p.OfStep) or (isinstance(event, e.InStep) and not _concerns_a_person(event.event))
        lines: list[Line] = []
        if not is_brief or not is_inside:
            lines = [line for row in rows_of(record, before, after, is_whole=True) for line in self._drawn(row)]
        if is_brief and (node := settled_node(before.state, after.state, event)) is not None:
            line = node_line(node, at - before.began.get(node.id, at))
            lines.append(replace(line, text=cut(line.text, self._width)))
        return lines

    def _drawn(self, row: Row) -> list[Line]:
        """A row as lines: without details one, but for what a single model says; with them all that it opens."""
        is_text = row.kind in ("result", "reply", "reasoning") and row.style != "head"
        if self._detail and is_text:
            return _page(row)
        if row.folded and not self._detail:
            return []
        if row.kind == "reply" and row.opens is not None and row.parts[0].role == "model":
            return [Line("\n".join(line.text for line in row.opens.lines), row.style, row.indent)]
        room = self._width - row.indent
        if self._detail or row.whole:
            return [Line(row.text, row.style, row.indent)]
        texts = [part.text for part in row.parts if part.text != f"  #{row.call_id}"]
        rest = texts.pop() if row.kind == "result" and row.parts[-1].role == "runtime" else ""
        return [Line(cut("".join(texts), room - cells(rest)) + rest, row.style, row.indent)]


def _page(row: Row) -> list[Line]:
    """All of the texts that a row opens, each up to a page."""
    texts: list[list[str]] = []
    for line in row.opens.lines if row.opens is not None else ():
        if line.indent:
            texts[-1].append(line.text)
        else:
            texts.append([line.text])
    if row.took_s is not None:
        texts = texts or [[""]]
        texts[-1][-1] = f"{texts[-1][-1]} ({row.took_s:.2f} s)".lstrip()
    if texts and row.kind != "reply" and row.parts[0].role == "runtime":
        texts[0][0] = row.parts[0].text + texts[0][0]
    indent = row.indent + 2 * (row.kind == "reply")
    lines: list[Line] = []
    for text in texts:
        lines += [Line(one, row.style, indent + 2 * bool(at)) for at, one in enumerate(text[:_SHOWN_LINES])]
        if left := text[_SHOWN_LINES:]:
            lines.append(Line(f"… {count(len(left), 'more line')} (--events has all)", "dim", indent + 2))
    return lines


def _concerns_a_person(event: e.StepInner) -> bool:
    """Whether what happens inside a step is a question, a word about one, or a model that fails."""
    match event:
        case e.CallJudged(decision=decision, by=by):
            return bool(by) or isinstance(decision, Ask)
        case e.CallPaused() | e.ModelFailed() | e.DoubtSettled() | e.ModelTraitLearnt() | p.ReasoningStepViolated():
            return True
        case _:
            return isinstance(event, e.StepLimitReached)
