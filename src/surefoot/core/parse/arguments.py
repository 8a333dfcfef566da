"""JSON as calls and arguments: the keys that name a call, and the rungs of the ladder that unwrap."""

from __future__ import annotations

import re
from collections.abc import Mapping

from surefoot.core.parse.drafts import NO_ARGUMENTS, NO_WARNINGS, Draft, Reading
from surefoot.core.parse.json_ladder import Rules, Value, read
from surefoot.core.parse.json_strict import NotJsonError, as_list, as_object, same_json
from surefoot.core.parse.scan import Seeker, inside_fence, skip_blanks
from surefoot.types.dataclass import dataclass, field, replace
from surefoot.types.reply import Fault, FaultKind, ReplyWarning

ARGUMENT_KEYS = ("args", "arguments", "parameters")
NAME = re.compile(r"""["']name["']\s*+:\s*+["'](?P<name>[^"'\n]{1,200})["']""")
NEXT_CALL = re.compile(
    r"""[}\]]\s*+[,;]?\s*+(?=\{\s*+["'](?:name|arguments|args|parameters|type|function|call_objective)["'])"""
)
"""The end of a call that does not decode, where another one follows."""
REPAIRED: frozenset[ReplyWarning] = frozenset({"repaired_json"})
TRAILING: frozenset[ReplyWarning] = frozenset({"trailing_text"})


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments that were read, or the fault in their place; `end` is where the form goes on."""

    value: Mapping[str, object] = field(default_factory=dict[str, object])
    fault: Fault | None = None
    end: int = 0
    warnings: frozenset[ReplyWarning] = NO_WARNINGS

    def draft(self, name: str, call_id: str = "") -> Draft:
        """The call of that name with these arguments."""
        return Draft(name, self.value, self.fault, call_id)


def drafts_of(value: object) -> tuple[Draft, ...]:
    """The calls that a decoded body holds: one object, or a list of them."""
    row = as_list(value)
    if row is None:
        return (draft_of(value),)
    return tuple(draft_of(item) for item in row) or (Draft(fault=Fault("empty", "the list of calls is empty")),)


def draft_of(value: object) -> Draft:
    """The call that one decoded object describes."""
    body = as_object(value)
    if body is None and isinstance(value, str) and (decoded := _whole(value, Rules(is_call=True))) is not None:
        body = as_object(decoded.value)  # an object as text, decoded once
    if body is None:
        return Draft(fault=Fault("malformed_json", "a call is a JSON object with a name and arguments"))
    inner = as_object(body.get("function"))
    if inner is not None and "name" not in body:
        body = {**inner, **({"id": body["id"]} if "id" in body else {})}
    name, call_id, objective = body.get("name"), body.get("id"), body.get("call_objective")
    draft = Draft(
        name if isinstance(name, str) else "",
        id=call_id if isinstance(call_id, str) else "",
        objective=objective if isinstance(objective, str) else "",
    )
    if not draft.name.strip():
        return replace(draft, fault=Fault("missing_name", "a call has no name"))
    given = [(key, body[key]) for key in ARGUMENT_KEYS if body.get(key) is not None]
    if any(not same_json(given[0][1], other) for _, other in given[1:]):
        keys = " and ".join(key for key, _ in given)
        return replace(draft, fault=Fault("malformed_json", f"{keys} are both given, and differ", draft.name))
    arguments = arguments_of(given[0][1] if given else None, draft.name)
    return replace(draft, arguments=arguments.value, fault=arguments.fault)


def arguments_of(value: object, name: str) -> Arguments:
    """A decoded value as arguments: an object, nothing, or text that holds an object (decoded once)."""
    if value is None:
        return Arguments()
    if isinstance(value, str):
        if not value.strip():
            return Arguments()
        decoded = _whole(value, Rules())
        if decoded is not None and as_object(decoded.value) is not None:
            made = as_object(decoded.value) or NO_ARGUMENTS
            return Arguments(made, warnings=REPAIRED if decoded.repaired else NO_WARNINGS)
    members = as_object(value)
    if members is None:
        return Arguments(fault=Fault("args_not_object", f"the arguments are {_shown(value)}, not an object", name))
    return Arguments(members)


def _whole(text: str, rules: Rules) -> Value | None:
    """The value that is all of the text."""
    text = text.strip()
    try:
        value = read(text, 0, rules)
    except NotJsonError:
        return None
    return value if value.end == len(text) else None


def _shown(value: object) -> str:
    text = str(value)
    return f"{text[:60]}…" if len(text) > 60 else text  # noqa: PLR2004  # quoted text is cut there


def arguments_at(
    text: str,
    start: int,
    marks: tuple[str, ...],
    reading: Reading,
    name: str,
    *,
    seek: Seeker | None = None,
    native: bool = False,
) -> Arguments:
    """The arguments of the call `name` from `start` on: words before, a fence and the ladder's rungs are dealt with.

    The form ends at the first of `marks` behind the value; a form without marks ends with the text. The end is found by
    decoding; only where that fails, the mark is looked for. `native`: the text is a field of its own, not part of one.
    """
    seek = seek or Seeker(text)
    at = skip_blanks(text, start)
    if at >= len(text) or text.startswith(marks, at):
        if at >= len(text) and reading.cut and not native:
            return Arguments(fault=Fault("truncated", "the reply ends before the arguments", name), end=at)
        return Arguments(end=at)
    stop = seek.first(marks, at)
    limit = len(text) if stop < 0 else stop
    at = skip_blanks(text, inside_fence(text, at))
    warnings: set[ReplyWarning] = set()
    if text[at : at + 1] not in _OPENERS or at >= limit:
        opening = min((place for sign in "{[" if (place := text.find(sign, at, limit)) >= 0), default=-1)
        if opening < 0:
            cut = reading.cut and stop < 0
            told = Fault(
                "truncated" if cut else "malformed_json", f"expected a JSON object, got {text[at : at + 60]!r}", name
            )
            return Arguments(fault=told, end=limit)
        at = opening
        warnings.add("trailing_text")
    marks_here = (*marks, "```") if "`" in text[start:at] else marks
    try:
        value = read(text, at, reading.rules(*marks_here, at_end=not marks))
    except NotJsonError as error:
        kind = fault_kind(error, reading, has_end=stop >= 0, native=native)
        return Arguments(fault=Fault(kind, where(error, at), name), end=limit)
    end = skip_blanks(text, value.end)
    if text.startswith("```", end):
        end = skip_blanks(text, end + 3)
    made = arguments_of(value.value, name)
    if value.repaired:
        warnings.add("repaired_json")
    return replace(made, end=end, warnings=made.warnings | warnings)


_OPENERS = ("{", "[", '"')


def fault_kind(error: NotJsonError, reading: Reading, *, has_end: bool, native: bool = False) -> FaultKind:
    """Whether a value that does not decode was cut off or is wrong. `has_end`: the form's end mark is there."""
    if native:
        return "truncated" if reading.cut else "malformed_json"
    if error.at_end:
        return "malformed_json" if has_end and not reading.cut else "truncated"
    return "truncated" if reading.cut and not has_end else "malformed_json"


def faulty_body(text: str, at: int, error: NotJsonError, reading: Reading, *, has_end: bool) -> Draft:
    """A call whose body from `at` on does not decode, with its name if that can be read all the same."""
    named = NAME.search(text, at, at + 400)
    name = named["name"] if named is not None and text.find("{", at + 1, named.start()) < 0 else ""
    return Draft(name, fault=Fault(fault_kind(error, reading, has_end=has_end), where(error, at), name))


def where(error: NotJsonError, start: int) -> str:
    """What is wrong, and at which character of the value (1 is the first)."""
    return f"{error.message} at character {error.position - start + 1}"
