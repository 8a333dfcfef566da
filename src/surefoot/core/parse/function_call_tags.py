"""The tags dialect: `<function_call>` bodies, deliverables, and results that only the runtime may write.

Source: spec/reasoners.md, sections 3 and 5. Nothing inside a deliverable or behind an invented result is a call.
"""

from __future__ import annotations

from surefoot.core.parse.deliverable import DELIVERABLE, DELIVERABLE_END, body_of, opens_at
from surefoot.core.parse.drafts import Draft, Found, Reading
from surefoot.core.parse.marks import FUNCTION_CALL, FUNCTION_CALL_END, RESULT, Walk, past_deliverable
from surefoot.core.parse.scan import MOST_CALLS
from surefoot.core.parse.tag_bodies import BodyReader, Tag
from surefoot.types.dataclass import dataclass
from surefoot.types.reply import Fault, ReplyWarning

_TAG = Tag(FUNCTION_CALL, FUNCTION_CALL_END, payloads=True)


@dataclass(frozen=True, slots=True)
class TagsFound:
    """What the walk found: calls with their place, the first deliverable, and whether one is open."""

    drafts: tuple[Draft, ...]
    first: int
    end: int
    deliverable: str | None
    deliverable_end: int
    open_deliverable: bool
    warnings: frozenset[ReplyWarning]


def read_tags(text: str, reading: Reading) -> TagsFound:
    """All tagged calls of a visible text, and its deliverable."""
    walk = Walk(text)
    bodies = BodyReader(text, _TAG, reading)
    drafts: list[Draft] = []
    deliverable: str | None = None
    first = end = deliverable_end = -1
    open_deliverable = False
    at = 0
    while len(drafts) <= MOST_CALLS and (step := walk.following(at)) is not None:
        at = step.end()
        if step["marker"] == FUNCTION_CALL and bodies.counts(step.start()):
            body = bodies.read(step.start())
            drafts += body.drafts
            first = step.start() if first < 0 else first
            end = body.end
            at = max(at, end)
        elif step["deliverable"] and opens_at(text, step.start()):
            at = past_deliverable(text, step.start(), walk.seek)
            if at == step.end():
                open_deliverable = True
                break
            if deliverable is None:
                deliverable = text[step.end() : at - len(DELIVERABLE_END)]
                deliverable_end = at
        elif step["result"]:
            bodies.warnings.add("hallucinated_result_removed")
            end = end if end >= 0 else step.start()
            break
    warnings = frozenset(bodies.warnings)
    return TagsFound(tuple(drafts), first, end, deliverable, deliverable_end, open_deliverable, warnings)


def found_in_tags(text: str, reading: Reading) -> Found | None:
    """The calls of the tags dialect, else its deliverable; None if the text holds neither."""
    if not any(sign in text for sign in (FUNCTION_CALL, DELIVERABLE, RESULT)):
        return None
    tags = read_tags(text, reading)
    if tags.drafts:
        dropped: frozenset[ReplyWarning] = frozenset({"final_dropped"} if tags.deliverable is not None else ())
        return Found("tags", tags.drafts, text[: tags.first], tags.warnings | dropped, end=tags.end)
    if tags.open_deliverable:
        kind = "truncated" if reading.cut else "no_call"
        told = Fault(kind, f"{DELIVERABLE} is never closed: {DELIVERABLE_END} is missing")
        return Found("tags", (), text, tags.warnings, error=told)
    if tags.deliverable is not None:
        body = body_of(tags.deliverable)
        if not body:
            told = Fault("empty_final", f"{DELIVERABLE} holds nothing")
            return Found("tags", (), text, tags.warnings, error=told)
        content = text[: tags.deliverable_end - len(tags.deliverable) - len(DELIVERABLE) - len(DELIVERABLE_END)]
        return Found("tags", (), content, tags.warnings, final=body, end=tags.deliverable_end)
    if tags.warnings:  # only an invented result, with nothing before it that could be run
        told = Fault("no_call", "a result was written that only the runtime may write")
        return Found("tags", (), text[: tags.end], tags.warnings, error=told, end=tags.end)
    return None
