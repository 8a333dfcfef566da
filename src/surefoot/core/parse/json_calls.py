"""Calls as JSON: behind a marker (Mistral, Llama), bare in the text, behind a name, or in a fence as a last resort."""

from __future__ import annotations

import re

from surefoot.core.parse import calls, scan
from surefoot.core.parse.objects import WRAPPERS_OF_CALLS, read
from surefoot.core.parse.scan import NotJsonError
from surefoot.core.parse.schema import properties_of
from surefoot.core.text.json import as_list, as_object
from surefoot.types.reply import Fault, ReplyWarning

MISTRAL = "[TOOL_CALLS]"

_MISTRAL_NAME = re.compile(
    r"(?=[\w.:/-]|\[ARGS\])(?P<name>[\w.:/-]{0,200}+)\s*+(?:\[CALL_ID\](?P<id>\w{1,200}+))?\s*+(?:\[ARGS\])?\s*+"
)
_NEXT_MEMBER = re.compile(r"[\s,;]*+(?=\{)")


def read_mistral(text: str, start: int, reading: calls.Reading) -> calls.Found:
    """`[TOOL_CALLS]` with a list of calls behind it, or with `NAME{…}`, the marker repeated for each call."""
    seek = scan.Seeker(text)
    drafts: list[calls.Draft] = []
    warnings: set[ReplyWarning] = set()
    at = end = start
    while at >= 0 and len(drafts) <= scan.MOST_CALLS:
        body = scan.skip_blanks(text, at + len(MISTRAL))
        while text.startswith(MISTRAL, body):
            warnings.add("repaired_tags")
            body = scan.skip_blanks(text, body + len(MISTRAL))
        limit = seek.find(MISTRAL, body)
        limit = len(text) if limit < 0 else limit
        named = _MISTRAL_NAME.match(text, body, limit)
        if named and (named.end() >= limit or text[named.end()] == "{"):
            if named.end() >= len(text) and reading.cut:
                fault = Fault("truncated", "the reply ends in the name", named["name"])
                drafts.append(calls.Draft(named["name"], fault=fault))
                end = limit
            else:
                marks = (MISTRAL,) if limit < len(text) else ()
                arguments = calls.arguments_at(text, named.end(), marks, reading, named["name"], seek=seek)
                drafts.append(arguments.draft(named["name"], named["id"] or ""))
                warnings |= arguments.warnings
                end = arguments.end
        elif (opening := scan.first_bracket(text, body, limit)) >= 0:
            warnings |= calls.noted_if(bool(text[body:opening].strip()), "trailing_text")
            rules, has_end = reading.rules(MISTRAL, at_end=True, is_call=True), limit < len(text)
            found, end, told = calls.values_at(
                text, (opening, limit), rules, _NEXT_MEMBER, reading, has_end=has_end, next_call=None
            )
            drafts += found
            warnings |= told
        else:
            fault = Fault("truncated" if reading.cut else "empty", f"nothing follows {MISTRAL}")
            if body < len(text):
                fault = Fault("malformed_json", f"expected a JSON list of calls, got {text[body:limit][:60]!r}")
            drafts.append(calls.Draft(fault=fault))
            end = limit
        at = seek.find(MISTRAL, max(end, body))
    return calls.Found("mistral", tuple(drafts), text[:start], frozenset(warnings), end=end)


PYTHON_TAG = "<|python_tag|>"

_STEP = re.compile(rf"(?P<value>\{{)|{scan.FENCES}", re.MULTILINE)
_SEPARATORS = re.compile(r"[\s;,\[\]]*+")
_NEXT_OBJECT = re.compile(r"[\s;,\[\]]*+(?=\{)")
_WRAPPER = re.compile(rf"""\{{\s*+["'](?:{"|".join(WRAPPERS_OF_CALLS)})["']\s*+:\s*+(?:\[\s*+)?(?=\{{)""")
_BESIDE_CALLS = frozenset({"role", "content"})
_HEADED = re.compile(r"\s*+(?P<name>[^\n{}]{1,200}+)\n\s*+(?=\{)")
_HEADING = " \t\r#>:："
_JSON_INFO = frozenset({"", "json", "json5", "jsonc", "tool_call", "tool_calls", "function_call"})


