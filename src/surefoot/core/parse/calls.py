"""Calls as they are written, and what becomes of them: JSON to drafts, drafts to names and arguments that are checked.

Values that a form gives as bare text are typed by the tool's schema: JSON first; a text parameter stays text, and so
does everything where no schema says more. Source: spec/react.md, sections 5 and 8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from surefoot.core.parse.marks import DEFAULT_LABELS, Labels
from surefoot.core.parse.objects import LENIENT, NO_WARNINGS, Rules, Value, read
from surefoot.core.parse.scan import MOST_CALLS, NotJsonError, Seeker, decode, first_bracket, inside_fence, skip_blanks
from surefoot.core.parse.schema import properties_of, type_name, types_of
from surefoot.core.parse.toolset import Offered, unwrapped, without_escapes
from surefoot.core.text.json import as_list, as_object, same_json
from surefoot.types.dataclass import dataclass, field, replace
from surefoot.types.messages import NativeCall
from surefoot.types.reply import Fault, FaultKind, FaultyCall, ParsedCall, ReplyWarning
from surefoot.types.tools import ToolSpec

Repairing = Literal["strict", "lossless"]


def noted_if(holds: bool, warning: ReplyWarning) -> frozenset[ReplyWarning]:
    """The warning, if that holds."""
    return frozenset((warning,)) if holds else NO_WARNINGS


@dataclass(frozen=True, slots=True)
class Reading:
    """How one reply is to be read. `cut`: by length; `stopped`: the wire said that the model was done."""

    offered: Offered
    labels: Labels = DEFAULT_LABELS
    cut: bool = False
    stopped: bool = True
    repair: Repairing = "lossless"

    def rules(self, *marks: str, at_end: bool = False, payloads: bool = False, is_call: bool = False) -> Rules:
        """What may be forgiven in a value whose form ends at one of `marks`, or has no mark and ends with the text."""
        if self.repair == "strict":
            return Rules(lossless=False, payloads=payloads)
        may_close = not self.cut
        at_end = at_end and self.stopped and may_close
        return Rules(marks=marks if may_close else (), at_end=at_end, payloads=payloads, is_call=is_call)


@dataclass(frozen=True, slots=True)
class Draft:
    """One call as written: a name and decoded arguments, or the fault that stands in its place."""

    name: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    fault: Fault | None = None
    id: str = ""
    objective: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What one form found in the visible text.

    `content` is the text that belongs to no call, `end` where the step ends (-1: with the text). `frame` says whether
    at least the frame of one call could be read. `error` is a fault of the reply that belongs to no call.
    """

    format: str
    drafts: tuple[Draft, ...] = ()
    content: str = ""
    warnings: frozenset[ReplyWarning] = NO_WARNINGS
    final: str | None = None
    error: Fault | None = None
    end: int = -1
    frame: bool = True


