"""The input of an action, and the step as one JSON object, `{"thought", "action", "action_input"}`.

Where the value of an input ends, and how words and lists bind to a tool's parameters. Source: spec/react.md, section 6.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress

from surefoot.core.parse.calls import Draft, Found, Reading, arguments_of, fault_of, noted_if, typed
from surefoot.core.parse.marks import is_answer_name
from surefoot.core.parse.objects import NO_WARNINGS, REPAIRED, read
from surefoot.core.parse.scan import NotJsonError, fence_at, first_bracket, skip_blanks
from surefoot.core.parse.schema import is_open, properties_of
from surefoot.core.parse.toolset import sole_parameter, takes_nothing, unwrapped
from surefoot.core.text.json import as_list, as_object
from surefoot.types.dataclass import dataclass, replace
from surefoot.types.reply import Fault, ReplyWarning
from surefoot.types.tools import ToolSpec

_EMPTY_WORDS = frozenset({"", "none", "n/a", "null", "nil", "无", "無", "{}", "()", "empty", "-"})
_NO_OBJECT = re.compile(r"\{\s*+\w++(?:\s++[^\s:{}]++)++\s*+\}\s*+\Z")
"""What may stand in braces and is no attempt at an object: words, with no colon among them."""
_PAIRS = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`"}


@dataclass(frozen=True, slots=True)
class Given:
    """What stands where an input is due: a decoded `value`, the `words` as written, or both; or what did not decode.

    `is_json_text`: the words are a decoded JSON string. `around`: words stand around the value. `start`: where
    the text begins that did not decode, in the text that `error` speaks of.
    """

    value: object = None
    words: str = ""
    end: int = -1
    is_json_text: bool = False
    around: bool = False
    error: NotJsonError | None = None
    start: int = 0
    warnings: frozenset[ReplyWarning] = NO_WARNINGS


def read_input(text: str, start: int, stop: int, reading: Reading) -> Given:
    """What is given between `start` and `stop`, the next label. A value may go on behind it: labels in it are text."""
    at = skip_blanks(text, start)
    if at >= stop:
        return Given(end=start)
    if text.startswith(("```", "~~~"), at) and (fence := fence_at(text, at)) is not None:
        # The content of a fence: a value, or words; labels in it are text.
        inner = skip_blanks(text, fence.inner)
        rest = text[fence.end : stop].strip() if fence.end < stop else ""
        warnings = noted_if(bool(rest), "trailing_text")
        words = fence.content(text)
        if inner < fence.inner_end and text[inner] in "{[":
            region = text[inner : fence.inner_end].rstrip()
            try:
                value = read(region, 0, reading.rules(at_end=fence.closed or reading.stopped))
            except NotJsonError as error:
                return Given(words="" if region[0] == "{" else words, end=fence.end, error=error)
            if not region[value.end :].strip():
                return Given(value.value, end=fence.end, warnings=warnings | value.warnings)
        found: object = None
        opening = first_bracket(words, 0, len(words))
        if opening >= 0:
            with suppress(NotJsonError):
                found = read(words, opening, reading.rules()).value
        return Given(found, words, fence.end, around=found is not None, warnings=warnings)
    if text[at] in "{[":
        # A value that begins at `at`, wherever it ends; brackets may be missing right before the next label.
        try:
            value = read(text, at, reading.rules())
        except NotJsonError as error:
            region = text[at:stop].rstrip()
            try:
                value = read(region, 0, reading.rules(at_end=True))
            except NotJsonError:
                words = region if text[at] == "[" or _NO_OBJECT.match(region) else ""
                return Given(words=words, end=at + len(region), error=error, start=at)
            return Given(value.value, end=at + value.end, warnings=value.warnings)
        return Given(value.value, end=value.end, warnings=value.warnings)
    if text[at] == '"':
        with suppress(NotJsonError):
            value = read(text, at)
            is_all = value.end <= stop and not text[value.end : stop].strip() and not value.repaired
            if is_all and isinstance(value.value, str):
                return Given(words=value.value, end=value.end, is_json_text=True)
    return _words(text, at, stop, reading)


def _words(text: str, at: int, stop: int, reading: Reading) -> Given:
    """Words up to the next label, and the first value among them, which may end behind that label."""
    words = text[at:stop].rstrip()
    opening = first_bracket(text, at, stop)
    if opening < 0:
        return Given(words=words, end=at + len(words))
    try:
        value = read(text, opening, reading.rules())
    except NotJsonError as error:
        return Given(words=words, end=at + len(words), error=error, start=opening)
    return Given(value.value, words, max(value.end, at + len(words)), around=True, warnings=value.warnings)


def bind(given: Given, written: str, reading: Reading) -> tuple[Draft, frozenset[ReplyWarning]]:
    """The call of the tool that was written, with what was given bound to its parameters; and what to note."""
    named = reading.offered.find(written)
    name, tool = written, named.tool
    if not named.known:
        return Draft(written), NO_WARNINGS  # settling says that there is no such tool
    if given.value is not None:
        bound = _bind_value(given, name, tool)
        if bound is not None:
            return bound, given.warnings | noted_if(given.around, "trailing_text")
    if given.error is not None and not (given.words and sole_parameter(tool, "string")):
        return Draft(name, fault=fault_of(given.error, given.start, reading, name)), NO_WARNINGS
    draft = _bind_words(given, name, tool, reading)
    return draft, (given.warnings - REPAIRED if given.around else given.warnings)


def _bind_value(given: Given, name: str, tool: ToolSpec | None) -> Draft | None:
    """The call with a decoded value; None if the words around it are meant."""
    members, row = as_object(given.value), as_list(given.value)
    words_bind = given.around and sole_parameter(tool, "string") is not None
    if members is not None:
        if tool is not None and words_bind and not is_open(tool.parameters):
            known = properties_of(tool.parameters)
            if any(key not in known for key in unwrapped(members, tool)):
                return None
        if not members and not takes_nothing(tool):
            return _missing(name)
        return Draft(name, members)
    if row is not None and (parameter := sole_parameter(tool, "array")) is not None:
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
    parameter = sole_parameter(tool)
    if tool is None or parameter is None:
        return Draft(name, fault=Fault("args_not_object", f"the input {words[:60]!r} binds to no parameter", name))
    text = given.words if given.is_json_text else without_quotes(words)
    value, _ = typed(text, parameter, tool, reading.rules())
    checked = reading.offered.check(tool, {parameter: value})
    if checked.errors:
        told = f"the input {words[:60]!r} does not fit: {checked.errors[0]}"
        return Draft(name, fault=Fault("args_not_object", told, name))
    return Draft(name, {parameter: value})


def _missing(name: str) -> Draft:
    return Draft(name, fault=Fault("missing_action_input", "the action needs an input", name))


def without_quotes(words: str) -> str:
    """The words without the one pair of quotes around all of them, if there is one."""
    closer = _PAIRS.get(words[:1])
    if closer is None or len(words) < 2 or not words.endswith(closer):  # noqa: PLR2004  # a pair has two signs
        return words
    inner = words[1:-1]
    return words if words[0] in inner or closer in inner else inner


_NO_ACTION = re.compile(
    r"(?:none|n/a|na|null|nil|no action|no_function|无|無|没有)(?:[\s(（.。,，:：].*)?", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Step:
    """A decoded step. `more`: other steps stood beside it and are dropped."""

    action: str
    given: Given
    more: bool = False


def is_no_action(name: str) -> bool:
    """Whether a model wrote a name only to say that it takes no action."""
    return _NO_ACTION.fullmatch(name.strip(" \t\r\n`*_\"'[]")) is not None


def step_of(value: object) -> Step | None:
    """The step that a decoded value is: an object with an action, or the first of a list of them."""
    row = as_list(value)
    if row is not None:
        steps = [step for item in row if (step := step_of(item)) is not None]
        if not steps or len(steps) != len(row):
            return None
        return Step(steps[0].action, steps[0].given, more=len(steps) > 1)
    members: Mapping[str, object] | None = as_object(value)
    if members is None or not isinstance(action := members.get("action"), str):
        return None
    value = members.get("action_input")
    if isinstance(value, str):
        return Step(action, Given(words=value, is_json_text=True) if value.strip() else Given())
    is_given = value is None or as_object(value) is not None or as_list(value) is not None
    return Step(action, Given(value) if is_given else Given(words=json.dumps(value)))


def steps_follow(text: str, at: int, limit: int, reading: Reading) -> bool:
    """Whether further steps stand behind one, bare or in fences, and nothing else."""
    more = False
    while (at := _BETWEEN.match(text, at, limit).end()) < limit:  # type: ignore[union-attr]  # it may be empty
        fence = fence_at(text, at)
        opening = skip_blanks(text, fence.inner) if fence is not None else at
        try:
            value = read(text, opening, reading.rules("```", at_end=True, is_call=True))
        except NotJsonError:
            return False
        if step_of(value.value) is None:
            return False
        at, more = max(value.end, fence.end if fence is not None else 0), True
    return more


def found_of(step: Step, reading: Reading, form: str, content: str, end: int) -> Found:
    """What a step means: an answer, a call, or neither."""
    warnings = noted_if(step.more, "extra_actions_dropped")
    given = step.given
    if is_answer_name(step.action, reading.labels):
        text = given.words if given.value is None else json.dumps(given.value, ensure_ascii=False)
        if not text.strip():
            return Found(form, (), content, warnings, error=Fault("empty_final", "the answer is empty"))
        return Found(form, (), content, warnings, final=text.strip(), end=end)
    if is_no_action(step.action) and reading.offered.find(step.action).tool is None:
        return Found(form, (), content, warnings, error=Fault("no_step", "the action is none"))
    if not step.action.strip():
        return Found(form, (), content, warnings, error=Fault("missing_action", "the action has no name"))
    draft, told = bind(given, step.action, reading)
    return Found(form, (draft,), content, warnings | told, end=end)


def read_schema(text: str, reading: Reading) -> Found | None:
    """The step object that a schema held the model to; None if it is something else. The content is its thought."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        value = read(text, start, reading.rules("```", at_end=True, is_call=True))
    except NotJsonError as error:
        if not _STEP_KEY.match(text, start):
            return None
        return Found("schema", (Draft(fault=fault_of(error, start, reading)),))
    step = step_of(value.value)
    if step is None:
        return None
    members = as_object(value.value)
    thought = members.get("thought") if members is not None else None
    found = found_of(step, reading, "schema", thought if isinstance(thought, str) else "", value.end)
    return replace(found, warnings=found.warnings | value.warnings)


_BETWEEN = re.compile(r"[\s,;]*+")
_STEP_KEY = re.compile(r"""\{\s*+["']?(?:thought|action)""")
