"""A reply that arrives in pieces on the OpenAI chat wire, put together."""

from dataclasses import dataclass, field

from surefoot.models.json_edge import Json, items, mapping, read, text
from surefoot.models.openai_reply import FINISH, arguments_of, parts_of, usage_of
from surefoot.models.usage import estimated
from surefoot.types.errors import ModelRefused, ModelUnreachable
from surefoot.types.messages import (
    CallPreview,
    Emit,
    ModelMessage,
    ModelSettings,
    NativeCall,
    ReasoningDelta,
    TextDelta,
)


@dataclass(slots=True)
class _GrowingCall:
    """A call whose pieces are still arriving. `key` is the index the server gave, if it gave one."""

    key: object
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    whole: Json | None = None
    is_shown: bool = False

    def is_other(self, call_id: str, name: str) -> bool:
        """Whether a piece that carries a name belongs to another call than this one."""
        if call_id and self.id:
            return call_id != self.id
        if self.whole is not None:
            return True
        arguments = "".join(self.arguments)  # once they have begun the name is whole
        return bool(arguments) and (name != self.name or read(arguments) is not None)

    def finished(self) -> NativeCall:
        arguments = self.whole if self.whole is not None else "".join(self.arguments)
        return NativeCall(self.id, self.name, arguments)


class Assembler:
    """Takes the events of one streamed reply, shows its pieces as they come, and gives the whole message at the end.

    `error` is the body of an error that the server sent in the middle; `is_over` tells that no more is to come.
    """

    __slots__ = (
        "_calls", "_emit", "_finish", "_id", "_model", "_reasoning", "_refusal", "_text", "_usage", "error", "is_over",
    )  # fmt: skip

    def __init__(self, emit: Emit | None) -> None:
        self._emit = emit
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_GrowingCall] = []
        self._finish = ""
        self._model = ""
        self._id = ""
        self._usage: object = None
        self.error: Json | None = None
        self.is_over = False

    def feed(self, event: Json) -> None:
        """One event."""
        if event.get("error") or event.get("object") == "error":
            self.error = event
            return
        if choices := items(event.get("choices")):
            self._take(mapping(choices[0]))
        if not self._model:
            self._model = text(event.get("model"))
            self._id = text(event.get("id"))
        if usage := event.get("usage"):
            self._usage = usage

    def message(self, sent_bytes: int, settings: ModelSettings) -> ModelMessage:
        """The whole reply. Raises `ModelUnreachable` when it was cut off, `ModelRefused` when the model declined."""
        if not (self._finish or self.is_over) or not (self._finish or self._text or self._calls or self._refusal):
            raise ModelUnreachable("the stream ended before the reply was complete; retry")
        if self._refusal:
            raise ModelRefused(f"the model declined to answer: {''.join(self._refusal)}", kind="refused")
        for call in self._calls:
            self._show(call)
        content, reasoning = "".join(self._text), "".join(self._reasoning)
        calls = tuple(call.finished() for call in self._calls)
        usage = usage_of(self._usage, settings) or estimated(sent_bytes, content + reasoning, calls, settings)
        return ModelMessage(
            "assistant",
            content,
            calls,
            reasoning=reasoning,
            finish_reason=FINISH.get(self._finish, "unknown"),
            usage=usage,
            model=self._model,
            id=self._id,
        )

    def _take(self, choice: Json) -> None:
        if choice.get("index"):  # an alternative reply that nobody asked for
            return
        delta = mapping(choice.get("delta") or choice.get("message"))  # some servers send the whole message at once
        content = delta.get("content")
        if content:
            self._take_content(content)
        if len(delta) > 1 or content is None:
            self._take_rest(delta)
        if finish := choice.get("finish_reason"):
            self._finish = text(finish)

    def _take_content(self, content: object) -> None:
        shown, thought = (content, "") if isinstance(content, str) else parts_of(content)
        if thought:
            self._think(thought)
        if shown:
            self._text.append(shown)
            if self._emit:
                self._emit(TextDelta(shown))

    def _think(self, thought: str) -> None:
        self._reasoning.append(thought)
        if self._emit:
            self._emit(ReasoningDelta(thought))

    def _take_rest(self, delta: Json) -> None:
        if thought := text(delta.get("reasoning_content")) or text(delta.get("reasoning")):
            self._think(thought)
        if refusal := text(delta.get("refusal")):
            self._refusal.append(refusal)
        for item in items(delta.get("tool_calls")):
            piece = mapping(item)
            self._take_call(piece.get("index"), text(piece.get("id")), mapping(piece.get("function")))
        if function := mapping(delta.get("function_call")):  # the form before `tool_calls`
            self._take_call(0, "", function)

    def _take_call(self, key: object, call_id: str, function: Json) -> None:
        name = text(function.get("name"))
        call = self._call_for(key, call_id, name)
        call.id = call.id or call_id
        if name and name != call.name:  # a name may come in pieces, and some servers repeat it with every piece
            call.name += name
        if "arguments" not in function:
            return
        self._show(call)
        arguments = arguments_of(function["arguments"])
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        else:
            call.whole = arguments

    def _call_for(self, key: object, call_id: str, name: str) -> _GrowingCall:
        """The call that a piece belongs to.

        Some servers give no index, and some give 0 to each of several calls: then a name begins another call if it
        comes with another id, or without one after the call that was found is whole.
        """
        calls = self._calls
        if key is not None:
            found = next((call for call in reversed(calls) if call.key == key), None)
        elif call_id:
            found = next((call for call in calls if call.id == call_id), None)
        else:
            found = calls[-1] if calls and not (name and calls[-1].arguments) else None
        if found is not None and name and found.is_other(call_id, name):
            found = None
        if found is None:
            found = _GrowingCall(key)
            calls.append(found)
        return found

    def _show(self, call: _GrowingCall) -> None:
        if self._emit and call.name and not call.is_shown:
            self._emit(CallPreview(self._calls.index(call), call.name))
        call.is_shown = call.is_shown or bool(call.name)
