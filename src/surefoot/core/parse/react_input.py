"""The input of an action: where its value ends, and how words and lists bind to a tool's parameters.

Source: spec/react.md, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.core.parse.arguments import REPAIRED, TRAILING, arguments_of, fault_kind, where
from surefoot.core.parse.drafts import NO_WARNINGS, Draft, Reading
from surefoot.core.parse.json_ladder import read
from surefoot.core.parse.json_strict import NotJsonError, as_list, as_object
from surefoot.core.parse.offered import lone_list_parameter, sole_parameter, takes_nothing, unwrapped
from surefoot.core.parse.scan import Fence, fence_at, skip_blanks
from surefoot.core.parse.schema import is_open, properties_of, types_of
from surefoot.core.parse.text_values import typed
from surefoot.types.dataclass import dataclass
from surefoot.types.reply import Fault, ReplyWarning
from surefoot.types.tools import ToolSpec

_EMPTY_WORDS = frozenset({"", "none", "n/a", "null", "nil", "无", "無", "{}", "()", "empty", "-"})
_PAIRS = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`"}


@dataclass(frozen=True, slots=True)
class Given:
    """What stands where an input is due: a decoded `value`, the `words` as written, or both; or what did not decode.

    `is_json_text`: the words are a decoded JSON string. `around`: words stand around the value. `region`: the text that
    did not decode, and `start` where it begins, in the text that `error` speaks of.
    """

    value: object = None
    words: str = ""
    end: int = -1
    is_json_text: bool = False
    around: bool = False
    error: NotJsonError | None = None
    region: str = ""
    start: int = 0
    warnings: frozenset[ReplyWarning] = NO_WARNINGS


def read_input(text: str, start: int, stop: int, reading: Reading) -> Given:
    """What is given between `start` and `stop`, the next label. A value may go on behind it: labels in it are text."""
    at = skip_blanks(text, start)
    if at >= stop:
        return Given(end=start)
    if text.startswith(("```", "~~~"), at) and (fence := fence_at(text, at)) is not None:
        return _fenced(text, fence, stop, reading)
    if text[at] in "{[":
        return _value(text, at, stop, reading)
    if text[at] == '"' and (whole := _json_text(text, at, stop)) is not None:
        return whole
    return _words(text, at, stop, reading)


def _value(text: str, at: int, stop: int, reading: Reading) -> Given:
    """A value that begins at `at`, wherever it ends; brackets may be missing right before the next label."""
    try:
        value = read(text, at, reading.rules())
    except NotJsonError as error:
        region = text[at:stop].rstrip()
        try:
            value = read(region, 0, reading.rules(at_end=True))
        except NotJsonError:
            words = region if text[at] == "[" else ""
            return Given(words=words, end=at + len(region), error=error, region=region, start=at)
        warnings: frozenset[ReplyWarning] = REPAIRED if value.repaired else NO_WARNINGS
        return Given(value.value, end=at + value.end, warnings=warnings)
    return Given(value.value, end=value.end, warnings=REPAIRED if value.repaired else NO_WARNINGS)


def _json_text(text: str, at: int, stop: int) -> Given | None:
    """A JSON string that is all of the input."""
    try:
        value = read(text, at)
    except NotJsonError:
        return None
    if value.end > stop or text[value.end : stop].strip() or value.repaired or not isinstance(value.value, str):
        return None
    return Given(words=value.value, end=value.end, is_json_text=True)


def _fenced(text: str, fence: Fence, stop: int, reading: Reading) -> Given:
    """The content of a fence: a value, or words; labels in it are text."""
    inner = skip_blanks(text, fence.inner)
    rest = text[fence.end : stop].strip() if fence.end < stop else ""
    warnings: frozenset[ReplyWarning] = TRAILING if rest else NO_WARNINGS
    words = fence.content(text)
    if inner < fence.inner_end and text[inner] in "{[":
        region = text[inner : fence.inner_end].rstrip()
        try:
            value = read(region, 0, reading.rules(at_end=fence.closed or reading.stopped))
        except NotJsonError as error:
            return Given(words="" if region[0] == "{" else words, end=fence.end, error=error, region=region)
        if not region[value.end :].strip():
            repaired: frozenset[ReplyWarning] = REPAIRED if value.repaired else NO_WARNINGS
            return Given(value.value, end=fence.end, warnings=warnings | repaired)
    found = _first_value(words, reading)
    return Given(found, words, fence.end, around=found is not None, warnings=warnings)


def _words(text: str, at: int, stop: int, reading: Reading) -> Given:
    """Words up to the next label, and the first value among them, which may end behind that label."""
    words = text[at:stop].rstrip()
    opening = min((place for sign in "{[" if (place := text.find(sign, at, stop)) >= 0), default=-1)
    if opening < 0:
        return Given(words=words, end=at + len(words))
    try:
        value = read(text, opening, reading.rules())
    except NotJsonError as error:
        return Given(words=words, end=at + len(words), error=error, region=text[opening:stop].rstrip(), start=opening)
    end = max(value.end, at + len(words))
    warnings: frozenset[ReplyWarning] = REPAIRED if value.repaired else NO_WARNINGS
    return Given(value.value, words, end, around=True, warnings=warnings)


def _first_value(words: str, reading: Reading) -> object:
    opening = min((place for sign in "{[" if (place := words.find(sign)) >= 0), default=-1)
    if opening < 0:
        return None
    try:
        return read(words, opening, reading.rules()).value
    except NotJsonError:
        return None


def bind(given: Given, written: str, reading: Reading) -> tuple[Draft, frozenset[ReplyWarning]]:
    """The call of the tool that was written, with what was given bound to its parameters; and what to note."""
    named = reading.offered.find(written)
    name, tool = written, named.tool
    if not named.known:
        return Draft(written), NO_WARNINGS  # settling says that there is no such tool
    if given.value is not None:
        bound = _bind_value(given, name, tool)
        if bound is not None:
            told = TRAILING if given.around else NO_WARNINGS
            return bound, given.warnings | told
    if given.error is not None and not (given.words and _text_parameter(tool)):
        kind = fault_kind(given.error, reading, has_end=False)
        return Draft(name, fault=Fault(kind, where(given.error, given.start), name)), NO_WARNINGS
    draft = _bind_words(given, name, tool, reading)
    return draft, (given.warnings - REPAIRED if given.around else given.warnings)


def _bind_value(given: Given, name: str, tool: ToolSpec | None) -> Draft | None:
    """The call with a decoded value; None if the words around it are meant."""
    members, row = as_object(given.value), as_list(given.value)
    words_bind = given.around and _text_parameter(tool) is not None
    if members is not None:
        if tool is not None and words_bind and not _keys_fit(members, tool):
            return None
        if not members and not takes_nothing(tool):
            return _missing(name)
        return Draft(name, members)
    if row is not None and tool is not None and (parameter := lone_list_parameter(tool)) is not None:
        return Draft(name, {parameter: row})
    if words_bind:
        return None
    return Draft(name, fault=Fault("args_not_object", "the input is a list and binds to no parameter", name))


def _bind_words(given: Given, name: str, tool: ToolSpec | None, reading: Reading) -> Draft:
    words = given.words.strip()
    if given.is_json_text:
        decoded = arguments_of(words, name)
        if decoded.fault is None and words:
            return Draft(name, decoded.value)
    if words.casefold().strip("`*_. ") in _EMPTY_WORDS:
        return Draft(name) if takes_nothing(tool) else _missing(name)
    parameter = sole_parameter(tool) if tool is not None else None
    if tool is None or parameter is None:
        return Draft(name, fault=Fault("args_not_object", f"the input {words[:60]!r} binds to no parameter", name))
    text = given.words if given.is_json_text else without_quotes(words)
    value, _ = typed(text, parameter, tool, reading.rules())
    checked = reading.offered.check(tool, {parameter: value})
    if checked.errors:
        return Draft(
            name, fault=Fault("args_not_object", f"the input {words[:60]!r} does not fit: {checked.errors[0]}", name)
        )
    return Draft(name, {parameter: value})


def _missing(name: str) -> Draft:
    return Draft(name, fault=Fault("missing_action_input", "the action needs an input", name))


def _text_parameter(tool: ToolSpec | None) -> str | None:
    """The parameter that any words bind to."""
    parameter = sole_parameter(tool) if tool is not None else None
    if tool is None or parameter is None:
        return None
    return parameter if "string" in types_of(properties_of(tool.parameters)[parameter], tool.parameters) else None


def _keys_fit(members: Mapping[str, object], tool: ToolSpec) -> bool:
    known = properties_of(tool.parameters)
    return is_open(tool.parameters) or all(key in known for key in unwrapped(members, tool))


def without_quotes(words: str) -> str:
    """The words without the one pair of quotes around all of them, if there is one."""
    closer = _PAIRS.get(words[:1])
    if closer is None or len(words) < 2 or not words.endswith(closer):  # noqa: PLR2004  # a pair has two signs
        return words
    inner = words[1:-1]
    return words if words[0] in inner or closer in inner else inner
