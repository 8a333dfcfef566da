"""What is being said in the runs that this process drives: best effort, never on record, and never waited for by a run.

Of each run the text of the reply under way is kept, at most 64 KiB of it. A reader has a place in it, as in a journal,
so nobody has a queue; who lags behind what is kept is told of a gap. Source: spec/serving.md, section 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from surefoot.server.answers import dumped
from surefoot.server.sse import frame
from surefoot.telling.text import visible
from surefoot.types.events import Event, ModelFailed, ModelReplied, RunEnded
from surefoot.types.messages import CallPreview, Inside, ReasoningDelta, Reset, Signal, TextDelta, ToolProgress

KEPT_CHARS = 64 * 1024
_MOST_RUNS = 1_000


@dataclass(slots=True)
class Text:
    """The end of a text that grows; `cut` characters before it are no longer kept."""

    kept: str = ""
    cut: int = 0

    @property
    def end(self) -> int:
        return self.cut + len(self.kept)

    def add(self, more: str) -> None:
        self.kept += more
        if (over := len(self.kept) - KEPT_CHARS) > 0:
            self.kept, self.cut = self.kept[over:], self.cut + over


@dataclass(slots=True)
class Heard:
    """The place of one reader in what is said: the turn, characters of each text in it, and the last sign of a call."""

    turn: int = -1
    text: int = 0
    reasoning: int = 0
    sign: int = 0


@dataclass(slots=True)
class Said:
    """What is said in one run about the step under way. `broke_off`: why the last turn began anew, "" if it did not."""

    turn: int = 0
    step: int = 1
    text: Text = field(default_factory=Text)
    reasoning: Text = field(default_factory=Text)
    broke_off: str = ""
    sign: int = 0
    signs: dict[str, tuple[int, dict[str, object]]] = field(default_factory=dict[str, tuple[int, dict[str, object]]])
    readers: set[asyncio.Event] = field(default_factory=set[asyncio.Event])

    def take(self, item: Event | Signal) -> None:
        """Hear what happens; of events only that a reply is over."""
        match item:
            case TextDelta(text):
                self.text.add(text)
            case ReasoningDelta(text):
                self.reasoning.add(text)
            case Reset(reason):
                self._turn(reason)
            case CallPreview(index, name):
                self._sign(f"preview {index}", {"type": "under_way", "name": visible(name)})
            case ToolProgress():
                told = {"call_id": item.call_id, "text": visible(item.text), "done": item.done, "total": item.total}
                self._sign(item.call_id, {"type": "progress", **told})
            case ModelReplied(step=step):
                self.step = step + 1
                self._turn("")
            case ModelFailed() | RunEnded():
                self._turn("")
            case _:
                return
        for reader in self.readers:
            reader.set()

    def since(self, heard: Heard) -> list[bytes]:
        """The frames that a reader at this place lacks; moves the place."""
        return [frame("signal", dumped(one)) for one in self.signals(heard)]

    def signals(self, heard: Heard) -> list[dict[str, object]]:
        told: list[dict[str, object]] = []
        if heard.turn != self.turn:
            if self.broke_off and heard.turn >= 0:
                told.append({"type": "reset", "reason": visible(self.broke_off)})
            heard.turn, heard.text, heard.reasoning = self.turn, 0, 0
        for kind, text, place in (("reasoning", self.reasoning, heard.reasoning), ("text", self.text, heard.text)):
            if place < text.cut:
                told.append({"type": "gap"})
            if place < text.end:
                piece = text.kept[max(place - text.cut, 0) :]
                told.append({"type": kind, "step": self.step, "text": visible(piece)})
        heard.text, heard.reasoning = self.text.end, self.reasoning.end
        told += [one for number, one in self.signs.values() if number > heard.sign]
        heard.sign = self.sign
        return told

    def _turn(self, broke_off: str) -> None:
        self.turn += 1
        self.text, self.reasoning, self.broke_off = Text(), Text(), broke_off
        self.signs.clear()

    def _sign(self, key: str, told: dict[str, object]) -> None:
        self.sign += 1
        self.signs[key] = self.sign, told


class Live:
    """What is said in all runs of this process."""

    def __init__(self) -> None:
        self._runs: dict[str, Said] = {}

    def tell(self, run_id: str, item: Event | Signal) -> None:
        """Hear what happens in a run, also in that of an agent which it has asked."""
        while isinstance(item, Inside):
            run_id, item = item.run_id, item.item  # type: ignore[assignment]  # an event or a signal, as `Inside` says
        self._of(run_id).take(item)
        if isinstance(item, RunEnded) and not self._runs[run_id].readers:
            del self._runs[run_id]

    @contextmanager
    def listen(self, run_id: str, wake: asyncio.Event) -> Generator[Said]:
        """What is said in a run; `wake` is set when there is more."""
        said = self._of(run_id)
        said.readers.add(wake)
        try:
            yield said
        finally:
            said.readers.discard(wake)

    def _of(self, run_id: str) -> Said:
        if run_id not in self._runs and len(self._runs) >= _MOST_RUNS:
            silent = [name for name, said in self._runs.items() if not said.readers]
            for name in silent[: len(silent) // 2 + 1]:
                del self._runs[name]
        return self._runs.setdefault(run_id, Said())