def read_python_tag(text: str, start: int, reading: calls.Reading) -> calls.Found:
    """Objects behind `<|python_tag|>`: the token says that calls are meant, so what does not decode is a fault."""
    warnings: set[ReplyWarning] = set()
    at = scan.skip_blanks(text, start + len(PYTHON_TAG))
    drafts: list[calls.Draft] = []
    end = at
    if text[at : at + 1] not in ("{", "["):
        kind = "truncated" if at >= len(text) and reading.cut else "empty" if at >= len(text) else "malformed_json"
        fault = Fault(kind, f"expected a JSON object behind {PYTHON_TAG}, got {text[at : at + 60]!r}")
        return calls.Found("llama3_json", (calls.Draft(fault=fault),), text[:start], frame=False)
    while text.startswith(("{", "["), at) and len(drafts) <= scan.MOST_CALLS:
        try:
            value = read(text, at, reading.rules(PYTHON_TAG, at_end=True, is_call=True))
        except NotJsonError as error:
            following = text.find(PYTHON_TAG, at)
            drafts.append(calls.faulty_body(text, at, error, reading, has_end=following >= 0))
            at = following + len(PYTHON_TAG) if following >= 0 else len(text)
            end = at = scan.skip_blanks(text, at)
            continue
        warnings |= value.warnings
        drafts += calls.drafts_of(value.value)
        end = value.end
        at = _next(text, end)
    frame = any(draft.fault is None or draft.name for draft in drafts)
    return calls.Found("llama3_json", tuple(drafts), text[:start], frozenset(warnings), end=end, frame=frame)


def _next(text: str, at: int) -> int:
    separators = _SEPARATORS.match(text, at)
    at = separators.end() if separators else at
    return scan.skip_blanks(text, at + len(PYTHON_TAG)) if text.startswith(PYTHON_TAG, at) else at


def read_wrapped(text: str, reading: calls.Reading) -> calls.Found | None:
    """The calls in `{"tool_calls": [...]}`, or the name of an offered tool in an object, if that is all of the text."""
    start = scan.skip_blanks(text, 0)
    if not text.startswith("{", start):
        return None
    try:
        value = read(text, start, reading.rules(at_end=True, is_call=True))
    except NotJsonError:
        if (wrapper := _WRAPPER.match(text, start)) is None:
            return None
        rules = reading.rules(is_call=True)  # one by one, so that a broken one drops no other
        drafts, end, _ = calls.values_at(text, (wrapper.end(), len(text)), rules, _NEXT_OBJECT, reading, has_end=False)
        rest = len(drafts) <= scan.MOST_CALLS and text[end:].strip(" \t\r\n,]}")
        return None if rest else calls.Found("llama3_json", tuple(drafts), "", end=end)
    members = _wrapped(value.value) or _lone_name(value.value, reading)
    if not members or text[value.end :].strip() or not all(_is_call(one, reading, wrapped=True) for one in members):
        return None
    return calls.Found("llama3_json", tuple(map(calls.draft_of, members)), "", value.warnings, end=value.end)


def read_bare_json(text: str, reading: calls.Reading) -> calls.Found | None:
    """Objects with a name and arguments anywhere outside of fences; None if there is none that may be a call.

    An unknown name is a fault only if calls are all that the text holds; else it is prose about JSON.
    """
    if "name" not in text or "{" not in text:
        return None
    drafts: list[calls.Draft] = []
    warnings: set[ReplyWarning] = set()
    first = -1
    end = at = 0
    tried = 0
    alone = True
    while (
        tried < scan.MOST_BRACKETS
        and len(drafts) <= scan.MOST_CALLS
        and (step := scan.outside_fences(_STEP, text, at)) is not None
    ):
        opening, at = step.span()
        try:
            value = read(text, opening, reading.rules(at_end=True, is_call=True))
        except NotJsonError as error:
            faulty = _undecodable(text, opening, error, reading)
            if faulty is not None:
                warnings |= {"repaired_json"} if faulty.fault is None else set()
                drafts.append(faulty)
                first, end = (opening if first < 0 else first), len(text)
                break
            at = max(at, error.resume)
            tried += 1
            continue
        at = value.end
        if not _is_call(value.value, reading):
            continue
        alone = alone and not text[end:opening].strip(" \t\r\n;,[]")
        drafts.append(calls.draft_of(value.value))
        warnings |= value.warnings
        first, end = (opening if first < 0 else first), value.end
    alone = alone and not text[end:].strip(" \t\r\n;,[]")
    if not alone:
        drafts = [draft for draft in drafts if reading.offered.find(draft.name).known]
    if not drafts:
        return None
    content = text[:first] if text[:first].strip(" \t\r\n[") else ""
    return calls.Found("llama3_json", tuple(drafts), content, frozenset(warnings), end=end)


def read_headed(text: str, reading: calls.Reading) -> calls.Found | None:
    """The name of an offered tool on a line and a JSON object behind it, if the two are all of the text."""
    head = _HEADED.match(text)
    named = reading.offered.find(head["name"].strip(_HEADING)) if head is not None else None
    if head is None or named is None or named.tool is None:
        return None
    given = calls.arguments_at(text, head.end(), (), reading, named.name)
    is_cut = given.fault is not None and given.fault.kind == "truncated"
    if text[given.end :].strip() or not (is_cut or given.fault is None or text.rstrip().endswith("}")):
        return None
    return calls.Found("llama3_json", (given.draft(named.name),), "", given.warnings, end=given.end)