_MOST_QUOTED = 60
ARGUMENT_KEYS = ("args", "arguments", "parameters")
_OTHER_KEYS = ("input", "params", "kwargs", "action_input", "tool_input")
"""Under these the arguments of some models stand, where nothing else does."""
_BESIDE_ARGUMENTS = frozenset({"name", "id", "type", "index", "call_objective"})
NAME = re.compile(r"""["']name["']\s*+:\s*+["'](?P<name>[^"'\n]{1,200})["']""")
NEXT_CALL = re.compile(
    r"""[}\]]\s*+[,;]?\s*+(?=\{\s*+["'](?:name|arguments|args|parameters|type|function|call_objective)["'])"""
)
"""The end of a call that does not decode, where another one follows."""
TRAILING: frozenset[ReplyWarning] = frozenset({"trailing_text"})


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments that were read, or the fault in their place; `end` is where the form goes on."""

    value: Mapping[str, object] = field(default_factory=dict[str, object])
    fault: Fault | None = None
    end: int = 0
    warnings: frozenset[ReplyWarning] = NO_WARNINGS

    def draft(self, name: str, call_id: str = "") -> Draft:
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
    if body is None and isinstance(value, str) and (decoded := whole_value(value, Rules(is_call=True))) is not None:
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
    if not given and (left := body.keys() - _BESIDE_ARGUMENTS - {*ARGUMENT_KEYS}):
        others = [body[key] for key in _OTHER_KEYS if key in left]
        if len(left) > 1 or not others:
            told = f"the arguments stand under none of {', '.join(ARGUMENT_KEYS)}"
            return replace(draft, fault=Fault("malformed_json", told, draft.name))
        given = [("", others[0])]
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
        decoded = whole_value(value)
        if decoded is not None and (made := as_object(decoded.value)) is not None:
            return Arguments(made, warnings=decoded.warnings)
    members = as_object(value)
    if members is None:
        shown = text if len(text := str(value)) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}…"
        return Arguments(fault=Fault("args_not_object", f"the arguments are {shown}, not an object", name))
    return Arguments(members)


def whole_value(text: str, rules: Rules = LENIENT) -> Value | None:
    """The value that is all of the text, but for blanks around it."""
    text = text.strip()
    try:
        value = read(text, 0, rules)
    except NotJsonError:
        return None
    return value if value.end == len(text) else None


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
        opening = first_bracket(text, at, limit)
        if opening < 0:
            kind: FaultKind = "truncated" if reading.cut and stop < 0 else "malformed_json"
            return Arguments(fault=Fault(kind, f"expected a JSON object, got {text[at : at + 60]!r}", name), end=limit)
        at = opening
        warnings.add("trailing_text")
    marks_here = (*marks, "```") if "`" in text[start:at] else marks
    try:
        value = read(text, at, reading.rules(*marks_here, at_end=not marks))
    except NotJsonError as error:
        return Arguments(fault=fault_of(error, at, reading, name, has_end=stop >= 0, native=native), end=limit)
    end = skip_blanks(text, value.end)
    if text.startswith("```", end):
        end = skip_blanks(text, end + 3)
    made = arguments_of(value.value, name)
    warnings |= value.warnings
    return replace(made, end=end, warnings=made.warnings | warnings)


_OPENERS = ("{", "[", '"')


def fault_of(
    error: NotJsonError, start: int, reading: Reading, name: str = "", *, has_end: bool = False, native: bool = False
) -> Fault:
    """What is wrong with a value, and at which character (1 is the first). `has_end`: its form's end mark is there."""
    is_cut = reading.cut and (native or not has_end)
    if error.at_end and not native:
        is_cut = reading.cut or not has_end
    told = f"{error.message} at character {error.position - start + 1}"
    return Fault("truncated" if is_cut else "malformed_json", told, name)


def faulty_body(text: str, at: int, error: NotJsonError, reading: Reading, *, has_end: bool) -> Draft:
    """A call whose body from `at` on does not decode, with its name if that can be read all the same."""
    named = NAME.search(text, at, at + 400)
    name = named["name"] if named is not None and text.find("{", at + 1, named.start()) < 0 else ""
    return Draft(name, fault=fault_of(error, at, reading, name, has_end=has_end))


def values_at(
    text: str,
    place: tuple[int, int],
    rules: Rules,
    between: re.Pattern[str],
    reading: Reading,
    *,
    has_end: bool,
    next_call: re.Pattern[str] | None = NEXT_CALL,
) -> tuple[list[Draft], int, set[ReplyWarning]]:
    """The calls of the values in a place, as long as `between` matches behind one, and where they end.

    Of a list that does not decode, the members are read one by one. A broken call ends where `next_call` finds
    another; if there is none, or a payload is open, nothing behind it is read.
    """
    at, limit = place
    drafts: list[Draft] = []
    warnings: set[ReplyWarning] = set()
    while True:
        try:
            value = read(text, at, rules)
        except NotJsonError as error:
            is_list = text.startswith("[", at) and not error.payload
            inside = skip_blanks(text, at + 1) if is_list else at
            if is_list and text.startswith("{", inside):
                at = inside
                continue
            drafts.append(faulty_body(text, inside if next_call else at, error, reading, has_end=has_end))
            following = next_call.search(text, error.position, limit) if next_call and not is_list else None
            if error.payload or following is None or len(drafts) > MOST_CALLS:
                return drafts, len(text) if error.payload else limit, warnings
            at = following.end()
            continue
        drafts += drafts_of(value.value)
        warnings |= value.warnings
        following = between.match(text, value.end)
        if following is None or len(drafts) > MOST_CALLS:
            return drafts, value.end, warnings
        at = following.end()


def past_closer(text: str, at: int, marks: tuple[str, ...], seek: Seeker, warnings: set[ReplyWarning]) -> int:
    """Step over the end of a call, the first of `marks`, of which the others are beginnings; note what is amiss."""
    closing, *others = marks
    if text.startswith(closing, end := skip_blanks(text, at)):
        return end + len(closing)
    if (close := seek.before(closing, tuple(others), at)) >= 0:
        warnings.add("trailing_text")
        return close + len(closing)
    warnings.add("unclosed_tag")
    return at


