"""Calls without a marker: llama3_json objects in the text, and the last resort, a fence with JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping

from surefoot.core.parse.arguments import draft_of, drafts_of, fault_kind, mend_body, where
from surefoot.core.parse.drafts import Draft, Found, Reading
from surefoot.core.parse.json_ladder import MOST_MENDED_CHARS, read
from surefoot.core.parse.json_strict import NotJsonError, as_list, as_object
from surefoot.core.parse.scan import FENCES, MOST_BRACKETS, MOST_CALLS, fence_at, past_fence, skip_blanks
from surefoot.types.reply import Fault, ReplyWarning

PYTHON_TAG = "<|python_tag|>"

_STEP = re.compile(rf"(?P<value>\{{)|{FENCES}", re.MULTILINE)
_NAME = re.compile(r"""["']name["']\s*+:\s*+["'](?P<name>[^"'\n]{1,200})["']""")
_SEPARATORS = re.compile(r"[\s;,\[\]]*+")
_JSON_INFO = frozenset({"", "json", "json5", "jsonc", "tool_call", "tool_calls", "function_call"})


def read_python_tag(text: str, start: int, reading: Reading) -> Found:
    """Objects behind `<|python_tag|>`: the token says that calls are meant, so what does not decode is a fault."""
    warnings: set[ReplyWarning] = set()
    at = skip_blanks(text, start + len(PYTHON_TAG))
    drafts: list[Draft] = []
    end = at
    if text[at : at + 1] not in ("{", "["):
        kind = "truncated" if at >= len(text) and reading.cut else "empty" if at >= len(text) else "malformed_json"
        fault = Fault(kind, f"expected a JSON object behind {PYTHON_TAG}, got {text[at : at + 60]!r}")
        return Found("llama3_json", (Draft(fault=fault),), text[:start], frame=False)
    while text.startswith(("{", "["), at) and len(drafts) < MOST_CALLS:
        try:
            value = read(text, at, reading.rules(PYTHON_TAG, at_end=True))
        except NotJsonError as error:
            following = text.find(PYTHON_TAG, at)
            fault = Fault(fault_kind(error, reading, has_end=following >= 0), where(error, at))
            drafts.append(Draft(fault=fault))
            at = following + len(PYTHON_TAG) if following >= 0 else len(text)
            end = at = skip_blanks(text, at)
            continue
        if value.repaired:
            warnings.add("repaired_json")
        drafts += drafts_of(value.value)
        end = value.end
        at = _next(text, end)
    frame = any(draft.fault is None or draft.name for draft in drafts)
    return Found("llama3_json", tuple(drafts), text[:start], frozenset(warnings), end=end, frame=frame)


def _next(text: str, at: int) -> int:
    separators = _SEPARATORS.match(text, at)
    at = separators.end() if separators else at
    return skip_blanks(text, at + len(PYTHON_TAG)) if text.startswith(PYTHON_TAG, at) else at


def read_bare_json(text: str, reading: Reading) -> Found | None:
    """Objects with a name and arguments anywhere outside of fences; None if there is none that may be a call.

    An unknown name is a fault only if calls are all that the text holds; else it is prose about JSON.
    """
    if "name" not in text or "{" not in text:
        return None
    drafts: list[Draft] = []
    warnings: set[ReplyWarning] = set()
    first = -1
    end = at = 0
    tried = 0
    alone = True
    while tried < MOST_BRACKETS and len(drafts) < MOST_CALLS and (step := _STEP.search(text, at)) is not None:
        at = step.end()
        if not step["value"]:
            at = past_fence(text, step)
            continue
        opening = step.start()
        try:
            value = read(text, opening, reading.rules(at_end=True))
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
        body = as_object(value.value)
        if body is None or not _is_call(body):
            continue
        alone = alone and not text[end:opening].strip(" \t\r\n;,[]")
        drafts.append(draft_of(body))
        if value.repaired:
            warnings.add("repaired_json")
        first, end = (opening if first < 0 else first), value.end
    alone = alone and not text[end:].strip(" \t\r\n;,[]")
    if not alone:
        drafts = [draft for draft in drafts if reading.offered.find(draft.name).known]
    if not drafts:
        return None
    content = text[:first] if text[:first].strip(" \t\r\n[") else ""
    return Found("llama3_json", tuple(drafts), content, frozenset(warnings), end=end)


def _is_call(body: Mapping[str, object]) -> bool:
    inner = as_object(body.get("function"))
    if inner is not None and body.get("type") == "function":
        body = inner
    if not isinstance(body.get("name"), str) or not body["name"]:
        return False
    if "arguments" in body or "parameters" in body:
        return not _is_declaration(body)
    return "args" in body and "call_objective" in body


def _is_declaration(body: Mapping[str, object]) -> bool:
    """Whether the object declares a tool rather than calls one: its parameters are a JSON Schema."""
    schema = as_object(body.get("parameters"))
    return schema is not None and "description" in body and schema.get("type") == "object"


def _undecodable(text: str, at: int, error: NotJsonError, reading: Reading) -> Draft | None:
    """The fault of an object that does not decode, if it names an offered tool; if it was cut off, of any."""
    named = _NAME.search(text, at, at + 400)
    if named is None or (keys := re.search(r"""["'](?:arguments|parameters)["']\s*:""", text[at : at + 2000])) is None:
        return None
    if text.find("{", at + 1, min(named.start(), at + keys.start())) >= 0:
        return None  # another object begins before the name
    offered = not reading.offered.any_name and reading.offered.find(named["name"]).known
    kind = fault_kind(error, reading, has_end=False)
    if (
        offered
        and not error.refused
        and len(text) - at <= MOST_MENDED_CHARS
        and (mended := mend_body(text[at:], reading)) is not None
    ):  # what rung 3 takes
        return mended
    if offered or (kind == "truncated" and reading.cut and reading.offered.any_name):
        return Draft(named["name"], fault=Fault(kind, where(error, at), named["name"]))
    return None


def read_fenced(text: str, reading: Reading, *, three_keys: bool) -> Found | None:
    """Fences whose content is one call to a registered tool. `three_keys`: only name, call_objective and args."""
    if "name" not in text or ("```" not in text and "~~~" not in text):
        return None
    drafts: list[Draft] = []
    warnings: set[ReplyWarning] = {"fallback_fence"}
    first = end = -1
    at = 0
    while len(drafts) < MOST_CALLS and (step := _FENCE.search(text, at)) is not None:
        fence = fence_at(text, skip_blanks(text, step.start())) if step["fence"] else None
        if fence is None:
            at = step.end()
            continue
        at = max(step.end(), fence.end)
        if fence.info.lower() not in _JSON_INFO:
            continue
        for body, repaired in _bodies(text, fence.inner, fence.inner_end, reading):
            if _is_fenced_call(body, reading, three_keys=three_keys):
                drafts.append(draft_of(body))
                warnings |= {"repaired_json"} if repaired else set()
                first, end = (step.start() if first < 0 else first), at
    if not drafts:
        return None
    return Found("fenced_json", tuple(drafts), text[:first], frozenset(warnings), end=end)


_FENCE = re.compile(FENCES, re.MULTILINE)


def _bodies(text: str, start: int, end: int, reading: Reading) -> list[tuple[Mapping[str, object], bool]]:
    """The objects that are all of a fence's content: one, a list of them, or one a line."""
    inner = text[start:end].strip()
    found: list[tuple[Mapping[str, object], bool]] = []
    at = 0
    while at < len(inner):
        try:
            value = read(inner, at, reading.rules("```", at_end=True))
        except NotJsonError:
            return []
        for item in as_list(value.value) or [value.value]:
            body = as_object(item)
            if body is None:
                return []
            found.append((body, value.repaired))
        at = _next(inner, value.end)
    return found


def _is_fenced_call(body: Mapping[str, object], reading: Reading, *, three_keys: bool) -> bool:
    name = body.get("name")
    if not isinstance(name, str) or not name.strip() or not reading.offered.find(name).known:
        return False
    if "args" in body and "call_objective" in body:
        return True
    return not three_keys and ("arguments" in body or "parameters" in body) and not _is_declaration(body)
