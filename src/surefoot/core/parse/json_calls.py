"""The families whose calls are JSON behind a marker: hermes bodies, and mistral's lists and `NAME{…}`."""

from __future__ import annotations

import re

from surefoot.core.parse.arguments import arguments_at, drafts_of, faulty_body
from surefoot.core.parse.drafts import NO_WARNINGS, Draft, Found, Reading
from surefoot.core.parse.json_ladder import read
from surefoot.core.parse.json_strict import NotJsonError
from surefoot.core.parse.scan import MOST_CALLS, Seeker, skip_blanks
from surefoot.types.reply import Fault, ReplyWarning

MISTRAL = "[TOOL_CALLS]"

_NAMED = re.compile(r"(?P<name>[\w.:/-]{1,200}+)\s*+(?:\[CALL_ID\](?P<id>\w{1,200}+))?\s*+(?:\[ARGS\])?\s*+")
_MEMBER_END = re.compile(r"[\s,;]*+")


def read_mistral(text: str, start: int, reading: Reading) -> Found:
    """`[TOOL_CALLS]` with a list of calls behind it, or with `NAME{…}`, the marker repeated for each call."""
    seek = Seeker(text)
    drafts: list[Draft] = []
    warnings: set[ReplyWarning] = set()
    at = end = start
    while at >= 0 and len(drafts) <= MOST_CALLS:
        body = skip_blanks(text, at + len(MISTRAL))
        limit = seek.find(MISTRAL, body)
        limit = len(text) if limit < 0 else limit
        named = _NAMED.match(text, body, limit)
        if named and (named.end() >= limit or text[named.end()] == "{"):
            if named.end() >= len(text) and reading.cut:
                drafts.append(
                    Draft(named["name"], fault=Fault("truncated", "the reply ends in the name", named["name"]))
                )
                end = limit
            else:
                marks = (MISTRAL,) if limit < len(text) else ()
                arguments = arguments_at(text, named.end(), marks, reading, named["name"], seek=seek)
                drafts.append(arguments.draft(named["name"], named["id"] or ""))
                warnings |= arguments.warnings
                end = arguments.end
        else:
            found, end, told = _listed(text, body, limit, reading)
            drafts += found
            warnings |= told
        at = seek.find(MISTRAL, max(end, body))
    return Found("mistral", tuple(drafts), text[:start], frozenset(warnings), end=end)


def _listed(
    text: str, body: int, limit: int, reading: Reading
) -> tuple[tuple[Draft, ...], int, frozenset[ReplyWarning]]:
    """The list or object between `body` and `limit`, its members one by one where the whole does not decode."""
    opening = min((place for sign in "[{" if (place := text.find(sign, body, limit)) >= 0), default=-1)
    if opening < 0:
        if body >= len(text):
            kind = "truncated" if reading.cut else "empty"
            return (Draft(fault=Fault(kind, f"nothing follows {MISTRAL}")),), limit, NO_WARNINGS
        told = f"expected a JSON list of calls, got {text[body:limit][:60]!r}"
        return (Draft(fault=Fault("malformed_json", told)),), limit, NO_WARNINGS
    warnings: set[ReplyWarning] = {"trailing_text"} if text[body:opening].strip() else set()
    rules = reading.rules(MISTRAL, at_end=True, is_call=True)
    drafts: list[Draft] = []
    at = opening
    while True:
        try:
            value = read(text, at, rules)
        except NotJsonError as error:
            if text.startswith("[", at) and text.startswith("{", skip_blanks(text, at + 1)):
                at = skip_blanks(text, at + 1)
                continue
            drafts.append(faulty_body(text, at, error, reading, has_end=limit < len(text)))
            return tuple(drafts), limit, frozenset(warnings)
        drafts += drafts_of(value.value)
        if value.repaired:
            warnings.add("repaired_json")
        following = _MEMBER_END.match(text, value.end)
        at = following.end() if following else value.end
        if not text.startswith("{", at) or len(drafts) > MOST_CALLS:
            return tuple(drafts), value.end, frozenset(warnings)