def typed(
    text: str, parameter: str, tool: ToolSpec | None, rules: Rules = LENIENT
) -> tuple[object, frozenset[ReplyWarning]]:
    """The value of a parameter that was written as `text`, and what to note where its JSON had to be repaired."""
    if tool is None:
        return text, NO_WARNINGS
    schema = properties_of(tool.parameters).get(parameter)
    types: frozenset[str] = types_of(schema, tool.parameters) if schema is not None else frozenset()
    value = None if types <= {"string"} else whole_value(text, rules)
    found = type_name(value.value) if value is not None else ""
    fits = found in types or (found == "integer" and "number" in types) or (found == "number" and "integer" in types)
    if value is None or not fits or found == "string":  # quotes that belong to a text are part of it
        return text, NO_WARNINGS
    return value.value, value.warnings if found in ("object", "array") else NO_WARNINGS


def read_native(calls: Sequence[NativeCall], content: str, reading: Reading) -> Found:
    """The native calls of a reply."""
    warnings: set[ReplyWarning] = set()
    drafts: list[Draft] = []
    for at, call in enumerate(calls, 1):
        written = call.arguments
        members: Mapping[str, object] | None = None
        if not isinstance(written, str):
            written, members = "", written
        elif written.startswith("{"):
            try:  # most are one strict JSON object and nothing else
                value, end = decode(written, 0)
                members = as_object(value) if end == len(written) else None
            except NotJsonError:
                members = None
        elif written.strip() == "null":
            members = {}
        if members is not None:
            drafts.append(Draft(call.name, members, id=call.id))
            continue
        if not written and reading.cut and at == len(calls):
            written = "{"  # it was cut off right behind its name
        read = arguments_at(written, 0, (), reading, call.name, native=True)
        rest = written[read.end :].strip() if read.fault is None else ""
        if rest.startswith(("{", "[")):
            told = f"more than one value; the second begins at character {read.end + 1}"
            read = Arguments(fault=Fault("malformed_json", told, call.name))
        elif rest:
            read = replace(read, warnings=read.warnings | TRAILING)
        warnings |= read.warnings
        drafts.append(read.draft(call.name, call.id))
    return Found("native", tuple(drafts), content, frozenset(warnings))


_OF_ARGUMENTS: frozenset[FaultKind] = frozenset({"malformed_json", "malformed_arguments", "args_not_object"})
"""What is wrong with arguments matters only where there is such a tool."""

Settled = tuple[tuple[ParsedCall, ...], tuple[FaultyCall, ...], frozenset[ReplyWarning]]


def settle(drafts: Sequence[Draft], reading: Reading) -> Settled:
    """The good calls and the faulty ones, each with its position in the reply, and what to note."""
    calls: list[ParsedCall] = []
    faulty: list[FaultyCall] = []
    warnings: set[ReplyWarning] = set()
    for position, draft in enumerate(drafts):
        named, fault, arguments = reading.offered.find(draft.name), draft.fault, draft.arguments
        if not named.name:
            fault = fault or Fault("missing_name", "a call has no usable name")
        elif not named.known and (fault is None or fault.kind in _OF_ARGUMENTS):
            fault = Fault("unknown_tool", f"unknown tool {draft.name[:60]!r}", draft.name[:200])
        if fault is not None:
            faulty.append(FaultyCall(position, fault, draft.name, draft.id))
            continue
        if named.corrected:
            warnings.add("name_corrected")
        if (tool := named.tool) is None:
            calls.append(ParsedCall(position, named.name, arguments, draft.id, draft.objective))
            continue
        if tool.injected and not arguments.keys().isdisjoint(tool.injected):
            arguments = {key: value for key, value in arguments.items() if key not in tool.injected}
            warnings.add("injected_argument_ignored")
        given = unwrapped(arguments, tool)
        if "\\" in "".join(given):  # Markdown's escapes; the schema tells how a key is spelled
            known = properties_of(tool.parameters).keys() - given.keys()
            given = {plain if (plain := without_escapes(key)) in known else key: value for key, value in given.items()}
        checked = reading.offered.check(tool, given)
        if checked.errors:
            told = f"{'; '.join(map(str, checked.errors))}. Sent: {_cut(arguments)}"
            faulty.append(FaultyCall(position, Fault("invalid_arguments", told, tool.name), named.name, draft.id))
        else:
            calls.append(ParsedCall(position, named.name, checked.value, draft.id, draft.objective, checked.coerced))
    return tuple(calls), tuple(faulty), frozenset(warnings)


_MOST_SHOWN = 300


def _cut(arguments: Mapping[str, object]) -> str:
    parts: list[str] = []
    room = _MOST_SHOWN
    for key, value in arguments.items():
        shown = repr(value) if isinstance(value, str | int | float | None) else f"({type_name(value)})"
        parts.append(f"{key[:60]}={shown[:80]}")
        room -= len(parts[-1])
        if room <= 0:
            return f"{', '.join(parts)[:_MOST_SHOWN]}…"
    return ", ".join(parts) or "nothing"
