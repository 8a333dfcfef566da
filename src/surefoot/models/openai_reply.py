"""A whole reply on the OpenAI chat wire, read into a `ModelMessage`."""

from typing import Final

from surefoot.models.json_edge import Json, items, mapping, text, whole, write
from surefoot.models.usage import estimated, price_of
from surefoot.types.errors import ModelRefused, ModelUnreachable
from surefoot.types.messages import FinishReason, ModelMessage, ModelSettings, NativeCall, Usage

FINISH: Final[dict[str, FinishReason]] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


def read_reply(reply: Json, sent_bytes: int, settings: ModelSettings) -> ModelMessage:
    """The first choice of a reply. `sent_bytes`: the size of the request, from which missing usage is estimated.

    Raises `ModelUnreachable` when there is no choice in it, `ModelRefused` when the model declined to answer.
    """
    choices = items(reply.get("choices"))
    if not choices:
        raise ModelUnreachable(f"{text(reply.get('model')) or 'the model'} sent a reply without any choice; retry")
    choice = mapping(choices[0])
    message = mapping(choice.get("message"))
    content, reasoning = parts_of(message.get("content"))
    if refusal := text(message.get("refusal")):
        raise ModelRefused(f"the model declined to answer: {refusal}", kind="refused")
    reasoning = reasoning or text(message.get("reasoning_content")) or text(message.get("reasoning"))
    calls = _calls_of(message)
    usage = usage_of(reply.get("usage"), settings) or estimated(sent_bytes, content + reasoning, calls, settings)
    return ModelMessage(
        "assistant",
        content,
        calls,
        reasoning=reasoning,
        finish_reason=FINISH.get(text(choice.get("finish_reason")), "unknown"),
        usage=usage,
        model=text(reply.get("model")),
        id=text(reply.get("id")),
    )


def parts_of(content: object) -> tuple[str, str]:
    """Content as (visible text, reasoning). It may be text, nothing, or a list of parts of either kind."""
    if isinstance(content, str):
        return content, ""
    shown: list[str] = []
    thought: list[str] = []
    for item in items(content):
        if isinstance(item, str):
            shown.append(item)
            continue
        part = mapping(item)
        if "thinking" in part:
            inner = part["thinking"]
            thought.append(inner if isinstance(inner, str) else "".join(parts_of(inner)))
        else:
            shown.append(text(part.get("text")))
    return "".join(shown), "".join(thought)


def arguments_of(value: object) -> str | Json:
    """A call's arguments as received: text, or an object where a server sends one. Anything else as its JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return mapping(value)  # pyright: ignore[reportUnknownArgumentType] - decoded JSON
    return "" if value is None else write(value).decode()


def _calls_of(message: Json) -> tuple[NativeCall, ...]:
    raw_calls = items(message.get("tool_calls"))
    if not raw_calls and isinstance(message.get("function_call"), dict):  # the form before `tool_calls`
        raw_calls = [{"function": message["function_call"]}]
    calls: list[NativeCall] = []
    for item in raw_calls:
        raw = mapping(item)
        function = mapping(raw.get("function"))
        arguments = arguments_of(function.get("arguments"))
        calls.append(NativeCall(text(raw.get("id")), text(function.get("name")), arguments))
    return tuple(calls)


def usage_of(raw: object, settings: ModelSettings) -> Usage | None:
    """What a request used, as told; `None` when nothing was told. Its price as told, else from the settings."""
    told = mapping(raw)
    if not told:
        return None
    used_in = whole(told.get("prompt_tokens"))
    used_out = whole(told.get("completion_tokens"))
    details_in = told.get("prompt_tokens_details")
    cached = whole(mapping(details_in).get("cached_tokens")) if details_in else 0
    details_out = told.get("completion_tokens_details")
    cost = told.get("cost")
    return Usage(
        used_in,
        used_out,
        cached or whole(told.get("prompt_cache_hit_tokens")),  # DeepSeek's name for it
        whole(mapping(details_out).get("reasoning_tokens")) if details_out else 0,
        float(cost) if isinstance(cost, int | float) else price_of(used_in, used_out, settings),
    )
