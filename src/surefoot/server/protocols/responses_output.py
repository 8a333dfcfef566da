"""A run as the output of a response of OpenAI: a pure mapping of its records to items, and to frames that tell them.

A frame's number is made of the place of the record that it tells, so a reader who names the last one that came goes on
from there, whoever serves. Only what is on record is told: words under way could be taken back. Source:
spec/serving.md, section 7.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from surefoot.core.state.state import State
from surefoot.core.state.turn import Call
from surefoot.core.text import json_text
from surefoot.telling.calls import shown_call
from surefoot.telling.state import Question
from surefoot.telling.tale import NO_TALE, inner_event
from surefoot.telling.text import visible
from surefoot.types import events as e
from surefoot.types.ports import Recorded

A_RECORD = 10_000
"""Numbers of frames for each record: the first two for the beginning, those from `_STANDS` on for how a run stands."""
_STANDS = 9_000
_LABEL = "surefoot"
Json = Mapping[str, Any]  # Any: what JSON holds
Part = Literal["reasoning_summary", "content"]
_TEXTS: Mapping[Part, tuple[str, str, Json, Json]] = {
    "reasoning_summary": ("reasoning_summary_text", "summary_index", {}, {"type": "summary_text"}),
    "content": ("output_text", "content_index", {"logprobs": []}, {"type": "output_text", "annotations": []}),
}


class Output:
    """What a run has put out, as far as it was told."""

    def __init__(self) -> None:
        self.tale = NO_TALE
        self._items: dict[str, Json] = {}
        self._frames: list[Json] = []
        self._number = 0

    @property
    def items(self) -> list[Json]:
        return list(self._items.values())

    def add(self, records: Iterable[Recorded]) -> list[Json]:
        self._frames = []
        for record in records:
            self.tale, self._number = self.tale.plus(record), record.seq * A_RECORD + 2
            event = record.event
            state = self.tale.inner[event.step_id] if isinstance(event, e.InStep) else self.tale.state
            self._of(inner_event(record), state)
        return self._frames

    def begin(self, response: Json) -> list[Json]:
        """The frames before those of the next record; the response is as it stands."""
        self._frames, self._number = [], self.tale.state.seen * A_RECORD
        for kind in ("created", "in_progress"):
            self._tell(kind, response=response)
        return self._frames

    def stand(self, run_id: str, asks: Mapping[str, Question], said: str) -> list[Json]:
        """The frames that tell what a run asks that stands still, and what is `said` of it."""
        self._frames, self._number = [], (self.tale.state.seen - 1) * A_RECORD + _STANDS
        for name, one in asks.items():
            given = json_text({"question": one.text} if one.arguments is None else one.arguments)
            told = {"id": f"mcpr_{run_id}:{name}", "server_label": _LABEL, "name": one.name or one.about}
            self._done({"type": "mcp_approval_request", **told, "arguments": given})
        if said:
            self._message(said)
        return self._frames

    def end(self, kind: str, response: Json) -> Json:
        self._tell(kind, response=response)
        return self._frames[-1]

    def _of(self, event: e.Event, state: State) -> None:
        match event:
            case e.ModelReplied(message=message) if message.reasoning.strip() and state.turn is not None:
                ident = f"rs_{state.scope}.{state.turn.step}" if state.scope else f"rs_{state.turn.step}"
                item = {"id": ident, "type": "reasoning"}
                self._text(item, "summary", "reasoning_summary", visible(message.reasoning))
            case e.CallStarted(call_id) if (call := state.call(call_id)) is not None:
                self._call(call)
            case e.CallJudged(call_id) | e.CallEnded(call_id) | e.CallReused(call_id) | e.DoubtSettled(call_id):
                if (call := state.call(call_id)) is not None and call.result is not None:
                    self._result(call)
            case e.RunEnded(ending) if answer := visible(getattr(ending, "answer", "")):
                self._message(answer)
            case _:
                pass

    def _message(self, text: str) -> None:
        item = {"id": f"msg_{self._number}", "type": "message", "role": "assistant", "status": "completed"}
        self._text(item, "content", "content", text)

    def _text(self, item: Json, holds: str, part: Part, text: str) -> None:
        words, index, more, empty = _TEXTS[part]
        whole: Json = {**empty, "text": text}
        self._add({**item, holds: []})
        at = {**self._place(item), index: 0}
        self._tell(f"{part}_part.added", part={**empty, "text": ""}, **at)
        self._tell(f"{words}.delta", delta=text, **at, **more)
        self._tell(f"{words}.done", text=text, **at, **more)
        self._tell(f"{part}_part.done", part=whole, **at)
        self._done({**item, holds: [whole]})

    def _call(self, call: Call) -> Json:
        ident = f"mcp_{call.id}"
        if (known := self._items.get(ident)) is not None:
            return known
        arguments, _ = shown_call(call)
        told = {"id": ident, "server_label": _LABEL, "name": visible(call.name), "arguments": arguments}
        item = {"type": "mcp_call", **told, "output": None, "error": None, "approval_request_id": None}
        self._add({**item, "status": "in_progress"})
        self._tell("mcp_call.in_progress", **self._place(item))
        self._tell("mcp_call_arguments.done", arguments=arguments, **self._place(item))
        return self._items[ident]

    def _result(self, call: Call) -> None:
        item, (_, content) = self._call(call), shown_call(call)
        if item["status"] != "in_progress":
            return
        is_error = call.result is not None and call.result.is_error
        status = "failed" if is_error else "completed"
        error = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": content}]}
        self._tell(f"mcp_call.{status}", **self._place(item))
        self._done({**item, "status": status, **({"error": error} if is_error else {"output": content})})

    def _place(self, item: Json) -> Json:
        return {"item_id": item["id"], "output_index": list(self._items).index(item["id"])}

    def _add(self, item: Json) -> None:
        self._items[item["id"]] = item
        self._tell("output_item.added", item=item, output_index=self._place(item)["output_index"])

    def _done(self, item: Json) -> None:
        if item["id"] not in self._items:
            self._add(item)
        self._items[item["id"]] = item
        self._tell("output_item.done", item=item, output_index=self._place(item)["output_index"])

    def _tell(self, kind: str, **more: object) -> None:
        self._frames.append({"type": f"response.{kind}", "sequence_number": self._number, **more})
        self._number += 1