def _wrapped(value: object) -> tuple[object, ...]:
    """The calls in `{"tool_calls": [...]}`; none if the object is something else, or says more than that."""
    body = as_object(value) or {}
    keys = [key for key in body if key not in _BESIDE_CALLS]
    if len(keys) != 1 or keys[0] not in WRAPPERS_OF_CALLS:
        return ()
    return tuple(as_list(body[keys[0]]) or (body[keys[0]],))


def _lone_name(value: object, reading: calls.Reading) -> tuple[object, ...]:
    """The call that is nothing but the name of an offered tool, written exactly: anything more may be data."""
    body = as_object(value) or {}
    if body.get("type") == "function" and body.keys() <= {"id", "type", "function"}:
        body = as_object(body.get("function")) or {}
    (key, name), *more = [*body.items()] or [("", None)]
    if more or key not in ("name", "tool") or not isinstance(name, str):
        return ()
    named = reading.offered.find(name)
    return ({"name": name},) if named.tool is not None and not named.corrected else ()


def _is_call(value: object, reading: calls.Reading, *, wrapped: bool = False) -> bool:
    """Whether a decoded value reads like a call. In a wrapper, which says that it is one, a lone name is enough."""
    body = as_object(value) or {}
    inner = as_object(body.get("function"))
    if inner is not None and (wrapped or body.get("type") == "function"):
        body = inner
    name = body.get("name")
    if not isinstance(name, str) or not name:
        return False
    schema = as_object(body.get("parameters"))
    if schema is not None and schema.get("type") in ("object", "dict"):  # it may declare a tool rather than call one
        tool = reading.offered.find(name).tool
        takes_properties = tool is not None and "properties" in properties_of(tool.parameters)
        if "description" in body or (as_object(schema.get("properties")) is not None and not takes_properties):
            return False
    return wrapped or "arguments" in body or "parameters" in body or ("args" in body and "call_objective" in body)


def _undecodable(text: str, at: int, error: NotJsonError, reading: calls.Reading) -> calls.Draft | None:
    """The fault of an object that does not decode, if it names an offered tool; if it was cut off, of any."""
    named = calls.NAME.search(text, at, at + 400)
    if named is None or (keys := re.search(r"""["'](?:arguments|parameters)["']\s*:""", text[at : at + 2000])) is None:
        return None
    if text.find("{", at + 1, min(named.start(), at + keys.start())) >= 0:
        return None  # another object begins before the name
    offered = not reading.offered.any_name and reading.offered.find(named["name"]).known
    fault = calls.fault_of(error, at, reading, named["name"])
    is_cut = fault.kind == "truncated" and reading.cut and reading.offered.any_name
    return calls.Draft(named["name"], fault=fault) if offered or is_cut else None


def read_fenced(text: str, reading: calls.Reading, *, three_keys: bool) -> calls.Found | None:
    """Fences whose content is one call to a registered tool. `three_keys`: only name, call_objective and args."""
    if "name" not in text or ("```" not in text and "~~~" not in text):
        return None
    drafts: list[calls.Draft] = []
    warnings: set[ReplyWarning] = {"fallback_fence"}
    first = end = -1
    at = 0
    while len(drafts) <= scan.MOST_CALLS and (step := scan.FENCE.search(text, at)) is not None:
        fence = scan.fence_at(text, scan.skip_blanks(text, step.start())) if step["fence"] else None
        if fence is None:
            at = step.end()
            continue
        at = max(step.end(), fence.end)
        if fence.info.lower() not in _JSON_INFO:
            continue
        for draft, repaired in _fenced_calls(text[fence.inner : fence.inner_end], reading, three_keys=three_keys):
            drafts.append(draft)
            warnings |= {"repaired_json"} if repaired else set()
            first, end = (step.start() if first < 0 else first), at
    if not drafts:
        return None
    return calls.Found("fenced_json", tuple(drafts), text[:first], frozenset(warnings), end=end)


def _fenced_calls(inner: str, reading: calls.Reading, *, three_keys: bool) -> list[tuple[calls.Draft, bool]]:
    """The calls of offered tools if all of a fence's content is objects: one, a list, a wrapper's, or one a line."""
    inner = inner.strip()
    found: list[tuple[calls.Draft, bool]] = []
    at = 0
    while at < len(inner):
        try:
            value = read(inner, at, reading.rules("```", at_end=True, is_call=True))
        except NotJsonError:
            return []
        members = _wrapped(value.value)
        for item in members or as_list(value.value) or (value.value,):
            body = as_object(item)
            if body is None:
                return []
            has_three = "args" in body and "call_objective" in body
            if has_three or (not three_keys and _is_call(body, reading, wrapped=bool(members))):
                draft = calls.draft_of(body)
                if draft.name.strip() and reading.offered.find(draft.name).known:
                    found.append((draft, value.repaired))
        at = _next(inner, value.end)
    return found
