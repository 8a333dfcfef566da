"""From references and the results of their calls to the context that a model reads. Pure: the same, the same again."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from surefoot.core.text import clean
from surefoot.core.told import plain
from surefoot.knowledge.prefetch.budget import cut, shares, tokens_of
from surefoot.knowledge.prefetch.frame import mark_for, message_of, shown_error, shown_value
from surefoot.knowledge.prefetch.references import Extraction
from surefoot.knowledge.prefetch.resolvers import (
    EXHAUSTED,
    NO_RESULT,
    NOT_TEXT,
    Lookups,
    planned,
    refusal,
    told,
)
from surefoot.types.decisions import Ask, Deny
from surefoot.types.prehydration import (
    TIMED_OUT,
    FailedReference,
    HydratedContext,
    PreHydrationConfig,
    PreHydrationItem,
    Reference,
    ResolvedReference,
)
from surefoot.types.tools import ToolResult

Outcome = ToolResult | Ask | Deny
"""What came of a call: its whole result, or the word of the gate that kept it from being made."""


def hydrated(
    found: Extraction,
    made: Lookups,
    outcomes: Mapping[str, Outcome],
    config: PreHydrationConfig,
    *,
    run_id: str,
    prefix: str = "prehydrate_",
) -> HydratedContext:
    """What the model gets to read of references, and what became of each.

    `outcomes` go by call id, as `planned` gives them with the same `prefix`; contents must be whole, so read a result
    that was cut from its blob. A call without an outcome has failed. Contents are budgeted as a model is shown them,
    with what could act in them broken (`core/told.py`).
    """
    refused = [FailedReference(ref, why) for ref in found.references if (why := refusal(ref, made))]
    failed: list[FailedReference] = []
    good: list[tuple[str, Reference, ToolResult, str]] = []
    for call in planned(found.references, made, prefix=prefix):
        outcome = outcomes.get(call.call_id)
        if isinstance(outcome, ToolResult) and _is_text(outcome):
            good.append((call.call_id, call.ref, outcome, plain(outcome.content)))
        else:
            failed.append(FailedReference(call.ref, _error(outcome), call.call_id))
    given = shares([tokens_of(len(shown.encode())) for *_, shown in good], config.max_context_tokens)
    resolved: list[ResolvedReference] = []
    for (call_id, ref, result, shown), tokens in zip(good, given, strict=True):
        if shown and not tokens:
            failed.append(FailedReference(ref, EXHAUSTED, call_id))
        else:
            resolved.append(_resolved(call_id, ref, result, shown, tokens))
    return _context(found, resolved, [*refused, *failed], f"{run_id}:{prefix}")


def items_of(context: HydratedContext) -> tuple[PreHydrationItem, ...]:
    """What the journal keeps of each reference, in their order, without credentials."""
    by_ref = {id(each.ref): each for each in (*context.resolved, *context.failed)}
    items: list[PreHydrationItem] = []
    for ref in context.references:
        each, value = by_ref[id(ref)], shown_value(ref)
        if isinstance(each, ResolvedReference):
            items.append(PreHydrationItem(ref.type, value, "resolved", "", each.tokens, each.sha256, each.call_id))
        else:
            items.append(
                PreHydrationItem(ref.type, value, "failed", shown_error(ref, each.error), call_id=each.call_id)
            )
    return tuple(items)


def _is_text(result: ToolResult) -> bool:
    """Whether it is a success, and text that UTF-8 can carry."""
    return not result.is_error and "\0" not in result.content and clean(result.content) == result.content


def _error(outcome: Outcome | None) -> str:
    match outcome:
        case None:
            return NO_RESULT
        case Ask() | Deny():
            return told(outcome)
        case ToolResult(kind="ok"):
            return NOT_TEXT
        case ToolResult(kind="cancelled") | ToolResult(kind="timeout", infrastructure=True):
            return TIMED_OUT
        case ToolResult(kind="denied", content=reason):
            return told(Deny(reason))
        case ToolResult(content=text):
            return text


def _resolved(call_id: str, ref: Reference, result: ToolResult, shown: str, tokens: int) -> ResolvedReference:
    kept = cut(shown, tokens)
    return ResolvedReference(
        ref,
        kept,
        tokens_of(len(kept.encode())),
        len(shown.encode()),
        sha256(result.content.encode()).hexdigest(),
        result.source,
        call_id,
    )


def _context(
    found: Extraction, resolved: list[ResolvedReference], failed: list[FailedReference], message_id: str
) -> HydratedContext:
    values = (ref.value for ref in found.references)
    mark = mark_for(message_id, [*(each.content for each in resolved), *values, *(each.error for each in failed)])
    message = message_of(resolved, failed, mark)
    contents = sum(len(each.content.encode()) for each in resolved)
    return HydratedContext(
        references=found.references,
        dropped=found.dropped,
        resolved=tuple(resolved),
        failed=tuple(failed),
        total_tokens=sum(each.tokens for each in resolved),
        frame_tokens=tokens_of(len(message.encode()) - contents) if message else 0,
        scan_truncated=found.scan_truncated,
        message=message,
    )
